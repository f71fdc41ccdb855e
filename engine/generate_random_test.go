package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/faulty"
	"flowctl/store/memory"
)

// roundtrip is a run of three states with different views and tools, in which the model, the human and the tools all have
// their say, and which goes round twice. What the endpoint answers is a function of the request.
type roundtrip struct {
	*dialog
	programs map[string]string // by state: one letter is one thing that its handler does
}

// newRoundtrip makes one. The endpoint chooses among replies by the request's bytes.
func newRoundtrip(t testing.TB, setup modelSetup, programs map[string]string, replies []modeltest.Reply) *roundtrip {
	f := newFlow().tool("look", machine.EffectRead, nil).tool("add", machine.EffectWrite, nil).
		tool("pay", machine.EffectWrite, func(spec *machine.ToolSpec) { spec.Approval.Required = true }).
		state("start", "on", "talk").state("talk", "on", "sum").state("sum", "back", "start", "on", "end").state("end").
		variable("seen", `{"type":"string"}`)
	asks(f, "start", "talk", "sum")
	f.at("start").Shows = []string{"seen"}
	f.at("start").View.Attempts = true
	f.at("talk").Tools, f.at("talk").View.Messages = nil, machine.MessageSelect{Mode: machine.MessagesAll}
	f.at("sum").Tools = []string{"look"}
	f.at("sum").View.Messages = machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"start"}, Last: 4}
	f.at("sum").Examples = []machine.Example{{User: value("Is it a?"), Assistant: value("Yes."),
		Calls: []machine.ExampleCall{{Tool: "look", Args: machine.Ordered[machine.Tree]{{Name: "text", Value: value("a")}}, Result: value("a")}}}}
	f.m.Limits.ModelCalls, f.m.Limits.ToolCalls = 0, 0
	answer := func(req modeltest.Request) modeltest.Reply {
		sum := sha256.Sum256(req.Body)
		return spoken(req, replies[int(sum[0])%len(replies)])
	}
	setup.local, setup.server.Answer = true, answer
	x := &roundtrip{dialog: newDialog(t, f, setup), programs: programs}
	for name := range programs {
		x.on(name, x.handle)
	}
	return x
}

// handle does what the state's program says. An answer that will not do is no reason to end.
func (x *roundtrip) handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	for i, do := range x.programs[step.State().Name] {
		if err := x.do(step, do, fmt.Sprint(step.State().Name, i)); err != nil {
			return "", err
		}
	}
	if step.State().Name == "sum" && step.Visit() < 2 {
		return "back", fmt.Errorf("once more")
	}
	return "on", nil
}

// do is one thing: t thinks with tools, f with tools and finish, p says something in plain text, o chooses an outcome, c asks
// on without making the calls it was asked for, a is an aside, q asks the human, s says something, v sets a variable.
func (x *roundtrip) do(step *engine.Step, do rune, word string) error {
	switch do {
	case 'q':
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "What of " + word + "?"})
		return err
	case 's':
		return step.Say("It is " + word)
	case 'v':
		return step.Set("seen", word)
	}
	for range 3 {
		g, err := step.Generate(roundTasks[do])
		if err != nil {
			return err
		}
		if len(g.Calls) == 0 || do == 'c' || do == 'a' {
			return nil
		}
		if _, err := step.Call(g.Calls...); err != nil {
			return err
		}
	}
	return nil
}

// roundTasks are the tasks of a roundtrip.
var roundTasks = map[rune]engine.Task{'t': doIt, 'f': finishing, 'p': {Label: "say", Text: "Say."}, 'o': choosing(""), 'c': doIt,
	'a': {Label: "aside", Text: "Think.", Aside: true, Tools: true}}

// human answers the questions of a run.
func (x *roundtrip) human(q history.Question) engine.Reply {
	switch q.Kind {
	case history.KindApproval:
		yes := len(q.Question)%2 == 0
		return engine.Reply{Ask: q.ID, Yes: &yes}
	case history.KindInDoubt:
		return engine.Reply{Ask: q.ID, Verdict: history.NotDone}
	}
	return engine.Reply{Ask: q.ID, Text: "the answer to " + q.Question}
}

// bring brings the run to its end. A process whose store fails is replaced by another.
func (x *roundtrip) bring(e *engine.Engine) (*engine.Engine, *history.Snapshot, error) {
	for n := range 100 {
		snap, err := e.Advance(context.Background(), "run")
		switch {
		case errors.Is(err, engine.ErrFinished):
			return e, nil, nil
		case err == nil && snap.Status.Final():
			return e, snap, nil
		case err == nil && snap.Status == store.Stopped && snap.Stop.Code == history.CodeLimit:
			return e, snap, nil // there is no room for even one message
		case err == nil && snap.Status == store.Stopped:
			return e, nil, fmt.Errorf("the run stopped (%s): %s", snap.Stop.Code, snap.Stop.Message)
		case err == nil && len(snap.Pending) > 0:
			err = e.Answer(context.Background(), "run", x.human(snap.Pending[0]))
		}
		if err != nil {
			e = x.heir(fmt.Sprint("heir", n))
		}
	}
	return e, nil, errors.New("the run did not end")
}

// anyReply draws what a model may come up with.
func anyReply() *rapid.Generator[modeltest.Reply] {
	words := []string{"", "I know.", `{"outcome":"confirm"}`, `{"answer":"yes"}`, "<think>hm</think>So.", "a < b & c > d", "好的。", "```json\n{\"outcome\":\"cancel\"}\n```",
		"null", "{", "  \n "}
	args := []string{"", "{}", arg("x"), arg("ü <&>"), `{"text":`, "null", `{"text":"a","text":"b"}`, `[]`, `{"answer":"no"}`, `"x"`, arg("9007199254740993"), `{"text":9007199254740993}`}
	names := []string{"look", "add", "pay", "look", "add", "finish", "nowhere", "", "no such", "LOOK"}
	call := rapid.Custom(func(t *rapid.T) modeltest.Call {
		return modeltest.Call{ID: rapid.SampledFrom([]string{"", "a", "b", "call_1"}).Draw(t, "id"), Name: rapid.SampledFrom(names).Draw(t, "name"),
			Args: rapid.SampledFrom(args).Draw(t, "args")}
	})
	return rapid.Custom(func(t *rapid.T) modeltest.Reply {
		r := modeltest.Reply{Text: rapid.SampledFrom(words).Draw(t, "text"), Prompt: 10, Output: 5}
		if rapid.Bool().Draw(t, "acts") {
			r.Calls = rapid.SliceOfN(call, 1, 4).Draw(t, "calls")
		}
		r.Finish = rapid.SampledFrom([]string{"", "", "", "length", "stop", "tool_calls"}).Draw(t, "finish")
		r.Reasoning = rapid.SampledFrom([]string{"", "because"}).Draw(t, "reasoning")
		return r
	})
}

// Whatever a model comes up with, whatever its flow does and wherever a process is lost: no request is refused, and each can
// be put together again as it was sent.
func TestRandomTalksAreLegalAndCanBePutTogetherAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		programs := map[string]string{}
		for _, name := range []string{"start", "talk", "sum"} {
			programs[name] = rapid.StringOfN(rapid.RuneFrom([]rune("tttffpocaqsv")), 0, 4, -1).Draw(rt, name)
		}
		replies := rapid.SliceOfN(anyReply(), 1, 6).Draw(rt, "replies")
		w := rapid.SampledFrom([]wire{native, inText}).Draw(rt, "wire")
		faults := rapid.SliceOfNDistinct(rapid.IntRange(2, 40), 0, 4, rapid.ID).Draw(rt, "faults")
		lost := rapid.Bool().Draw(rt, "lost")
		setup := modelSetup{wire: w}
		if setup.server.Reasoning = rapid.SampledFrom([]modeltest.Reasoning{"", modeltest.ReasoningForbidden, modeltest.ReasoningRequired}).
			Draw(rt, "reasoning"); setup.server.Reasoning == modeltest.ReasoningRequired {
			setup.change = func(c *openai.Config) { c.Reasoning = openai.ReasoningSendBack }
		}
		x := newRoundtrip(t, setup, programs, replies)
		for _, item := range x.flow.States { // some have room for little, and some of what was said is summarised
			item.Value.View.Budget.Recent = rapid.SampledFrom([]int64{0, 0, 60, 200}).Draw(rt, "recent")
		}
		whole := x.store
		x.store = faulty.New(whole, func(n int, _ store.Commit) faulty.Fault {
			switch {
			case !slices.Contains(faults, n):
				return faulty.Fault{}
			case lost:
				return faulty.Lose(nil)
			}
			return faulty.Fail(nil)
		})
		e := x.engine("w")
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: "run"}); err != nil {
			rt.Fatal(err)
		}
		e, _, err := x.bring(e)
		if err != nil {
			rt.Fatal(err)
		}
		if refused := x.server.Refused(); len(refused) > 0 {
			rt.Fatalf("the endpoint refused: %v", refused)
		}
		if problem := x.compareSent(e, "run", withoutSummaries(x.server.Requests())); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// withoutSummaries leaves out the requests that wanted a summary, which are no answers to a handler.
func withoutSummaries(requests []modeltest.Request) []modeltest.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r modeltest.Request) bool {
		return strings.HasPrefix(r.Chat.Messages[0].Text(), "Summarise the conversation")
	})
}

// talkWorld is a world of the crash harness around a roundtrip.
type talkWorld struct {
	*roundtrip
	from int // requests of the lives before
}

func (w *talkWorld) Store() store.Store { return w.store }
func (w *talkWorld) Close() error       { return nil }

func (w *talkWorld) Engine(_ int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	cfg.Store, cfg.Handlers, cfg.Tools, cfg.Now, cfg.Models = s, w.handlers, map[string]tool.Kind{"go": w.tools}, w.clock.Now, w.opened
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.flow, nil }
	return engine.New(cfg)
}

func (w *talkWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.flow, ID: "run"})
	return id, err
}

// The same run, unbroken and with its process lost at every commit, asks its model the same things in the same order, byte
// for byte: a question may come twice where its answer was lost, but never another one.
func TestEveryCrashAsksTheModelTheSame(t *testing.T) {
	programs := map[string]string{"start": "tq", "talk": "of", "sum": "c"}
	replies := []modeltest.Reply{
		calls("I look.", modeltest.Call{ID: "a", Name: "look", Args: arg("x")}, modeltest.Call{ID: "a", Name: "nowhere"}),
		calls("I add.", modeltest.Call{Name: "add", Args: arg("y")}, modeltest.Call{Name: "pay", Args: arg("z")}),
		{Text: "I know."}, {Text: `{"outcome":"confirm","answer":"yes"}`}, {Text: `{"answer":"yes"}`},
		{Text: "cut", Finish: "length"}, calls("", modeltest.Call{Name: "finish", Args: `{"answer":"so"}`}),
	}
	for _, w := range []wire{native, inText} {
		t.Run(string(w), func(t *testing.T) {
			x := newRoundtrip(t, modelSetup{wire: w}, programs, replies)
			var want []string
			res, err := crash.Run(context.Background(), crash.Scenario{
				World: func() (crash.World, error) {
					x.store, x.clock, x.ran = memory.New(memory.Options{}), newClock(), nil
					return &talkWorld{roundtrip: x, from: len(x.server.Requests())}, nil
				},
				Answer: func(w crash.World, q history.Question) engine.Reply { return w.(*talkWorld).human(q) },
				Check: func(cw crash.World) error {
					w := cw.(*talkWorld)
					got := bodies(w.server.Requests()[w.from:])
					if want == nil {
						want = got
					}
					if problem := sameBodies(want, got); problem != "" {
						return errors.New(problem)
					}
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if res.Commits < 20 || len(want) < 10 {
				t.Errorf("%d commits and %d requests are too few to show anything", res.Commits, len(want))
			}
		})
	}
}

// Two runs in one process know nothing of each other.
func TestTwoRunsAtOnce(t *testing.T) {
	overBoth(t, modelSetup{local: true}, func(t *testing.T, x *dialog) {
		const turns = 20
		f := &flow{x.flow}
		f.at("start").Limits.Turns = turns + 1
		x.flow.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true, Schema: mustSchema(`{"type":"string"}`)}}}
		x.flow.Message = "message"
		x.flow.Limits.ModelCalls = 0
		// Each looks at what the other waits for, so that they take turns.
		turn := map[string]chan struct{}{"alpha-7": make(chan struct{}, 1), "beta-9": make(chan struct{}, 1)}
		other := map[string]string{"alpha-7": "beta-9", "beta-9": "alpha-7"}
		counts := map[string]int{}
		var mu sync.Mutex
		x.opened.model = taking(x.opened.model, func(req model.Request) func() {
			me := "alpha-7"
			if req.Origin.Run == "B" {
				me = "beta-9"
			}
			await(t, turn[me], "the other run")
			return func() { turn[other[me]] <- struct{}{} }
		})
		answer := func(req modeltest.Request) modeltest.Reply {
			mu.Lock()
			defer mu.Unlock()
			me, text := "alpha-7", string(req.Body)
			if strings.Contains(text, "beta-9") {
				me = "beta-9"
			}
			if strings.Contains(text, other[me]) {
				t.Errorf("a request of %s holds %s:\n%s", me, other[me], text)
			}
			counts[me]++
			if counts[me] > turns {
				return spoken(req, modeltest.Reply{Text: "Done, " + me})
			}
			return spoken(req, calls("I am "+me, modeltest.Call{ID: "a", Name: "look", Args: arg(fmt.Sprint(me, counts[me]))}))
		}
		x.reply = answer
		x.act(doIt)
		e := x.engine("w")
		turn["alpha-7"] <- struct{}{}
		var wg sync.WaitGroup
		for run, word := range map[string]string{"A": "alpha-7", "B": "beta-9"} {
			wg.Go(func() {
				_, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: run, Inputs: machine.Values{"message": "I am " + word}})
				if err != nil {
					t.Error(err)
				}
				snap, err := e.Advance(context.Background(), run)
				if err != nil || snap.Status != store.Succeeded {
					t.Errorf("run %s: %v, %+v", run, err, snap)
				}
			})
		}
		wg.Wait()
		if counts["alpha-7"] != turns+1 || counts["beta-9"] != turns+1 {
			t.Errorf("asked %v", counts)
		}
		requests := x.server.Requests()
		for i, r := range requests[:2*turns] {
			if strings.Contains(string(r.Body), "alpha-7") != (i%2 == 0) {
				t.Fatalf("request %d is not of the run whose turn it was", i+1)
			}
		}
	})
}

// taking is a model that does something before and after each request.
func taking(inner model.Model, before func(model.Request) (after func())) model.Model {
	return wrapped(func(ctx context.Context, req model.Request) (model.Response, error) {
		after := before(req)
		defer after()
		return inner.Generate(ctx, req)
	})
}

type wrapped func(context.Context, model.Request) (model.Response, error)

// Generate implements model.Model.
func (w wrapped) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	return w(ctx, req)
}

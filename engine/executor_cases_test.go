package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// wantResults wants what the model was told of its calls to hold the given texts, one for each call.
func wantResults(t testing.TB, p *proposing, texts ...string) {
	t.Helper()
	_, got := p.last()
	if len(got) != len(texts) {
		t.Fatalf("the model is told %q, want %d results", got, len(texts))
	}
	for i, text := range texts {
		if !strings.Contains(got[i], text) {
			t.Errorf("of call %d the model is told %q, want %q in it", i, got[i], text)
		}
	}
}

// batchWorld is a world of the crash harness around one batch of a model: reads that are one request, and writes.
type batchWorld struct {
	*rig
	ledger *ledger
}

func newBatchWorld(t testing.TB) *batchWorld {
	w := &batchWorld{ledger: &ledger{}}
	r, _, o := proposingRig(t, func(f *flow) { f.tool("list", machine.EffectRead, nil).tool("add", machine.EffectWrite, nil) },
		proposed("list", "a", "list", "b", "add", "x", "add", "y", "nowhere", "", "list", "c"))
	r.store = memory.New(memory.Options{})
	o.goTools["add"], o.goTools["list"] = w.ledger.tool("add"), w.ledger.tool("list")
	o.together["list"] = func(_ context.Context, calls []tool.Call) ([]tool.BatchResult, error) {
		results := make([]tool.BatchResult, len(calls))
		for i, c := range calls {
			w.ledger.add("together " + machine.FormatValue(c.Args["text"]))
			results[i].Value = c.Args["text"]
		}
		return results, nil
	}
	w.rig = r
	return w
}

func (w *batchWorld) Store() store.Store { return w.store }
func (w *batchWorld) Close() error       { return nil }

func (w *batchWorld) Engine(_ int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	cfg.Store, cfg.Handlers, cfg.Now = s, w.handlers, w.clock.Now
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.flow, nil }
	w.config(&cfg)
	return engine.New(cfg)
}

func (w *batchWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.flow, ID: "run"})
	return id, err
}

// truth answers a doubt by what has happened.
func (w *batchWorld) truth(q history.Question) engine.Reply {
	word := machine.FormatValue(q.Args.(machine.Values)["text"])
	if strings.Contains(w.ledger.String(), q.Tool+" "+word) {
		return engine.Reply{Verdict: history.Done, HasValue: true, Value: word}
	}
	return engine.Reply{Verdict: history.NotDone}
}

// Wherever the process dies in a batch: what was finished is answered from the record, what is in doubt is asked about, the
// rest runs once, and the model is told the same.
func TestEveryCrashInABatchIsSurvived(t *testing.T) {
	res, err := crash.Run(context.Background(), crash.Scenario{
		World:  func() (crash.World, error) { return newBatchWorld(t), nil },
		Answer: func(w crash.World, q history.Question) engine.Reply { return w.(*batchWorld).truth(q) },
		Check: func(cw crash.World) error {
			lines := strings.Split(cw.(*batchWorld).ledger.String(), ", ")
			for _, write := range []string{"add x", "add y"} {
				if n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l != write })); n != 1 {
					return fmt.Errorf("%s ran %d times: %q", write, n, lines)
				}
			}
			return nil
		},
	})
	if err != nil || res.Commits < 8 {
		t.Fatal(res, err)
	}
}

// Reads of one request are calls of their own in the history: each has its key, its arguments and its result.
func TestCallsOfARequestAreRecordedOneByOne(t *testing.T) {
	w := newBatchWorld(t)
	e := w.engine("w")
	snap := w.run(e)
	wantStatus(t, snap, store.Succeeded)
	if got, want := w.ledger.String(), "together a, together b, add x, add y, list c"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	if got := snap.Spent.Usage.ToolCalls; got != 5 {
		t.Errorf("%d tool calls, want 5", got)
	}
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ToolFinished); ok && d.Tool == "list" {
			got = append(got, fmt.Sprint(ev.Key, " ", machine.FormatValue(d.Args), " ", d.Result.Value))
		}
	}
	if want := []string{`1.1.0 {"text":"a"} a`, `1.1.1 {"text":"b"} b`, `1.1.5 {"text":"c"} c`}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// A write that acts and then does not come back is done once. The model reads that nobody knows, and asking for it again
// follows the tool's policy, also in the same turn.
func TestAModelRepeatsAWriteThatTimedOut(t *testing.T) {
	again := map[string][][]model.Call{
		"in a later turn":  {proposed("add", "x"), proposed("add", "x")},
		"in the same turn": {proposed("add", "x", "add", "x")},
	}
	for when, batches := range again {
		for _, tc := range []struct {
			policy machine.InDoubt
			runs   string
			second string
		}{
			{machine.InDoubtAsk, "x", "add"},
			{machine.InDoubtFail, "x", "nobody knows"},
			{machine.InDoubtRetry, "x, x", "timed out after 1ms, outcome unknown"},
		} {
			t.Run(string(tc.policy)+" "+when, func(t *testing.T) {
				r, p, _ := proposingRig(t, func(f *flow) {
					f.tool("add", machine.EffectWrite, func(spec *machine.ToolSpec) {
						spec.Timeout, spec.InDoubt, spec.Retry = time.Millisecond, tc.policy, new(int64(5))
					})
				}, batches...)
				l := &ledger{}
				r.tools["add"] = func(ctx context.Context, c tool.Call) (machine.Value, error) {
					l.add(machine.FormatValue(c.Args["text"]))
					<-ctx.Done()
					return nil, ctx.Err()
				}
				e := r.engine("w")
				snap := r.run(e)
				if tc.policy == machine.InDoubtAsk {
					wantStatus(t, snap, store.Waiting)
					if len(snap.Pending) != 1 || snap.Pending[0].Kind != history.KindInDoubt || l.String() != "x" {
						t.Fatalf("asked %s after %s", ids(snap), l)
					}
					answer(t, e, engine.Reply{Ask: snap.Pending[0].ID, Verdict: history.Done, HasValue: true, Value: "added"})
					snap = advance(t, e)
				}
				wantStatus(t, snap, store.Succeeded)
				wantResults(t, p, "add timed out after 1ms, outcome unknown", tc.second)
				if l.String() != tc.runs {
					t.Errorf("ran %s, want %s", l, tc.runs)
				}
			})
		}
	}
}

// Three approvals in one turn of a model: each has its own id, and its answer, also over a restart; nothing runs before all are
// answered, and nothing twice.
func TestThreeApprovalsOfAModel(t *testing.T) {
	r, p, _ := proposingRig(t, func(f *flow) {
		f.tool("look", machine.EffectRead, nil).tool("pay", machine.EffectWrite, approval)
	}, proposed("look", "a", "pay", "10", "pay", "10", "pay", "30"))
	l := &ledger{}
	r.tools["look"], r.tools["pay"] = l.tool("look"), l.tool("pay")
	first := r.engine("first")
	snap := r.run(first)
	wantStatus(t, snap, store.Waiting)
	if got, want := ids(snap), "1.1.1/approval 1.1.2/approval 1.1.3/approval"; got != want {
		t.Fatalf("asked %s, want %s", got, want)
	}
	no, yes := false, true
	before := trace(t, first, "run")
	wantUsage(t, first.Answer(context.Background(), "run", engine.Reply{Ask: "1.1.0/approval", Yes: &yes}), "1.1.1/approval")
	if got := trace(t, first, "run"); got != before {
		t.Errorf("a wrong id was recorded: %s", got)
	}
	answer(t, first, engine.Reply{Ask: "1.1.3/approval", Yes: &no, Text: "30 is too much"})
	answer(t, first, engine.Reply{Ask: "1.1.1/approval", Yes: &yes})
	first.Close()

	second := r.heir("second")
	wantStatus(t, advance(t, second), store.Waiting)
	if l.String() != "look a" || len(p.asked) != 1 {
		t.Errorf("ran %s, the model was asked %d times, before all was answered", l, len(p.asked))
	}
	if err := second.Answer(context.Background(), "run", engine.Reply{Ask: "1.1.3/approval", Yes: &yes}); !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("answering again gave %v, want ErrNotPending", err)
	}
	p.batches[0] = proposed("pay", "1000") // what the model would say by now, if it were asked again
	answer(t, second, engine.Reply{Ask: "1.1.2/approval", Yes: &yes})
	wantStatus(t, advance(t, second), store.Succeeded)
	if l.String() != "look a, pay 10, pay 10" {
		t.Errorf("ran %s", l)
	}
	wantResults(t, p, "a", "10", "10", "30 is too much")
}

// A tool whose guard does not hold is not there: it is not offered, and refused like one that nobody knows.
func TestGuardsOfTools(t *testing.T) {
	r, p, _ := proposingRig(t, func(f *flow) { f.tool("look", machine.EffectRead, nil).tool("pay", machine.EffectWrite, nil) },
		proposed("pay", "a", "nowhere", "a", "look", "a"), proposed("pay", "b"))
	f := &flow{m: r.flow}
	f.variable("open", `{"type":"boolean"}`)
	f.at("start").ToolWhen = map[string]machine.Expr{"pay": fn(func(f machine.Facts) (machine.Value, error) { return f.Values["open"] == true, nil })}
	l := &ledger{}
	r.tools["look"], r.tools["pay"] = l.tool("look"), l.tool("pay")
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for range step.Turns() {
			g, err := step.Generate(doIt)
			if err != nil || len(g.Calls) == 0 {
				return "next", err
			}
			if _, err := step.Call(g.Calls...); err != nil {
				return "", err
			}
			if err := step.Set("open", true); err != nil {
				return "", err
			}
		}
		return machine.Fail, nil
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	if l.String() != "look a, pay b" {
		t.Errorf("ran %s", l)
	}
	_, told := p.last()
	if want := strings.ReplaceAll(told[1], "nowhere", "pay"); told[0] != want || !strings.Contains(told[0], "the tools that can be called are: look") {
		t.Errorf("of a tool that is not there the model is told %q, of one that nobody knows %q", told[0], told[1])
	}
	if got, want := offered(t, e), []string{"look", "look pay", "look pay"}; !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
	r.flow.States[0].Value.ToolWhen["pay"] = fn(func(machine.Facts) (machine.Value, error) { return nil, errors.New("null > 3") })
	r.store = memory.New(memory.Options{})
	wantStop(t, r.run(r.engine("w")), history.CodeExpression, "null > 3")
}

// offered gives the names of the tools that each request offered, as they are stored.
func offered(t testing.TB, e *engine.Engine) []string {
	t.Helper()
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, ev := range evs {
		if _, ok := ev.Data.(*history.ModelCalled); !ok {
			continue
		}
		sent, err := e.Sent(context.Background(), "run", ev.Seq)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range sent.Request.Tools {
			names = append(names, tl.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

// Of many tools a model gets those that fit its task best, and what is stored of its request says which. The others are known
// to the state all the same.
func TestAChoiceOfTools(t *testing.T) {
	r, p, _ := proposingRig(t, func(f *flow) {
		for name, about := range map[string]string{"alpha": "", "beta": "Look up the weather of a city", "gamma": "", "delta": "Do what the task says: do it"} {
			f.tool(name, machine.EffectRead, func(spec *machine.ToolSpec) { spec.Description = about })
		}
		slices.SortFunc(f.m.Tools, func(a, b machine.Item[machine.ToolSpec]) int { return strings.Compare(a.Name, b.Name) })
	}, proposed("gamma", "x"))
	(&flow{m: r.flow}).at("start").Select = 2
	for _, name := range []string{"alpha", "beta", "gamma", "delta"} {
		r.tools[name] = (&ledger{}).tool(name)
	}
	r.on("start", thinking(engine.Task{Label: "act", Text: "Tell the weather of Berlin; do it.", Tools: true}, nil))
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	if got := offered(t, e); got[0] != "beta delta" {
		t.Errorf("offered %q, want beta and delta", got)
	}
	for i, req := range p.asked {
		var names []string
		for _, tl := range req.Tools {
			names = append(names, tl.Name)
		}
		if got := strings.Join(names, " "); got != offered(t, e)[i] {
			t.Errorf("sent %q, stored as %q", got, offered(t, e)[i])
		}
	}
	wantResults(t, p, "x")
}

// Tries that fail are recorded as such, and count as no calls of the run.
func TestTriesOfACallAreOneCall(t *testing.T) {
	r, p, _ := proposingRig(t, func(f *flow) {
		f.tool("look", machine.EffectRead, func(spec *machine.ToolSpec) { spec.Retry = nil })
	}, proposed("look", "a"))
	tries := 0
	r.tools["look"] = func(context.Context, tool.Call) (machine.Value, error) {
		if tries++; tries < 3 {
			return nil, tool.Unavailablef("closed for %d", tries)
		}
		return "found", nil
	}
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	wantResults(t, p, "found")
	failed := all[*history.AttemptFailed](t, e)
	if len(failed) != 2 || failed[0].Attempt != 1 || failed[1].Attempt != 2 || failed[1].Problem.Message != "closed for 2" || failed[0].WaitMS <= 0 {
		t.Errorf("tries recorded as %+v", failed)
	}
	if snap.Spent.Usage.ToolCalls != 1 || len(all[*history.ToolFinished](t, e)) != 1 {
		t.Errorf("usage %+v", snap.Spent.Usage)
	}
}

// That a tool is left alone is known to the process, and to no other one that takes the run up.
func TestABreakerIsOfItsProcess(t *testing.T) {
	batches := slices.Repeat([][]model.Call{proposed("look", "a")}, 7)
	r, p, _ := proposingRig(t, func(f *flow) { f.tool("look", machine.EffectRead, nil) }, batches...)
	calls, open := 0, false
	r.tools["look"] = func(context.Context, tool.Call) (machine.Value, error) {
		if calls++; !open {
			return nil, tool.Unavailablef("closed")
		}
		return "found", nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for n := range step.Turns() {
			if n == 6 {
				if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Go on?"}); err != nil {
					return "", err
				}
			}
			g, err := step.Generate(doIt)
			if err != nil || len(g.Calls) == 0 {
				return "next", err
			}
			if _, err := step.Call(g.Calls...); err != nil {
				return "", err
			}
		}
		return machine.Fail, nil
	})
	first := r.engine("first")
	snap := r.run(first)
	wantStatus(t, snap, store.Waiting)
	if calls != 5 {
		t.Errorf("the tool was called %d times, want 5 and then no more", calls)
	}
	first.Close()
	open = true
	second := r.heir("second")
	answer(t, second, engine.Reply{Ask: snap.Pending[0].ID, Text: "yes"})
	wantStatus(t, advance(t, second), store.Succeeded)
	wantResults(t, p, "closed", "closed", "closed", "closed", "closed", "left alone until", "found")
}

// BenchmarkReadsOfOneTurn gives how much longer three reads of 100 ms take one after another than in one turn.
func BenchmarkReadsOfOneTurn(b *testing.B) {
	f := newFlow().tool("look", machine.EffectRead, nil).state("start", "next", "end").state("end")
	var together, apart time.Duration
	for b.Loop() {
		r := newRig(b, f)
		r.tools["look"] = func(context.Context, tool.Call) (machine.Value, error) {
			time.Sleep(100 * time.Millisecond) // the tool's work
			return nil, nil
		}
		r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			calls := slices.Repeat([]engine.Call{{Tool: "look", Args: text("a")}}, 3)
			began := time.Now()
			if _, err := step.Call(calls...); err != nil {
				return "", err
			}
			together += time.Since(began)
			began = time.Now()
			for _, c := range calls {
				if _, err := call(step, c); err != nil {
					return "", err
				}
			}
			apart += time.Since(began)
			return "next", nil
		})
		wantStatus(b, r.run(r.engine("w")), store.Succeeded)
	}
	b.ReportMetric(float64(apart)/float64(together), "times-faster")
}

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// talker is a model that is a function, and remembers what it was sent.
type talker struct {
	answer func(req model.Request) (model.Response, error)
	window int64

	mu   sync.Mutex
	sent []string
}

func (m *talker) Generate(_ context.Context, req model.Request) (model.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line, err := machine.EncodeValue(struct {
		Messages []model.Message
		Tools    []model.Tool
	}{req.Native(), req.Tools})
	if err != nil {
		return model.Response{}, err
	}
	m.sent = append(m.sent, string(line))
	return m.answer(req)
}

// windowed opens a talker with its window.
type windowed struct {
	models
	window int64
}

func (w windowed) Open(m *machine.Machine, use model.Use) (model.Opened, error) {
	open, err := w.models.Open(m, use)
	open.Window = w.window
	return open, err
}

// asksForSummary says whether a request wants a summary.
func asksForSummary(req model.Request) bool {
	return strings.HasPrefix(req.Messages[0].Text, "Summarise")
}

func saying(s string) model.Response {
	return model.Response{Message: model.Message{Role: model.Assistant, Text: s}, Finish: model.Stop, Model: "m"}
}

func look(n int64) model.Response {
	r := saying("I look.")
	r.Message.Calls = []model.Call{{ID: "x", Name: "look", Args: fmt.Sprintf(`{"text":"%d"}`, n)}}
	return r
}

// working answers like a model that looks some times, then is done.
func working(turns int, summary func(model.Request) model.Response) func(model.Request) (model.Response, error) {
	return func(req model.Request) (model.Response, error) {
		if asksForSummary(req) {
			return summary(req), nil
		}
		done := 0
		for _, m := range req.Messages {
			done += strings.Count(m.Text, "DONE-MARK")
		}
		looked := req.Origin.Turn
		if looked > int64(turns) {
			return saying("All is done."), nil
		}
		return look(looked), nil
	}
}

// bigResults is a rig whose tool gives about 150 tokens each time.
func bigResults(t testing.TB, m *talker) *rig {
	r := modelRig(t, m)
	r.flow.States[0].Value.Limits.Turns = 40
	r.config = func(cfg *engine.Config) { cfg.Models = windowed{models: models{model: m}, window: 1600} }
	r.tools["look"] = func(_ context.Context, call tool.Call) (machine.Value, error) {
		return fmt.Sprint("result ", call.Args["text"], ": ", strings.Repeat("some words of it ", 40)), nil
	}
	r.on("start", thinking(engine.Task{Label: "act", Text: "Look at everything.", Tools: true}, nil))
	return r
}

func TestWhatHasNoRoomIsSummarisedOnce(t *testing.T) {
	m := &talker{}
	m.answer = working(20, func(model.Request) model.Response { return saying("SUMMARY: all was looked at.") })
	r := bigResults(t, m)
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	sums := all[*history.Summarised](t, e)
	calls := all[*history.ModelCalled](t, e)
	if len(sums) < 2 || len(sums) > 10 {
		t.Fatalf("%d summaries in %d calls", len(sums), len(calls))
	}
	if want := int64(len(sums) + len(calls)); snap.Spent.Usage.ModelCalls != want {
		t.Errorf("%d model calls are counted, want %d", snap.Spent.Usage.ModelCalls, want)
	}
	for i, s := range sums {
		if s.Refused != "" || !strings.Contains(s.Text, "SUMMARY") {
			t.Errorf("summary %d: %+v", i, s)
		}
		if i > 0 && len(s.Covers) > 0 && s.Covers[len(s.Covers)-1].To <= sums[i-1].Covers[len(sums[i-1].Covers)-1].To {
			t.Errorf("summary %d covers %v, the one before %v", i, s.Covers, sums[i-1].Covers)
		}
	}
	// Every request can be put together again, those for summaries too.
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var again []string
	for _, ev := range evs {
		switch ev.Data.(type) {
		case *history.ModelCalled, *history.Summarised:
			sent, err := e.Sent(context.Background(), "run", ev.Seq)
			if err != nil {
				t.Fatal(err)
			}
			line, err := machine.EncodeValue(struct {
				Messages []model.Message
				Tools    []model.Tool
			}{sent.Request.Messages, sent.Request.Tools})
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, string(line))
		}
	}
	if strings.Join(again, "\n") != strings.Join(m.sent, "\n") {
		t.Error("the requests were not put together again as they were sent")
	}
	last := calls[len(calls)-1]
	if last.Request.Summary == "" || last.Counted > 1600 {
		t.Errorf("the last request is %+v with %d tokens", last.Request, last.Counted)
	}
}

// A summary that is none leads to a plain cut: once for these messages, and never in a loop.
func TestASummaryThatIsNoneIsRefused(t *testing.T) {
	call := saying("")
	call.Message.Calls = []model.Call{{Name: "look", Args: `{"text":"x"}`}}
	cut := saying("half a")
	cut.Finish = model.Length
	for name, tc := range map[string]struct {
		answer func(model.Request) model.Response
		why    string
	}{
		"empty":  {func(model.Request) model.Response { return saying(" ") }, "empty"},
		"call":   {func(model.Request) model.Response { return call }, "tool call"},
		"cut":    {func(model.Request) model.Response { return cut }, "token limit"},
		"longer": {func(req model.Request) model.Response { return saying(req.Messages[1].Text + " and more") }, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &talker{answer: working(20, tc.answer)}
			r := bigResults(t, m)
			e := r.engine("w")
			wantStatus(t, r.run(e), store.Succeeded)
			sums := all[*history.Summarised](t, e)
			if len(sums) < 2 || len(sums) > 10 {
				t.Fatalf("%d summaries were tried", len(sums))
			}
			for _, s := range sums {
				if !strings.Contains(s.Refused, tc.why) || !strings.Contains(s.Text, "left out") {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func TestAnImpossibleBudgetIsAnErrorWithNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		budget machine.Budget
		layer  string
	}{
		"system": {machine.Budget{System: 20}, "system"},
		"task":   {machine.Budget{Task: 3}, "task"},
		"recent": {machine.Budget{Recent: 3}, "recent"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &talker{answer: working(3, func(model.Request) model.Response { return saying("s") })}
			r := bigResults(t, m)
			r.flow.States[0].Value.View.Budget = tc.budget
			snap := r.run(r.engine("w"))
			wantStop(t, snap, history.CodeLimit, "state start", tc.layer, "tokens", "view.budget."+tc.layer)
			if len(m.sent) > 3 {
				t.Errorf("%d requests were sent", len(m.sent))
			}
		})
	}
}

// summaryWorld is bigResults as a world that crashes.
type summaryWorld struct {
	store *memory.Store
	rig   *rig
	model *talker
}

func (w *summaryWorld) Store() store.Store { return w.store }
func (w *summaryWorld) Close() error       { return nil }

func (w *summaryWorld) Engine(_ int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	cfg.Store, cfg.Handlers, cfg.Now = s, w.rig.handlers, w.rig.clock.Now
	cfg.Tools = map[string]tool.Kind{"go": w.rig.tools}
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.rig.flow, nil }
	w.rig.config(&cfg)
	return engine.New(cfg)
}

func (w *summaryWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	run, _, err := e.Start(ctx, engine.StartRequest{Machine: w.rig.flow, ID: "run"})
	return run, err
}

// Unbroken and killed runs send the same requests, also around a summary. A request that was answered and not recorded is
// sent again.
func TestKilledRunsSendTheSameRequestsAroundASummary(t *testing.T) {
	var whole []string
	res, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			m := &talker{}
			m.answer = working(12, func(model.Request) model.Response { return saying("SUMMARY: all was looked at.") })
			r := bigResults(t, m)
			return &summaryWorld{store: memory.New(memory.Options{}), rig: r, model: m}, nil
		},
		Answer: func(crash.World, history.Question) engine.Reply { return engine.Reply{} },
		Check: func(cw crash.World) error {
			sent := cw.(*summaryWorld).model.sent
			var once []string
			for _, line := range sent {
				if len(once) == 0 || once[len(once)-1] != line {
					once = append(once, line)
				}
			}
			if whole == nil {
				whole = once
			}
			if strings.Join(once, "\n") != strings.Join(whole, "\n") {
				for i := range min(len(once), len(whole)) {
					if once[i] != whole[i] {
						return fmt.Errorf("request %d is\n%s\nand was\n%s", i+1, once[i], whole[i])
					}
				}
				return fmt.Errorf("%d requests were sent, unbroken it were %d", len(once), len(whole))
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Commits < 26 {
		t.Errorf("%+v", res)
	}
}

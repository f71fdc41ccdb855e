package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

var update = flag.Bool("update", false, "write the golden files")

var at = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)

// examples has one event of each type.
func examples() []history.Event {
	due := at.Add(time.Hour)
	values := machine.Values{"n": int64(9007199254740993), "list": []machine.Value{nil, true, 1.5, "<a & b>"}}
	problem := machine.Problem{Kind: "failed", Message: "it said no"}
	data := []history.Data{
		&history.RunStarted{Flow: "support", FlowHash: "sha256:1", Dir: "/flows", Inputs: values, Vars: machine.Values{"remark": ""}, Message: "message"},
		&history.StateEntered{Env: history.Environment{Model: machine.ModelReady, ApproveAll: true}, Restarted: true},
		&history.AttemptFailed{Tool: "pay", Problem: problem, NotDone: true},
		&history.ToolStarted{Tool: "pay", Args: values},
		&history.ToolFinished{Tool: "pay", Effect: machine.EffectWrite, Args: values, Result: tool.Result{Status: tool.OK, Value: values}, MS: 12},
		&history.Asked{Kind: history.KindApproval, Question: "Approve pay?", Schema: machine.Values{"type": "boolean"}, Tool: "pay", Args: values, Due: &due},
		&history.Answered{Value: false, Text: "too dear", Interrupt: "leave", By: history.ByPerson},
		&history.DoubtResolved{Verdict: history.Done, Value: values, By: history.ByFlag},
		&history.Expired{},
		&history.VarSet{Name: "todo", Value: values},
		&history.Said{Text: "Hello <there>"},
		&history.NoteAdded{Text: "tried"},
		&history.Transition{From: "a", To: "b", Outcome: machine.Fail, Branch: 1, Problem: problem},
		&history.Signalled{Name: "paid", Value: values, Notice: "01JD"},
		&history.LimitRaised{Limit: "time", By: 60000, Notice: "01JD"},
		&history.FlowSwitched{From: "sha256:1", To: "sha256:2", Dir: "/flows", State: "b", Inputs: values, Vars: values, Map: map[string]string{"a": "b"}},
		&history.RunWaiting{Due: &due},
		&history.RunStopped{Code: history.CodeLimit, Message: "enough", Hint: "raise it"},
		&history.RunResumed{Interrupted: true, Env: &history.Environment{Model: machine.ModelMissing}, Dir: "/moved"},
		&history.RunFinished{Status: store.Failed, Output: values, Reason: "cancelled"},
		&history.Unknown{Name: "from_the_future", Raw: []byte(`{"new":[1]}`)},
	}
	events := make([]history.Event, len(data))
	for i, d := range data {
		events[i] = history.Event{Seq: int64(i + 1), At: at, State: "talk", Visit: 2, Step: 3, Key: "3.0", Data: d}
	}
	return events
}

// The stored form of each type is a contract: what was written once must be readable for ever.
func TestStoredFormOfEachType(t *testing.T) {
	for _, ev := range examples() {
		t.Run(string(ev.Data.Type()), func(t *testing.T) {
			row, err := history.Encode(ev, nil)
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, row.Data, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", string(ev.Data.Type())+".json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(golden) != pretty.String() {
				t.Errorf("stored as\n%s, the contract is\n%s", pretty.String(), golden)
			}
			row.Data = golden // what stands in old databases
			back, err := history.Decode(row)
			if err != nil {
				t.Fatal(err)
			}
			if _, unknown := ev.Data.(*history.Unknown); !unknown {
				sameEvent(t, back, ev)
			}
		})
	}
}

func sameEvent(t rapid.TB, got, want history.Event) {
	t.Helper()
	a, err := history.Encode(got, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b, err := history.Encode(want, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if fmt.Sprintf("%T%+v%s", got.Data, a, a.Data) != fmt.Sprintf("%T%+v%s", want.Data, b, b.Data) {
		t.Fatalf("came back as %T %s, want %T %s", got.Data, a.Data, want.Data, b.Data)
	}
}

func TestEveryTypeHasAnExampleAndAFile(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(examples()) {
		t.Errorf("%d golden files for %d types (%v)", len(files), len(examples()), err)
	}
}

func TestCodecKeepsEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := drawEvent(t, 1)
		row, err := history.Encode(ev, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := history.Decode(row)
		if err != nil {
			t.Fatalf("%s: %v", row.Data, err)
		}
		sameEvent(t, back, ev)
		if v, ok := ev.Data.(*history.VarSet); ok && !machine.EqualValues(back.Data.(*history.VarSet).Value, v.Value) {
			t.Fatalf("value %#v came back as %#v", v.Value, back.Data.(*history.VarSet).Value)
		}
	})
}

// drawValue draws a JSON value.
func drawValue(t *rapid.T, depth int) machine.Value {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return rapid.String().Draw(t, "text")
	case 4:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "tenths") + 0.5e-3
	case 5:
		list := make([]machine.Value, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	return drawValues(t, depth-1)
}

func drawValues(t *rapid.T, depth int) machine.Values {
	vs := machine.Values{}
	for range rapid.IntRange(0, 3).Draw(t, "size") {
		vs[rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "name")] = drawValue(t, depth)
	}
	return vs
}

func normal(t *rapid.T, v machine.Value) machine.Value {
	n, err := machine.Normalize(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// drawEvent draws an event of any type but the first and the last of a run.
func drawEvent(t *rapid.T, seq int64) history.Event {
	word := func(label string) string { return rapid.StringMatching(`[a-c]`).Draw(t, label) }
	text := rapid.String().Draw(t, "words")
	value := normal(t, drawValue(t, 3))
	args := normal(t, drawValues(t, 2)).(machine.Values)
	problem := machine.Problem{Kind: word("kind"), Message: strings.ToValidUTF8(text, "?")}
	text = strings.ToValidUTF8(text, "?")
	due := at.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "due")) * time.Millisecond)
	ev := history.Event{Seq: seq, At: at.Add(time.Duration(seq) * time.Second), State: word("state"), Visit: rapid.Int64Range(1, 5).Draw(t, "visit"),
		Step: rapid.Int64Range(1, 5).Draw(t, "step"), Key: rapid.StringMatching(`[1-3]\.[0-2]`).Draw(t, "key")}
	ev.Data = rapid.SampledFrom([]history.Data{
		&history.StateEntered{Env: history.Environment{Model: machine.ModelReady}},
		&history.AttemptFailed{Tool: word("tool"), Problem: problem},
		&history.ToolStarted{Tool: word("tool"), Args: args},
		&history.ToolFinished{Tool: word("tool"), Args: value, Result: tool.Result{Status: tool.OK, Value: value}, MS: 3},
		&history.Asked{Kind: history.KindAsk, Question: text, Schema: args, Due: &due},
		&history.Answered{Value: value, Text: text, By: history.ByPerson},
		&history.DoubtResolved{Verdict: history.Done, Value: value, By: history.ByPerson},
		&history.Expired{},
		&history.VarSet{Name: word("var"), Value: value},
		&history.Said{Text: text},
		&history.NoteAdded{Text: text},
		&history.Transition{From: word("from"), To: word("to"), Outcome: "success", Problem: problem},
		&history.Signalled{Name: word("signal"), Value: value},
		&history.LimitRaised{Limit: "steps", By: 2},
		&history.FlowSwitched{To: "sha256:2", State: word("to"), Inputs: args, Vars: args, Map: map[string]string{"a": "b", "b": "a"}},
		&history.RunWaiting{Due: &due},
		&history.RunStopped{Code: history.CodeLimit, Message: text},
		&history.RunResumed{Interrupted: true},
		&history.Unknown{Name: "other", Raw: []byte(`{}`)},
	}).Draw(t, "data")
	return ev
}

// drawHistory draws a history of a run that has not ended.
func drawHistory(t *rapid.T) []history.Event {
	events := []history.Event{{Seq: 1, At: at, Data: &history.RunStarted{Flow: "f", Inputs: machine.Values{"message": "hi"}, Vars: machine.Values{"a": int64(1)}, Message: "message"}}}
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		events = append(events, drawEvent(t, int64(len(events)+1)))
	}
	return events
}

func show(t rapid.TB, s *history.Snapshot) string {
	t.Helper()
	data, err := s.Checkpoint()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, msg := range s.Talk.Messages {
		data = fmt.Appendf(data, "\n%d %v %q", msg.N, msg.Loaded, msg.Text)
	}
	return string(data)
}

// It makes no difference where a history is cut, and folding on changes nothing of what was folded before.
func TestFoldCanStopAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		whole, err := history.Fold(history.New("run"), events)
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		base, err := history.Fold(history.New("run"), events[:cut])
		if err != nil {
			t.Fatal(err)
		}
		before := show(t, base)
		for range 2 {
			rest, err := history.Fold(base, events[cut:])
			if err != nil {
				t.Fatal(err)
			}
			if a, b := show(t, rest), show(t, whole); a != b {
				t.Fatalf("cut at %d:\n%s\nwhole:\n%s", cut, a, b)
			}
		}
		if after := show(t, base); after != before {
			t.Fatalf("folding on changed the base from\n%s\nto\n%s", before, after)
		}
	})
}

// A checkpoint gives back the snapshot, without the texts of its messages, and can be folded on.
func TestCheckpointKeepsTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		cut := rapid.IntRange(1, len(events)).Draw(t, "cut")
		base, err := history.Fold(history.New("run"), events[:cut])
		if err != nil {
			t.Fatal(err)
		}
		data, err := base.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		back, err := history.FromCheckpoint(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, msg := range back.Talk.Messages {
			if msg.Loaded || msg.Text != "" {
				t.Fatalf("message %d has its text", msg.N)
			}
		}
		again, err := back.Checkpoint()
		if err != nil || string(again) != string(data) {
			t.Fatalf("%v\n%s\ncame back as\n%s", err, data, again)
		}
		for name, v := range base.Vars {
			if !machine.EqualValues(v, back.Vars[name]) {
				t.Fatalf("%s: %#v came back as %#v", name, v, back.Vars[name])
			}
		}
		a, err := history.Fold(base, events[cut:])
		if err != nil {
			t.Fatal(err)
		}
		b, err := history.Fold(back, events[cut:])
		if err != nil {
			t.Fatal(err)
		}
		x, _ := a.Checkpoint()
		y, _ := b.Checkpoint()
		if string(x) != string(y) {
			t.Fatalf("folded on from a checkpoint:\n%s\nwithout one:\n%s", y, x)
		}
	})
}

func TestApplyRefusesWhatCannotFollow(t *testing.T) {
	started := history.Event{Seq: 1, At: at, Data: &history.RunStarted{Flow: "f"}}
	ended := history.Event{Seq: 2, At: at, Data: &history.RunFinished{Status: store.Succeeded}}
	said := func(seq int64) history.Event {
		return history.Event{Seq: seq, At: at, Data: &history.Said{Text: "x"}}
	}
	for name, tc := range map[string]struct {
		before []history.Event
		ev     history.Event
	}{
		"a gap":            {[]history.Event{started}, said(3)},
		"twice":            {[]history.Event{started, said(2)}, said(2)},
		"from the middle":  {nil, said(2)},
		"behind the end":   {[]history.Event{started, ended}, said(3)},
		"unknown, at last": {[]history.Event{started, ended}, history.Event{Seq: 3, At: at, Data: &history.Unknown{Name: "x", Raw: []byte(`{}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := history.Fold(history.New("run"), tc.before)
			if err != nil {
				t.Fatal(err)
			}
			before := show(t, s)
			var damaged *history.DamagedError
			if err := history.Apply(s, tc.ev); !errors.As(err, &damaged) || damaged.Seq != tc.ev.Seq {
				t.Fatalf("got %v", err)
			}
			if after := show(t, s); after != before {
				t.Errorf("the snapshot changed from %s to %s", before, after)
			}
		})
	}
}

func TestUnknownTypesCountOnAndAreKept(t *testing.T) {
	row := store.Event{Seq: 2, At: at, Type: "from_the_future", Data: []byte(`{"x":1}`)}
	ev, err := history.Decode(row)
	if err != nil {
		t.Fatal(err)
	}
	s, err := history.Fold(history.New("run"), []history.Event{{Seq: 1, At: at, Data: &history.RunStarted{Flow: "f"}}, ev})
	if err != nil || s.Seq != 2 || s.Status != store.Running {
		t.Fatalf("%+v, %v", s, err)
	}
	back, err := history.Encode(ev, nil)
	if err != nil || back.Type != row.Type || string(back.Data) != string(row.Data) {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

func TestDecodeAllFindsGaps(t *testing.T) {
	row := func(seq int64) store.Event { return store.Event{Seq: seq, Type: "said", Data: []byte(`{"text":"x"}`)} }
	if _, err := history.DecodeAll([]store.Event{row(5), row(6)}, 4); err != nil {
		t.Error(err)
	}
	for _, rows := range [][]store.Event{{row(6)}, {row(5), row(7)}, {row(5), row(5)}} {
		var damaged *history.DamagedError
		if _, err := history.DecodeAll(rows, 4); !errors.As(err, &damaged) {
			t.Errorf("%v gave %v", rows, err)
		}
	}
}

func TestRedactionWorksOnWhatIsStored(t *testing.T) {
	row, err := history.Encode(history.Event{Data: &history.Said{Text: "a secret"}}, func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte("secret"), []byte("[x]"))
	})
	if err != nil || string(row.Data) != `{"text":"a [x]"}` {
		t.Errorf("%s, %v", row.Data, err)
	}
	if _, err := history.Encode(history.Event{Data: &history.VarSet{Name: "v", Value: make(chan int)}}, nil); err == nil || !strings.Contains(err.Error(), "var_set cannot be stored") {
		t.Errorf("a channel gave %v", err)
	}
}

// What counts as working time, and what as a lost process.
func TestClockAndInterruptions(t *testing.T) {
	seq := int64(0)
	minute := 0
	ev := func(minutes int, d history.Data) history.Event {
		seq++
		minute += minutes
		return history.Event{Seq: seq, At: at.Add(time.Duration(minute) * time.Minute), State: "a", Step: 1, Visit: 1, Key: "1.0", Data: d}
	}
	lost := func() history.Event { return ev(60, &history.RunResumed{Interrupted: true}) }
	s, err := history.Fold(history.New("run"), []history.Event{
		ev(0, &history.RunStarted{}), ev(0, &history.StateEntered{}),
		ev(1, &history.Said{Text: "x"}), // 1 minute
		lost(), lost(), lost(),
		ev(2, &history.RunStopped{Code: history.CodePoison}), // 2 minutes, and progress
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Spent.Active != 3*time.Minute {
		t.Errorf("%s of work, want 3m", s.Spent.Active)
	}
	s, err = history.Fold(s, []history.Event{
		ev(60, &history.LimitRaised{Limit: "time", By: 1}), ev(60, &history.RunResumed{}),
		ev(4, &history.Asked{Kind: history.KindAsk, Question: "?"}), ev(0, &history.RunWaiting{}), // 4 minutes
		ev(60, &history.Answered{Value: "x", By: history.ByPerson}),
		lost(), ev(60, &history.RunResumed{}), lost(), // given back in between: that is no look of a human
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Spent.Active != 7*time.Minute || s.Spent.Interrupted != 2 {
		t.Errorf("%s of work, want 7m; %d interruptions, want 2", s.Spent.Active, s.Spent.Interrupted)
	}
	if got := s.Elapsed(s.At.Add(time.Minute)); got != 8*time.Minute {
		t.Errorf("elapsed %s, want 8m", got)
	}
}

func TestSwitchRenamesAllAtOnce(t *testing.T) {
	s := history.New("run")
	s.Now.Visits = map[string]int64{"a": 1, "b": 2, "c": 3}
	s.Talk.Left = map[string]int64{"a": 10, "c": 30}
	s.Attempts = map[string][]history.Attempt{"b": {{Visit: 2}}}
	s.Status = store.Stopped
	if err := history.Apply(s, history.Event{Seq: 1, At: at, Data: &history.FlowSwitched{State: "b", Map: map[string]string{"a": "b", "b": "a"}}}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Now.Visits, s.Talk.Left); got != "map[a:2 b:1 c:3] map[b:10 c:30]" {
		t.Errorf("visits and messages are %s", got)
	}
	if len(s.Attempts["a"]) != 1 || len(s.Attempts["b"]) != 0 {
		t.Errorf("attempts are %v", s.Attempts)
	}
}

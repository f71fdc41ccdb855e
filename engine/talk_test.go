package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// What a state hears, and what the last visit of it left, across its visits.
func TestHeardAndAttemptsAcrossVisits(t *testing.T) {
	f := newFlow().state("talk", "on", "other").state("other", "back", "talk", "done", "end").state("end")
	f.m.Start = "talk"
	f.m.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true, HasDefault: true, Default: "first words"}}}
	f.m.Message = "message"
	f.at("talk").View.Attempts = true
	r := newRig(t, f)
	var heard, attempts []string
	r.on("talk", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		before, err := step.Heard()
		if err != nil {
			return "", err
		}
		v, err := step.View()
		if err != nil {
			return "", err
		}
		if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: fmt.Sprint("question ", step.Visit())}); err != nil {
			return "", err
		}
		after, err := step.Heard()
		if err != nil {
			return "", err
		}
		heard = append(heard, fmt.Sprint(before, after))
		var tried []string
		for _, a := range v.Attempts {
			tried = append(tried, fmt.Sprint(a.Visit, a.Outcome, a.Problem.Message, a.Notes))
		}
		attempts = append(attempts, strings.Join(tried, ","))
		if err := step.Note(fmt.Sprint("note ", step.Visit())); err != nil {
			return "", err
		}
		return "on", fmt.Errorf("reason %d", step.Visit())
	})
	r.on("other", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "More?"})
		if err != nil {
			return "", err
		}
		return machine.Outcome(ans.Text), nil
	})
	e := r.engine("w")
	r.run(e)
	for _, reply := range []string{"a", "back", "b", "back", "c", "done"} {
		snap := advance(t, e)
		answer(t, e, engine.Reply{Ask: ids(snap), Text: reply})
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	if want := []string{"[first words] [first words a]", "[back] [back b]", "[back] [back c]"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if want := []string{"", "1onreason 1[note 1]", "1onreason 1[note 1],2onreason 2[note 2]"}; !slices.Equal(attempts, want) {
		t.Errorf("attempts %q, want %q", attempts, want)
	}
}

// reading counts the reads of events, and leaves checkpoints out where it is told to.
type reading struct {
	store.Store
	forget bool
	events atomic.Int64
}

func (s *reading) Events(ctx context.Context, run string, after int64, limit int) ([]store.Event, error) {
	rows, err := s.Store.Events(ctx, run, after, limit)
	s.events.Add(int64(len(rows)))
	return rows, err
}

func (s *reading) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, c)
	if s.forget {
		claimed.Checkpoint = nil
	}
	return claimed, err
}

// checkpoints is a store that keeps what it was given as checkpoints.
type checkpoints struct {
	store.Store
	seen [][]byte
}

func (s *checkpoints) Commit(ctx context.Context, c store.Commit) error {
	if c.Checkpoint != nil {
		s.seen = append(s.seen, c.Checkpoint)
	}
	return s.Store.Commit(ctx, c)
}

// longTalk is a run of many steps that speaks in each, and every 60 steps asks and looks at all that was said.
func longTalk(t *testing.T, log *[]string) *rig {
	t.Helper()
	f := newFlow().state("talk", "again", "talk", "done", "end").state("end").variable("n", `{"type":"integer"}`)
	f.m.Start, f.m.Limits.Steps = "talk", 0
	f.at("talk").Limits.Visits = 1000
	f.at("talk").View = machine.View{Messages: machine.MessageSelect{Mode: machine.MessagesAll}, Attempts: true}
	f.at("talk").Shows = []string{"n"}
	r := newRig(t, f)
	r.on("talk", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		n, _ := engine.Get[int64](step, "n")
		if err := step.Set("n", n+1); err != nil {
			return "", err
		}
		if err := step.Say(fmt.Sprint("unforgettable words ", n)); err != nil {
			return "", err
		}
		if n%60 != 59 {
			return "again", nil
		}
		if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"}); err != nil {
			return "", err
		}
		v, err := step.View()
		if err != nil {
			return "", err
		}
		heard, err := step.Heard()
		if err != nil {
			return "", err
		}
		var words []string
		for _, msg := range v.Messages {
			words = append(words, fmt.Sprint(msg.N, msg.Role, msg.State, msg.Step, msg.Text))
		}
		*log = append(*log, fmt.Sprint(v.Vars, len(v.Attempts), words, heard, step.Visit(), step.Last()))
		if n >= 170 {
			return "done", nil
		}
		return "again", nil
	})
	return r
}

// drive answers a run's questions, each time in a new process, until it ends.
func drive(t *testing.T, r *rig) *history.Snapshot {
	t.Helper()
	snap := r.run(r.engine("w"))
	for i := 0; snap.Status == store.Waiting; i++ {
		e := r.engine(fmt.Sprint("w", i))
		answer(t, e, engine.Reply{Ask: ids(snap), Text: fmt.Sprint("answer ", i)})
		snap = advance(t, e)
	}
	wantStatus(t, snap, store.Succeeded)
	return snap
}

func TestCheckpointChangesNothingButTheCost(t *testing.T) {
	var with, without []string
	r := longTalk(t, &with)
	kept := &checkpoints{Store: r.store}
	cheap := &reading{Store: kept}
	r.store = cheap
	a := drive(t, r)

	r = longTalk(t, &without)
	dear := &reading{Store: r.store, forget: true}
	r.store = dear
	b := drive(t, r)

	if len(with) != 3 || !slices.Equal(with, without) {
		t.Errorf("with checkpoints the handler saw\n%.2000q\nwithout\n%.2000q", with, without)
	}
	if !strings.Contains(with[2], "unforgettable words 3") || !strings.Contains(with[2], "unforgettable words 179") {
		t.Errorf("texts are missing: %.500q", with[2])
	}
	if !slices.Equal(a.Now.Path, b.Now.Path) || !machine.EqualValues(a.Vars, b.Vars) || a.Seq != b.Seq || a.Spent.Usage != b.Spent.Usage ||
		fmt.Sprint(a.Attempts) != fmt.Sprint(b.Attempts) || fmt.Sprint(a.Talk.Left) != fmt.Sprint(b.Talk.Left) {
		t.Error("the snapshots differ")
	}
	if len(kept.seen) < 3 {
		t.Fatalf("%d checkpoints were stored", len(kept.seen))
	}
	for _, data := range kept.seen {
		if strings.Contains(string(data), "unforgettable") {
			t.Fatalf("a checkpoint holds the text of a message: %.300s", data)
		}
	}
}

func TestTakingUpFromACheckpointReadsLittle(t *testing.T) {
	f := newFlow().state("talk", "again", "talk", "done", "end").state("end")
	f.m.Start, f.m.Limits.Steps = "talk", 0
	f.at("talk").Limits.Visits = 1000
	r := newRig(t, f)
	r.on("talk", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if step.Visit() < 300 {
			return "again", nil
		}
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"})
		return "done", err
	})
	counted := &reading{Store: r.store}
	r.store = counted
	snap := r.run(r.engine("w"))
	counted.events.Store(0)
	e := r.engine("w2")
	answer(t, e, engine.Reply{Ask: ids(snap), Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if n := counted.events.Load(); n > snap.Seq/4 {
		t.Errorf("%d of %d events were read", n, snap.Seq)
	}
}

func TestDamagedCheckpointIsLeftAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":   func(data []byte) []byte { return data[:len(data)/2] },
		"empty": func([]byte) []byte { return []byte(`{}`) },
		"another version": func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"Version":`, `"Version":9`, 1))
		},
		"another run":     func(data []byte) []byte { return []byte(strings.Replace(string(data), `"ID":"run"`, `"ID":"nur"`, 1)) },
		"from the future": func(data []byte) []byte { return []byte(strings.Replace(string(data), `"Seq":`, `"Seq":9`, 1)) },
		"of no step":      func(data []byte) []byte { return []byte(strings.Replace(string(data), `"Seq":`, `"Seq":0.5,"X":`, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			var log, want []string
			drive(t, longTalk(t, &want))
			r := longTalk(t, &log)
			used := 0
			r.store = &tampered{Store: r.store, checkpoint: func(data []byte) []byte {
				if data == nil {
					return nil
				}
				used++
				bad := damage(data)
				if string(bad) == string(data) {
					t.Error("nothing was damaged")
				}
				return bad
			}}
			drive(t, r)
			if used == 0 || !slices.Equal(log, want) {
				t.Errorf("%d checkpoints were read; the handler saw\n%.500q, want\n%.500q", used, log, want)
			}
		})
	}
}

// A text that is gone from the disk is found when it is asked for.
func TestTextThatIsGone(t *testing.T) {
	var log []string
	r := longTalk(t, &log)
	snap := r.run(r.engine("w"))
	answer(t, r.engine("w1"), engine.Reply{Ask: ids(snap), Text: "x"})
	r.store = &tampered{Store: r.store, events: func(rows []store.Event) []store.Event {
		return slices.DeleteFunc(rows, func(ev store.Event) bool { return ev.Seq == 4 })
	}}
	e := r.heir("w2")
	wantStop(t, advance(t, e), history.CodeCorrupt, "event 4")
}

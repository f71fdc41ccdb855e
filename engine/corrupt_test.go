package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// tampered is a store that gives what somebody has changed on the disk.
type tampered struct {
	store.Store
	events     func([]store.Event) []store.Event
	checkpoint func([]byte) []byte
	noFlow     bool
}

func (s *tampered) Events(ctx context.Context, run string, after int64, limit int) ([]store.Event, error) {
	if s.events == nil || run != "run" {
		return s.Store.Events(ctx, run, after, limit)
	}
	rows, err := s.Store.Events(ctx, run, 0, 0)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(s.events(rows), func(ev store.Event) bool { return ev.Seq <= after })
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return rows, nil
}

func (s *tampered) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, c)
	if s.checkpoint != nil {
		claimed.Checkpoint = s.checkpoint(claimed.Checkpoint)
	}
	return claimed, err
}

func (s *tampered) Blob(ctx context.Context, run, hash string) ([]byte, error) {
	if s.noFlow {
		return nil, store.ErrNotFound
	}
	return s.Store.Blob(ctx, run, hash)
}

// asking is a rig whose runs ask one question.
func asking(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, newFlow().state("start", "answered", "end").state("end"))
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "answered", err
	})
	return r
}

func TestDamagedHistoryStopsTheRunOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func([]store.Event) []store.Event
		says   string
	}{
		{"event that is no JSON", func(rows []store.Event) []store.Event { rows[2].Data = []byte(`{"kind":`); return rows }, "event 3 (asked)"},
		{"event with more behind it", func(rows []store.Event) []store.Event { rows[2].Data = append(rows[2].Data, '}'); return rows }, "event 3"},
		{"event of another shape", func(rows []store.Event) []store.Event { rows[2].Data = []byte(`[]`); return rows }, "event 3"},
		{"field of another type", func(rows []store.Event) []store.Event { rows[2].Data = []byte(`{"kind":7}`); return rows }, "event 3"},
		{"event that is missing", func(rows []store.Event) []store.Event { return slices.Delete(rows, 1, 2) }, "event 2"},
		{"end that is missing", func(rows []store.Event) []store.Event { return rows[:3] }, "ends with event 3"},
		{"everything is missing", func([]store.Event) []store.Event { return nil }, "ends with event 0"},
		{"event behind the end", func(rows []store.Event) []store.Event {
			rows[2].Type, rows[2].Data = "run_finished", []byte(`{"status":"failed","output":null}`)
			return rows
		}, "the run ended with event 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := asking(t)
			wantStatus(t, r.run(r.engine("w")), store.Waiting)
			whole := r.store
			bad := &tampered{Store: whole, events: func(rows []store.Event) []store.Event {
				if rows[len(rows)-1].Seq <= 4 { // what comes later is as it was written
					return tc.damage(rows)
				}
				return append(tc.damage(rows[:4:4]), rows[4:]...)
			}}
			r.store = bad
			e := r.engine("w2")
			ctx := context.Background()
			wantStop(t, advance(t, e), history.CodeCorrupt, "history of run run", tc.says, "other runs")
			wantStop(t, advance(t, e), history.CodeCorrupt, "history of run run")
			rows, err := whole.Events(ctx, "run", 0, 0)
			if err != nil || len(rows) != 5 || rows[4].Type != "run_stopped" {
				t.Fatalf("%d events (%v), want the 4 and one stop", len(rows), err)
			}
			if report, err := e.Report(ctx, "run"); err != nil || report.Error == nil || report.Error.Code != history.CodeCorrupt {
				t.Errorf("report %+v, %v", report.Error, err)
			}
			wantUsage(t, e.Answer(ctx, "run", engine.Reply{Ask: "1.0", Text: "x"}), "cannot be followed")
			if err := e.Resume(ctx, "run", engine.ResumeRequest{Restart: true}); !errors.Is(err, engine.ErrIncompatible) {
				t.Errorf("restart gave %v", err)
			}
			if _, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: "other"}); err != nil {
				t.Fatal(err)
			}
			if snap, err := e.Advance(ctx, "other"); err != nil || snap.Status != store.Waiting {
				t.Errorf("another run is disturbed: %v", err)
			}
			if err := e.Cancel(ctx, "run"); err != nil {
				t.Errorf("it cannot be cancelled: %v", err)
			}
			if report, err := e.Report(ctx, "run"); err != nil || report.Status != store.Cancelled {
				t.Errorf("after the cancel it is %s, %v", report.Status, err)
			}
		})
	}
}

func TestMissingDefinition(t *testing.T) {
	r := asking(t)
	wantStatus(t, r.run(r.engine("w")), store.Waiting)
	r.store = &tampered{Store: r.store, noFlow: true}
	wantStop(t, advance(t, r.engine("w2")), history.CodeCorrupt, "stored definition of its flow is missing")
}

func TestDefinitionThatThisProgramCannotRead(t *testing.T) {
	r := asking(t)
	wantStatus(t, r.run(r.engine("w")), store.Waiting)
	r.config = func(cfg *engine.Config) {
		cfg.Compile = func([]byte, string) (*machine.Machine, error) { return nil, errors.New("there is no handler wizard") }
	}
	old := r.engine("old")
	wantStop(t, advance(t, old), history.CodeHandler, "no handler wizard", "resume run --flow")
	wantStop(t, advance(t, old), history.CodeHandler)
	r.config = nil
	e := r.engine("w3")
	snap := advance(t, e)
	wantStatus(t, snap, store.Waiting)
	if got := trace(t, e, "run"); got != "run_started start asked run_waiting run_stopped run_resumed run_waiting" {
		t.Errorf("history %s", got)
	}
}

// A run whose process was lost after each of three take-ups without getting anywhere is not worked on again.
func TestPoison(t *testing.T) {
	r := asking(t)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		return "", step.End(store.Succeeded, nil)
	})
	never := func(c store.Commit) bool {
		return slices.ContainsFunc(c.Events, func(ev store.Event) bool { return ev.Type == "run_finished" })
	}
	for _, worker := range []string{"one", "two", "three", "four"} {
		r.die(worker, never)
	}
	e := r.heir("five")
	wantStop(t, advance(t, e), history.CodePoison, "lost 3 times", "resume run")
	if got := all[*history.RunResumed](t, e); len(got) != 4 || !got[3].Interrupted {
		t.Errorf("it was taken up %d times", len(got))
	}
	wantStatus(t, advance(t, e), store.Succeeded) // somebody has looked at it
}

func TestProgressIsNoPoison(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for range 6 {
			if err := step.Say("one more"); err != nil {
				return "", err
			}
		}
		return "next", nil
	})
	for _, worker := range []string{"a", "b", "c", "d", "e"} {
		said := 0
		r.die(worker, func(c store.Commit) bool {
			if slices.ContainsFunc(c.Events, func(ev store.Event) bool { return ev.Type == "said" }) {
				said++
			}
			return said > 1
		})
	}
	wantStatus(t, advance(t, r.heir("f")), store.Succeeded)
}

func TestFolderThatIsGone(t *testing.T) {
	r := asking(t)
	dir := filepath.Join(t.TempDir(), "flows")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.flow.Dir = dir
	wantStatus(t, r.run(r.engine("w")), store.Waiting)
	moved := dir + "-moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	r.config = func(cfg *engine.Config) {
		cfg.Compile = func(_ []byte, dir string) (*machine.Machine, error) {
			m := *r.flow
			m.Dir = dir
			return &m, nil
		}
	}
	e := r.engine("w2")
	wantStop(t, advance(t, e), history.CodeFolder, dir, "--dir")
	wantStop(t, advance(t, e), history.CodeFolder)
	wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0", Text: "x"}), "is gone")
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Dir: moved}); err != nil {
		t.Fatal(err)
	}
	snap := advance(t, e)
	wantStatus(t, snap, store.Waiting)
	if snap.Run.Dir != moved {
		t.Errorf("the folder is %s", snap.Run.Dir)
	}
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if got := strings.Count(trace(t, e, "run"), "run_stopped"); got != 1 {
		t.Errorf("the stop is recorded %d times", got)
	}
}

package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/store"
)

// Scenario is a run that can be repeated from nothing.
type Scenario struct {
	// World makes an empty world: a store, and whatever the run's tools change.
	World func() (World, error)
	// Answer answers the run's questions, those about writes in doubt among them.
	Answer func(w World, q history.Question) engine.Reply
	// Changing says that the lives differ in their environment (models, --approve-all). What later steps record of it is
	// then no difference.
	Changing bool
	// Check looks at the world when the run has ended; nil looks at nothing.
	Check func(w World) error
}

// World is one fresh world. The harness closes nothing of it.
type World interface {
	Store() store.Store
	// Engine makes the process of a life over s: life 0 is the first, 1 the one after the crash. The worker in cfg and
	// its judgement of others must be kept; the rest is the scenario's.
	Engine(life int, s store.Store, cfg engine.Config) (*engine.Engine, error)
	// Start starts the run.
	Start(ctx context.Context, e *engine.Engine) (run string, err error)
	// Close ends the world.
	Close() error
}

// Result is what a campaign saw.
type Result struct {
	Commits int // of the unbroken run
	Crashes int // how many crashes and failed commits were survived
}

// maxRounds bounds how often a run is brought on, so that a run that never ends is an error.
const maxRounds = 1000

// Run runs the scenario unbroken and then with every crash and every failed commit. The error of the first crash that was
// not survived says where it was and what differs.
func Run(ctx context.Context, sc Scenario) (Result, error) {
	var res Result
	whole, commits, err := sc.live(ctx, crashPoint{})
	if err != nil {
		return res, fmt.Errorf("unbroken: %w", err)
	}
	res.Commits = commits
	for at := 1; at <= commits; at++ {
		for _, point := range []crashPoint{{}, {written: true}, {survives: true}, {written: true, survives: true}} {
			point.at = at
			broken, _, err := sc.live(ctx, point)
			if err == nil {
				err = compare(sc.counts(whole), sc.counts(broken))
			}
			if err != nil {
				return res, fmt.Errorf("%s: %w", point, err)
			}
			res.Crashes++
		}
	}
	return res, nil
}

// noWait lets tools be called again at once.
func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// counts gives the events as they are compared.
func (sc Scenario) counts(events []history.Event) []history.Event {
	if !sc.Changing {
		return events
	}
	out := slices.Clone(events)
	for i, ev := range out {
		if d, ok := ev.Data.(*history.StateEntered); ok {
			out[i].Data = &history.StateEntered{Restarted: d.Restarted}
		}
	}
	return out
}

// crashPoint is the commit of the first process that goes wrong; the zero point is none.
type crashPoint struct {
	at       int  // number of the commit, from 1
	written  bool // it is written, and nobody is told
	survives bool // the process does not die: its store says that the commit failed
}

func (p crashPoint) String() string {
	switch {
	case p.at == 0:
		return "no crash"
	case p.survives && p.written:
		return fmt.Sprintf("lost answer of commit %d", p.at)
	case p.survives:
		return fmt.Sprintf("failed commit %d", p.at)
	case p.written:
		return fmt.Sprintf("crash after commit %d", p.at)
	}
	return fmt.Sprintf("crash before commit %d", p.at)
}

// live runs the scenario once, with a second process behind the crash, and gives its history and how many commits the
// first process made.
func (sc Scenario) live(ctx context.Context, point crashPoint) (h []history.Event, commits int, err error) {
	w, err := sc.World()
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	first := &mortal{Store: w.Store(), point: point}
	e, err := w.Engine(0, first, engine.Config{Worker: store.Worker{ID: "first"}, Sleep: noWait})
	if err != nil {
		return nil, 0, err
	}
	run, err := w.Start(ctx, e)
	if err == nil {
		err = sc.bring(ctx, w, e, run)
	}
	dead := first.gone() != nil
	if err != nil && !dead {
		return nil, 0, err
	}
	if dead {
		if e, run, err = sc.second(ctx, w, run); err != nil {
			return nil, 0, err
		}
	}
	e.Close()
	h, err = e.History(ctx, run)
	if err == nil && sc.Check != nil {
		err = sc.Check(w)
	}
	return h, first.count(), err
}

// second is the process after the crash: it knows that the first is gone, and takes the run up, or starts it where
// nothing of it was stored.
func (sc Scenario) second(ctx context.Context, w World, run string) (*engine.Engine, string, error) {
	e, err := w.Engine(1, w.Store(), engine.Config{Worker: store.Worker{ID: "second"}, Sleep: noWait,
		Gone: func(other store.Worker) bool { return other.ID == "first" }})
	if err != nil {
		return nil, "", err
	}
	rows, err := w.Store().Runs(ctx, store.Filter{Limit: 1})
	switch {
	case err != nil:
		return nil, "", err
	case len(rows) == 1:
		run = rows[0].ID
	default:
		if run, err = w.Start(ctx, e); err != nil {
			return nil, "", err
		}
	}
	return e, run, sc.bring(ctx, w, e, run)
}

// bring advances a run and answers its questions until it ends.
func (sc Scenario) bring(ctx context.Context, w World, e *engine.Engine, run string) error {
	for range maxRounds {
		snap, err := e.Advance(ctx, run)
		if errors.Is(err, engine.ErrFinished) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case snap.Status.Final():
			return nil
		case snap.Status == store.Stopped:
			return fmt.Errorf("the run stopped (%s): %s", snap.Stop.Code, snap.Stop.Message)
		case len(snap.Pending) == 0:
			return errors.New("the run waits, and nothing is asked")
		}
		q := snap.Pending[0]
		reply := sc.Answer(w, q)
		reply.Ask = q.ID
		if err := e.Answer(ctx, run, reply); err != nil {
			return err
		}
	}
	return fmt.Errorf("the run did not end in %d rounds", maxRounds)
}

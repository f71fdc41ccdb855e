package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Cancel ends a run. Where a live process works on it, that one is told and awaited: calls in flight get Config.Grace to
// end. Cancelling a cancelled run is no error; a run that ended otherwise is ErrFinished. When ctx ends first the notice
// stays and the run ends as soon as its process reads it.
func (e *Engine) Cancel(ctx context.Context, run string) error {
	n := store.Notice{Kind: store.NoticeCancel, Data: []byte("{}")}
	return e.notify(ctx, run, n, func(row store.Run, _ int64) (bool, error) {
		switch {
		case row.Status == store.Cancelled:
			return true, nil
		case row.Status.Final():
			return false, fmt.Errorf("%w: %s has %s", ErrFinished, run, row.Status)
		}
		return false, nil
	})
}

// Signal leaves a signal for a run; value may be nil. It returns when the signal stands in the run's history.
func (e *Engine) Signal(ctx context.Context, run, name string, value machine.Value) error {
	data, err := machine.EncodeValue(value)
	if err != nil {
		return usagef("give JSON", "the value of signal %s cannot be stored: %v", name, err)
	}
	data = e.cfg.Secrets.JSON(data)
	token := e.cfg.NewID()
	note, err := json.Marshal(signalNotice{Name: name, Value: data, Token: token})
	if err != nil {
		return err
	}
	return e.notify(ctx, run, store.Notice{Kind: store.NoticeSignal, Data: note}, e.arrived(ctx, run, token))
}

// Raise lifts a limit of a run by an amount (milliseconds for time). It returns when that stands in the run's history; a
// run at work goes by it at once, a stopped one when it is resumed.
func (e *Engine) Raise(ctx context.Context, run, limit string, by float64) error {
	if err := raisable(limit, by); err != nil {
		return err
	}
	token := e.cfg.NewID()
	note, err := json.Marshal(raiseNotice{Limit: limit, By: by, Token: token})
	if err != nil {
		return err
	}
	return e.notify(ctx, run, store.Notice{Kind: store.NoticeRaise, Data: note}, e.arrived(ctx, run, token))
}

// arrived says whether the event with a sender's token stands in the history.
func (e *Engine) arrived(ctx context.Context, run, token string) arrival {
	return func(row store.Run, after int64) (bool, error) {
		rows, err := e.cfg.Store.Events(ctx, run, after, 0)
		if err != nil {
			return false, readError(ctx, err)
		}
		for _, ev := range rows {
			if strings.Contains(string(ev.Data), token) {
				return true, nil
			}
		}
		if row.Status.Final() {
			return false, fmt.Errorf("%w: %s has %s", ErrFinished, run, row.Status)
		}
		return false, nil
	}
}

// arrival says whether what a notice asks for has come to pass: from the run's row, and from its events after a seq.
type arrival func(row store.Run, after int64) (bool, error)

// notify posts a notice and sees to it that it gets into the history: by the process that holds the run or, where none
// alive does, by this one.
func (e *Engine) notify(ctx context.Context, run string, n store.Notice, done arrival) error {
	row, err := e.row(ctx, run)
	if err != nil {
		return err
	}
	after := row.Seq
	if row.Status.Final() {
		_, err := done(row, after)
		return err
	}
	n.Run, n.At = run, e.now()
	if err := e.cfg.Store.Post(ctx, n); err != nil {
		return readError(ctx, err)
	}
	for {
		ok, err := e.pass(ctx, run, func(row store.Run) (bool, error) { return done(row, after) })
		switch {
		case ok:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s; the notice stays, and the process will read it (%w)", ErrBusy, run, ctx.Err())
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(noticePoll):
		}
	}
}

// pass tries to get the notices of a run into its history, and says whether what was asked for has come to pass.
func (e *Engine) pass(ctx context.Context, run string, done func(store.Run) (bool, error)) (bool, error) {
	err := e.consume(ctx, run)
	if errors.Is(err, ErrBusy) && e.holds(run) {
		e.beat() // another call of this process works on it, and reads its notices with the heartbeat
	}
	if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrFinished) {
		return false, err
	}
	row, err := e.row(ctx, run)
	if err != nil {
		return false, err
	}
	return done(row)
}

func (e *Engine) holds(run string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[run] != nil
}

// noticePoll is the time between two looks at whether the holder of a run has read a notice.
const noticePoll = 100 * time.Millisecond

// consume turns the notices of a run that nobody alive works on into events. A run that this process keeps for a later
// call stays with it.
func (e *Engine) consume(ctx context.Context, run string) error {
	s, err := e.own(run)
	if err != nil {
		return err
	}
	kept := s != nil
	if kept {
		e.beat()
	} else if s, _, err = e.hold(ctx, run); err != nil { // what keeps a run from working does not keep it from being told
		return err
	}
	s.mailMu.Lock()
	cancelled := s.cancelNotice() != nil
	s.mailMu.Unlock()
	switch {
	case cancelled:
		_, err = e.commitSurely(ctx, s, s.finishCancelled())
	case s.hasMail():
		_, err = e.commitSurely(ctx, s, change{events: s.roused()})
	}
	if kept && err == nil && !s.released && s.base != nil {
		e.park(s)
		return nil
	}
	e.drop(s)
	return storeError(err)
}

// ResumeRequest says how to take a run up.
type ResumeRequest struct {
	Raise      map[string]float64 // limits to lift, see Raise
	Restart    bool               // begin the present state anew
	RedoWrites bool               // allow that finished writes run again
	Dir        string             // absolute folder that the flow's relative paths start from now; "" keeps it

	// Flow is the definition to go on with; nil keeps the present one. Map gives the new name of a state whose name
	// changed.
	Flow *machine.Machine
	Map  map[string]string
}

// Resume prepares a run for Advance as the request says. Without anything asked for it does nothing. ErrIncompatible says
// what does not fit of another definition; *RedoError lists the writes that would run again. Nothing is recorded then.
func (e *Engine) Resume(ctx context.Context, run string, req ResumeRequest) error {
	if err := e.noSecrets(req.Flow, req.Dir, ""); err != nil {
		return err
	}
	limits := machine.SortedNames(req.Raise)
	for _, limit := range limits {
		if err := raisable(limit, req.Raise[limit]); err != nil {
			return err
		}
	}
	if !req.Restart && req.Flow == nil && req.Dir == "" {
		for _, limit := range limits {
			if err := e.Raise(ctx, run, limit, req.Raise[limit]); err != nil {
				return err
			}
		}
		return nil
	}
	s, h, err := e.grab(ctx, run)
	if err != nil {
		return err
	}
	if h != nil && !req.mends(h.stop.Code) {
		e.drop(s)
		return fmt.Errorf("%w: %s", ErrIncompatible, h.stop.Message)
	}
	events, err := s.change(ctx, req)
	if err == nil {
		_, err = e.commitSurely(ctx, s, change{events: events})
	}
	if err != nil {
		e.drop(s)
		return resumeError(err)
	}
	s.asleep = s.asleep && s.head.Status == store.Stopped
	return e.parkAnew(ctx, s)
}

// mends says whether the request changes what keeps a run from being worked on.
func (r ResumeRequest) mends(code history.StopCode) bool {
	return r.Dir != "" && code == history.CodeFolder ||
		r.Flow != nil && (code == history.CodeHandler || code == history.CodeFolder)
}

// resumeError leaves the errors that say why a run cannot go on like that as they are.
func resumeError(err error) error {
	var redo *RedoError
	if errors.Is(err, ErrIncompatible) || errors.As(err, &redo) {
		return err
	}
	return storeError(err)
}

func raisable(limit string, by float64) error {
	if !slices.Contains(LimitNames(), limit) {
		return usagef("a run has the limits "+strings.Join(LimitNames(), ", "), "there is no limit %s", limit)
	}
	if !(by > 0) || math.IsInf(by, 0) {
		return usagef("give how much more is allowed", "a limit is raised by a positive number, not by %v", by)
	}
	return nil
}

// parkAnew reads a run again after its definition, folder or step has changed, and keeps it for Advance.
func (e *Engine) parkAnew(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	row, err := e.row(ctx, s.id)
	var h *halt
	if err == nil {
		h, err = s.load(ctx, store.Claimed{Run: row})
	}
	if h != nil && err == nil {
		_, err = e.commitSurely(ctx, s, s.stopChange(h))
	}
	if err != nil || s.released {
		e.drop(s)
		return storeError(err)
	}
	e.park(s)
	return nil
}

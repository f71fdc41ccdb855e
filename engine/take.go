package engine

import (
	"context"
	"errors"
	"fmt"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// maxInterrupted is how often in a row a run may be taken up after a lost process without getting any further.
const maxInterrupted = 3

// row reads the row of a run.
func (e *Engine) row(ctx context.Context, run string) (store.Run, error) {
	rows, err := e.cfg.Store.Runs(ctx, store.Filter{ID: run})
	if err != nil {
		return store.Run{}, readError(ctx, err)
	}
	if len(rows) == 0 {
		return store.Run{}, fmt.Errorf("%w: %s", ErrUnknownRun, run)
	}
	return rows[0], nil
}

// take makes the run ours and ready to work on: the one that this process holds already, or a claimed one. That it was
// taken up is recorded.
func (e *Engine) take(ctx context.Context, run string) (*session, error) {
	s, h, err := e.grab(ctx, run)
	if err != nil {
		return nil, err
	}
	if h == nil {
		h, err = e.wake(ctx, s)
	}
	switch {
	case err != nil || h == nil:
	case s.stoppedFor(h):
		err = s.release()
	default:
		_, err = e.commitSurely(ctx, s, s.stopChange(h))
	}
	if err != nil {
		e.drop(s)
		return nil, storeError(err)
	}
	return s, nil
}

// grab takes the run as this process holds it, or claims it, without recording a take-up.
func (e *Engine) grab(ctx context.Context, run string) (*session, *halt, error) {
	if s, err := e.own(run); s != nil || err != nil {
		return s, nil, err
	}
	return e.hold(ctx, run)
}

// own gives the session of a run that this process holds between two calls. One that is at work in another goroutine is
// busy.
func (e *Engine) own(run string) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[run]
	switch {
	case !ok:
		return nil, nil
	case s.busy:
		return nil, fmt.Errorf("%w: %s", ErrBusy, run)
	}
	s.busy = true
	return s, nil
}

// hold claims a run and loads it. A halt says that it cannot be worked on.
func (e *Engine) hold(ctx context.Context, run string) (*session, *halt, error) {
	row, err := e.row(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	if row.Status.Final() {
		return nil, nil, fmt.Errorf("%w: %s has %s", ErrFinished, run, row.Status)
	}
	s := e.newSession(run)
	if !e.keep(s) {
		return nil, nil, fmt.Errorf("%w: %s", ErrBusy, run)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	claimed, err := e.claim(ctx, row)
	if err != nil {
		e.forgetSession(s)
		return nil, nil, claimError(run, err)
	}
	if claimed.Status.Final() {
		s.head, s.epoch = rowSnapshot(claimed.Run), claimed.Epoch
		e.drop(s)
		return nil, nil, fmt.Errorf("%w: %s has %s", ErrFinished, run, claimed.Status)
	}
	s.asleep, s.lost = true, row.Holder.ID != "" && row.Holder.ID != e.cfg.Worker.ID
	h, err := s.load(ctx, claimed)
	if err != nil {
		e.drop(s)
		return nil, nil, storeError(err)
	}
	return s, h, nil
}

// claim claims a run. One that the store says is ours already, although no session of ours has it, was given up when the
// store failed, or its release did: it is released first.
func (e *Engine) claim(ctx context.Context, row store.Run) (store.Claimed, error) {
	if row.Holder.ID == e.cfg.Worker.ID {
		err := e.cfg.Store.Commit(ctx, store.Commit{Run: row, ExpectSeq: row.Seq, Epoch: row.Epoch, Release: true})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return store.Claimed{}, err
		}
	}
	worker := e.cfg.Worker
	worker.Beat = e.now()
	return e.cfg.Store.Claim(ctx, store.Claim{Run: row.ID, Worker: worker, Now: worker.Beat, Stale: e.cfg.Stale, Gone: e.cfg.Gone})
}

func claimError(run string, err error) error {
	switch {
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("%w: %s", ErrBusy, run)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %s", ErrUnknownRun, run)
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// storeError gives an error of a commit its class.
func storeError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrStore), errors.Is(err, ErrLost):
		return err
	case errors.Is(err, store.ErrConflict):
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// readError gives an error of the store its class, where nothing of a run was written: what the caller has cancelled is no
// fault of the store.
func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// rowSnapshot is what is known of a run whose history cannot be folded.
func rowSnapshot(row store.Run) *history.Snapshot {
	s := history.New(row.ID)
	s.Run.Flow, s.Run.FlowHash, s.Run.Dir, s.Run.StartedAt = row.Flow, row.FlowHash, row.Dir, row.Created
	s.Status, s.Seq, s.At, s.Now.State, s.Spent.Usage = row.Status, row.Seq, row.Updated, row.State, row.Usage
	return s
}

// stoppedFor says whether a run that cannot be worked on is recorded as stopped already: a second event would say
// nothing new. The snapshot then carries the present reason.
func (s *session) stoppedFor(h *halt) bool {
	if s.head.Status != store.Stopped || h.kind != haltStopped {
		return false
	}
	known := s.head.Stop == nil || s.head.Stop.Code == h.stop.Code
	if known {
		stop := h.stop
		s.head.Stop = &stop
	}
	return known
}

// wake records that a run goes on which had stopped, or whose process is gone. A run that waits is only looked at.
func (e *Engine) wake(ctx context.Context, s *session) (*halt, error) {
	if !s.asleep {
		return nil, nil
	}
	events := s.roused()
	switch s.head.Status {
	case store.Running:
		if s.head.Spent.Interrupted >= maxInterrupted {
			return stopped(history.CodePoison, "look at its log before you go on with: flowctl resume "+s.id,
				"the process of this run was lost %d times in a row at the same place", maxInterrupted), nil
		}
	case store.Stopped:
		events = []history.Event{{Data: s.resumed()}}
	}
	if len(events) > 0 {
		if _, err := e.commitSurely(ctx, s, change{events: events}); err != nil {
			return nil, err
		}
	}
	s.asleep = false
	return nil, nil
}

// resumed is the event of a take-up by somebody. A step that stopped for its model goes by the model that there is now, if
// it can be called: what cannot be called changes nothing, so that a handler never takes another way than it took.
func (s *session) resumed() *history.RunResumed {
	resumed := &history.RunResumed{}
	stop := s.head.Stop
	if stop == nil || s.m == nil || stop.Code != history.CodeNoKey && stop.Code != history.CodeOutage {
		return resumed
	}
	if state, ok := s.m.State(s.head.Now.State); ok {
		if env := s.environment(state); env.Model == machine.ModelReady {
			env.ApproveAll = s.head.Now.Env.ApproveAll
			resumed.Env = &env
		}
	}
	return resumed
}

// roused is the event with which every commit to a claimed run begins that was left in the middle of its work: what has
// passed since then is nobody's working time.
func (s *session) roused() []history.Event {
	if !s.asleep || s.head.Status != store.Running {
		return nil
	}
	return []history.Event{{Data: &history.RunResumed{Interrupted: s.lost}}}
}

func (e *Engine) newSession(run string) *session {
	return &session{eng: e, id: run, busy: true, mailbox: mailbox{seen: map[int64]bool{}},
		past: past{stored: map[string]bool{}, texts: map[string]string{}, counts: map[string]*remembered{}}}
}

// keep registers a session; it is false when the run has one.
func (e *Engine) keep(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.sessions[s.id]; ok {
		return false
	}
	e.sessions[s.id] = s
	e.startBeating()
	return true
}

func (e *Engine) forgetSession(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.id] == s {
		delete(e.sessions, s.id)
	}
	e.restIfIdle()
}

// drop gives a run back, if it is still ours, and forgets it.
func (e *Engine) drop(s *session) {
	if err := s.release(); err != nil {
		e.cfg.Log.Warn().Err(err).Str("run", s.id).Msg("the run was not given back")
	}
	e.forgetSession(s)
}

// park keeps a run for the next call of this process.
func (e *Engine) park(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.busy = false
}

// Close gives back the runs that this engine holds between two calls. Calls under way must have returned.
func (e *Engine) Close() {
	e.mu.Lock()
	var parked []*session
	for _, s := range e.sessions {
		if !s.busy {
			s.busy = true
			parked = append(parked, s)
		}
	}
	e.mu.Unlock()
	for _, s := range parked {
		e.drop(s)
	}
	e.beats.Wait()
}

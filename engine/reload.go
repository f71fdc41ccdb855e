package engine

import (
	"context"
	"errors"
	"fmt"

	"flowctl/engine/history"
	"flowctl/store"
)

// maxReloads is how often in a row a run is read again after a failed commit before the store counts as broken.
const maxReloads = 3

// reload throws the memory of a run away after a failed commit and reads it again. The commit may have happened, which
// done says. A run that somebody else has taken is lost; a run whose history cannot be followed gives a halt.
func (e *Engine) reload(ctx context.Context, s *session, cause error) (done bool, h *halt, err error) {
	defer func() {
		if err != nil {
			s.released = true // it is not ours any more, or cannot be written
		}
	}()
	if errors.Is(cause, store.ErrConflict) {
		return false, nil, fmt.Errorf("%w: %w", ErrLost, cause)
	}
	if s.retries++; s.retries > maxReloads {
		return false, nil, fmt.Errorf("%w: %w", ErrStore, cause)
	}
	e.cfg.Log.Warn().Err(cause).Str("run", s.id).Msg("a commit failed; the run is read again")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	row, err := e.row(ctx, s.id)
	switch {
	case errors.Is(err, ErrUnknownRun) && s.flight.create:
		s.head, s.broken = history.New(s.id), nil
		return false, nil, nil
	case err != nil:
		return false, nil, fmt.Errorf("%w: %w", ErrStore, errors.Join(cause, err))
	case row.Epoch != s.epoch, row.Holder.ID != "" && row.Holder.ID != e.cfg.Worker.ID:
		return false, nil, fmt.Errorf("%w: %w", ErrLost, cause)
	}
	s.broken, s.released = nil, row.Holder.ID == ""
	if h, err = s.load(ctx, store.Claimed{Run: row}); err != nil {
		return false, nil, storeError(err)
	}
	if done = s.head.Seq >= s.flight.seq; !done {
		s.putBack(s.flight.mail)
	}
	s.flight.mail = nil
	return done, h, nil
}

// regain brings a run whose commit failed in the middle of its work back to where it can go on, or stops it.
func (e *Engine) regain(ctx context.Context, s *session, cause error) error {
	_, h, err := e.reload(ctx, s, cause)
	if err != nil || h == nil || s.released {
		return err
	}
	_, err = e.commitSurely(ctx, s, s.stopChange(h))
	return err
}

// commitSurely commits a change that no step makes. A commit that failed is looked for in the store and made again where
// it is not there.
func (e *Engine) commitSurely(ctx context.Context, s *session, c change) ([]history.Event, error) {
	for {
		stored, err := s.store(c)
		if err == nil {
			if s.base != nil {
				s.record = append(s.record, stored...)
			}
			return stored, nil
		}
		var bad *unstorableError
		if errors.As(err, &bad) || errors.Is(err, store.ErrExists) {
			return nil, err
		}
		done, h, err := e.reload(ctx, s, err)
		if err != nil || done {
			return nil, err
		}
		if h != nil && !c.release { // a run that cannot be followed can still be stopped and cancelled
			return nil, storeError(h)
		}
	}
}

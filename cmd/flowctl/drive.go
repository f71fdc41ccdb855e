package main

import (
	"context"
	"errors"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/store"
)

// drive advances one run until it ends, waits for somebody who is not here, or stops.
type drive struct {
	*place
	run string
	yes bool // answer confirmations
	ask bool // ask what is pending at this terminal
}

// advance works on the run and then prints its document. It returns the error of a run that could not be worked on; how
// a run ended is told by the exit code.
func (d *drive) advance(ctx context.Context) error {
	for {
		snap, err := d.eng.Advance(ctx, d.run)
		switch {
		case errors.Is(err, engine.ErrFinished):
			return d.finish(ctx)
		case err != nil:
			return d.failed(ctx, err)
		case snap.Status != store.Waiting || ctx.Err() != nil:
			return d.finish(ctx)
		}
		answered, err := d.reply(ctx, snap)
		if err != nil {
			return d.failed(ctx, err)
		}
		if !answered {
			return d.finish(ctx)
		}
	}
}

// reply answers what can be answered here. It is false when somebody else must.
func (d *drive) reply(ctx context.Context, snap *history.Snapshot) (answered bool, err error) {
	for _, q := range snap.Pending {
		done, q := false, snap.Mask.Question(q)
		switch {
		case d.yes && q.Kind == history.KindConfirm:
			yes := true
			done, err = taken(d.eng.Answer(ctx, d.run, engine.Reply{Ask: q.ID, Yes: &yes, By: history.ByFlag}))
		case d.ask:
			done, err = d.prompt(ctx, q)
			if err == nil && !done {
				return answered, nil // nobody at the terminal any more
			}
		}
		if err != nil {
			return answered, err
		}
		answered = answered || done
	}
	return answered, nil
}

// taken takes an answer that came too late for one: the run has moved on, and the next look at it shows where.
func taken(err error) (bool, error) {
	if errors.Is(err, engine.ErrNotPending) || errors.Is(err, engine.ErrFinished) {
		return true, nil
	}
	return err == nil, err
}

// finish prints the document of the run and sets the exit code by its status.
func (d *drive) finish(ctx context.Context) error {
	doc, err := d.eng.Report(context.WithoutCancel(ctx), d.run)
	if err != nil {
		return err
	}
	d.app.code = statusCode(doc.Status)
	if ctx.Err() != nil && !doc.Status.Final() {
		d.app.code = exitInterrupted
	}
	d.app.printOutcome(doc)
	return nil
}

// failed prints the document of a run that could not be worked on, for programs, and passes the error on.
func (d *drive) failed(ctx context.Context, err error) error {
	if d.app.json() {
		if doc, lost := d.eng.Report(context.WithoutCancel(ctx), d.run); lost == nil {
			d.app.printDocument(doc)
		}
	}
	return err
}

package main

import (
	"context"
	"fmt"
	"strings"

	"flowctl/engine"
	"flowctl/store"
)

// candidates is how many runs an ambiguous id lists.
const candidates = 10

// find gives the run that an id or the beginning of one names.
func (p *place) find(ctx context.Context, id string) (store.Run, error) {
	if id == "" {
		return store.Run{}, usagef("list the runs with: flowctl ls", "the run's id is empty")
	}
	rows, err := p.db.Runs(ctx, store.Filter{ID: id})
	if err == nil && len(rows) == 0 {
		rows, err = p.db.Runs(ctx, store.Filter{IDPrefix: id, Limit: candidates + 1})
	}
	switch {
	case err != nil:
		return store.Run{}, fmt.Errorf("%w: %w", engine.ErrStore, err)
	case len(rows) == 0:
		return store.Run{}, fmt.Errorf("%w: %s", engine.ErrUnknownRun, id)
	case len(rows) > 1:
		return store.Run{}, ambiguous(id, rows)
	}
	return rows[0], nil
}

func ambiguous(id string, rows []store.Run) error {
	names := make([]string, 0, len(rows))
	for i, row := range rows {
		if i == candidates {
			names = append(names, "…")
			break
		}
		names = append(names, row.ID)
	}
	return usagef("write more of it", "several runs begin with %s: %s", id, strings.Join(names, ", "))
}

// shortest is the least number of characters of an id that is shown; fewer would soon be ambiguous.
const shortest = 8

// shortID gives as much of a run's id as names it alone.
func (p *place) shortID(ctx context.Context, id string) (string, error) {
	for n := shortest; n < len(id); n++ {
		rows, err := p.db.Runs(ctx, store.Filter{IDPrefix: id[:n], Limit: 2})
		if err != nil {
			return "", fmt.Errorf("%w: %w", engine.ErrStore, err)
		}
		if len(rows) < 2 {
			return id[:n], nil
		}
	}
	return id, nil
}

// openRun opens the database and finds the run of a command that only reads.
func (a *app) openRun(ctx context.Context, id string) (*place, store.Run, error) {
	p, err := a.openExisting(ctx)
	if err != nil {
		return nil, store.Run{}, err
	}
	row, err := p.find(ctx, id)
	if err == nil {
		err = p.look()
	}
	if err != nil {
		p.close()
		return nil, store.Run{}, err
	}
	return p, row, nil
}

// openWork opens the database and finds the run of a command that works on it.
func (a *app) openWork(ctx context.Context, id string) (*place, store.Run, error) {
	p, err := a.openExisting(ctx)
	if err != nil {
		return nil, store.Run{}, err
	}
	row, err := p.find(ctx, id)
	if err == nil {
		err = p.startFor(ctx, row)
	}
	if err != nil {
		p.close()
		return nil, store.Run{}, err
	}
	return p, row, nil
}

package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flowctl/store"
)

// Runs implements store.Store.
func (s *Store) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	behind := s.runs[f.After]
	if f.After != "" && behind == nil {
		return nil, fmt.Errorf("run %s: %w", f.After, store.ErrNotFound)
	}
	var found []*run
	for _, r := range s.runs {
		if (behind == nil || newestFirst(behind, r) < 0) && r.fits(f) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, newestFirst)
	var got []store.Run
	for _, r := range found {
		if f.Limit > 0 && len(got) == f.Limit {
			break
		}
		row := s.shown(r)
		if f.Unheld == nil || row.Holder.ID == "" || f.Unheld(row.Holder) {
			got = append(got, row)
		}
	}
	return got, nil
}

// newestFirst orders runs as they are listed.
func newestFirst(a, b *run) int {
	return cmp.Or(b.row.Created.Compare(a.row.Created), cmp.Compare(b.row.ID, a.row.ID))
}

// fits looks at everything of a filter but After, Unheld and Limit.
func (r *run) fits(f store.Filter) bool {
	row := r.row
	return (f.ID == "" || row.ID == f.ID) &&
		strings.HasPrefix(row.ID, f.IDPrefix) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, row.Status)) &&
		(f.Flow == "" || row.Flow == f.Flow) &&
		(f.Parent == "" || row.Parent == f.Parent) &&
		(f.Owner == "" || row.Owner == f.Owner) &&
		(f.Since.IsZero() || !row.Updated.Before(stored(f.Since))) &&
		(f.Until.IsZero() || row.Updated.Before(stored(f.Until))) &&
		(f.Due.IsZero() || !row.Due.IsZero() && !row.Due.After(stored(f.Due))) &&
		(f.Text == "" || r.mentions(f.Text))
}

func (r *run) mentions(text string) bool {
	want := lowerASCII([]byte(text))
	return slices.ContainsFunc(r.events, func(e store.Event) bool { return bytes.Contains(lowerASCII(e.Data), want) })
}

func lowerASCII(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// holder gives the worker that holds a run, with its heartbeat row if there is one.
func (s *Store) holder(r *run) store.Worker {
	if w, ok := s.workers[r.row.Holder.ID]; ok {
		return w
	}
	return r.row.Holder
}

// shown is the row as it is handed out.
func (s *Store) shown(r *run) store.Run {
	row := r.row
	row.Holder = s.holder(r)
	row.Usage = copyUsage(row.Usage)
	return row
}

// stored is a time as the store keeps it: in UTC, to the millisecond.
func stored(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// copied is a copy that is never nil.
func copied(b []byte) []byte { return append([]byte{}, b...) }

func copyUsage(u store.Usage) store.Usage {
	if u.Cost != nil {
		cost := *u.Cost
		u.Cost = &cost
	}
	return u
}

func copyNotices(notices []store.Notice) []store.Notice {
	var got []store.Notice
	for _, n := range notices {
		n.Data = copied(n.Data)
		got = append(got, n)
	}
	return got
}

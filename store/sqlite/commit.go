package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"flowctl/store"
)

// Bounds of the events' packed key, which is below 1<<63 for the run behind the last one, too.
const (
	maxRuns = 1<<31 - 2
	maxSeq  = 1<<32 - 1
)

// eventID packs a run's number and a seq into the key of the events table. Seq 0 stands before the first event.
func eventID(no, seq int64) int64 { return no<<32 | seq }

// Commit implements store.Store.
func (db *DB) Commit(ctx context.Context, c store.Commit) error {
	if err := checkNumbering(c); err != nil {
		return err
	}
	return db.write(ctx, func(w *conn) error { return db.commit(w, c) })
}

// checkNumbering refuses events that would leave a gap or a double number.
func checkNumbering(c store.Commit) error {
	for i, e := range c.Events {
		if want := c.ExpectSeq + int64(i) + 1; e.Seq != want {
			return fmt.Errorf("run %s: event %d of the commit carries seq %d where %d follows: nothing was written",
				c.Run.ID, i, e.Seq, want)
		}
	}
	if c.ExpectSeq+int64(len(c.Events)) > maxSeq {
		return fmt.Errorf("run %s: a run holds at most %d events: start a new run", c.Run.ID, int64(maxSeq))
	}
	return nil
}

// commit writes the row first: that is where a conflict shows, before anything else is touched.
func (db *DB) commit(w *conn, c store.Commit) error {
	no, err := db.commitRow(w, c)
	if err != nil {
		return err
	}
	if err := insertEvents(w, no, c.Events); err != nil {
		return err
	}
	for _, b := range c.Blobs {
		if _, err := w.exec("INSERT INTO blobs (run, hash, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
			no, b.Hash, filled(b.Data)); err != nil {
			return err
		}
	}
	if err := writeMemories(w, c.Memory, db.now()); err != nil {
		return err
	}
	for _, id := range c.Consumed {
		if _, err := w.exec("DELETE FROM notices WHERE id = ? AND run = ?", id, no); err != nil {
			return err
		}
	}
	for _, n := range c.Post {
		if _, err := db.post(w, n); err != nil {
			return err
		}
	}
	if c.Checkpoint == nil {
		return nil
	}
	_, err = w.exec("INSERT INTO checkpoints (run, data) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET data = excluded.data",
		no, c.Checkpoint)
	return err
}

// head is what the writer remembers of a run that it has written: where its row is and what stands in it. With it a commit
// need not read the row first, and writes no column or index that stays as it is.
type head struct {
	no, seq, epoch int64
	steady         steady
}

// steady are the columns of a run that few commits change.
type steady struct {
	flow, flowHash, dir, parent, owner string
	status                             store.Status
	due                                int64
}

func steadyOf(r store.Run) steady {
	return steady{r.Flow, r.FlowHash, r.Dir, r.Parent, r.Owner, r.Status, millis(r.Due)}
}

// fits says whether a commit builds on just what is remembered, and changes only what every commit does.
func (h head) fits(c store.Commit) bool {
	return h.no != 0 && h.seq == c.ExpectSeq && h.epoch == c.Epoch && len(c.Events) > 0 && !c.Release &&
		h.steady == steadyOf(c.Run)
}

// maxHeads bounds how many runs are remembered.
const maxHeads = 10000

func (db *DB) remember(run string, h head) {
	if len(db.heads) >= maxHeads {
		clear(db.heads)
	}
	db.heads[run] = h
}

// commitRow creates or replaces the row of the run and gives its number.
func (db *DB) commitRow(w *conn, c store.Commit) (no int64, err error) {
	if c.ExpectSeq == 0 && len(c.Events) > 0 {
		return db.createRow(w, c)
	}
	if h := db.heads[c.Run.ID]; h.fits(c) {
		if ok, err := advanceRow(w, h.no, c); ok || err != nil {
			h.seq = c.Events[len(c.Events)-1].Seq
			db.remember(c.Run.ID, h)
			return h.no, err
		}
	}
	no, ok, err := w.number("SELECT no FROM runs WHERE id = ? AND seq = ? AND epoch = ?", c.Run.ID, c.ExpectSeq, c.Epoch)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, store.ErrConflict
	case len(c.Events) > 0:
		return no, db.replaceRow(w, no, c)
	case c.Release:
		_, err = w.exec("UPDATE runs SET holder = '' WHERE no = ?", no)
	}
	return no, err
}

// createRow makes a run that is not there.
func (db *DB) createRow(w *conn, c store.Commit) (no int64, err error) {
	r := c.Run
	holder := r.Holder.ID
	if c.Release {
		holder = ""
	}
	last := c.Events[len(c.Events)-1]
	changed, err := w.exec(`INSERT INTO runs (id, flow, flow_hash, dir, status, state, parent, owner, holder, seq, epoch, due,
		created, updated, steps, model_calls, tool_calls, prompt_tokens, completion_tokens, cost)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		r.ID, r.Flow, r.FlowHash, r.Dir, string(r.Status), r.State, r.Parent, r.Owner, holder, last.Seq, c.Epoch, due(r.Due),
		millis(r.Created), millis(last.At), r.Usage.Steps, r.Usage.ModelCalls, r.Usage.ToolCalls, r.Usage.PromptTokens,
		r.Usage.CompletionTokens, cost(r.Usage.Cost))
	if err != nil {
		return 0, err
	}
	if changed == 0 {
		return 0, store.ErrExists
	}
	no, _, err = w.number("SELECT no FROM runs WHERE id = ?", r.ID)
	if err == nil && no > maxRuns {
		err = fmt.Errorf("a database file holds at most %d runs: go on with a new file", int64(maxRuns))
	}
	db.remember(r.ID, head{no, last.Seq, c.Epoch, steadyOf(r)})
	return no, err
}

// advanceRow changes what every commit changes, and says whether the row stood as expected.
func advanceRow(w *conn, no int64, c store.Commit) (ok bool, err error) {
	r, last := c.Run, c.Events[len(c.Events)-1]
	changed, err := w.exec(`UPDATE runs SET state = ?, seq = ?, updated = ?, steps = ?, model_calls = ?, tool_calls = ?,
		prompt_tokens = ?, completion_tokens = ?, cost = ? WHERE no = ? AND id = ? AND seq = ? AND epoch = ?`,
		r.State, last.Seq, millis(last.At), r.Usage.Steps, r.Usage.ModelCalls, r.Usage.ToolCalls, r.Usage.PromptTokens,
		r.Usage.CompletionTokens, cost(r.Usage.Cost), no, r.ID, c.ExpectSeq, c.Epoch)
	return changed == 1, err
}

// replaceRow writes all of a row that a commit may change. The row has been found to stand as expected.
func (db *DB) replaceRow(w *conn, no int64, c store.Commit) error {
	r, last := c.Run, c.Events[len(c.Events)-1]
	if c.Release {
		if _, err := w.exec("UPDATE runs SET holder = '' WHERE no = ?", no); err != nil {
			return err
		}
	}
	_, err := w.exec(`UPDATE runs SET flow = ?, flow_hash = ?, dir = ?, status = ?, state = ?, parent = ?, owner = ?,
		seq = ?, due = ?, updated = ?, steps = ?, model_calls = ?, tool_calls = ?, prompt_tokens = ?, completion_tokens = ?,
		cost = ? WHERE no = ?`,
		r.Flow, r.FlowHash, r.Dir, string(r.Status), r.State, r.Parent, r.Owner, last.Seq, due(r.Due), millis(last.At),
		r.Usage.Steps, r.Usage.ModelCalls, r.Usage.ToolCalls, r.Usage.PromptTokens, r.Usage.CompletionTokens,
		cost(r.Usage.Cost), no)
	db.remember(r.ID, head{no, last.Seq, c.Epoch, steadyOf(r)})
	return err
}

func insertEvents(w *conn, no int64, events []store.Event) error {
	for _, e := range events {
		var key driver.Value
		if e.Key != "" {
			key = e.Key
		}
		if _, err := w.exec(`INSERT INTO events (id, at, type, state, visit, step, key, data)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			eventID(no, e.Seq), millis(e.At), e.Type, e.State, e.Visit, e.Step, key, string(e.Data)); err != nil {
			return err
		}
	}
	return nil
}

// writeMemories sets and deletes keys in the order of the writes.
func writeMemories(w *conn, writes []store.MemoryWrite, now time.Time) error {
	for _, m := range writes {
		if err := writeMemory(w, m, now); err != nil {
			return err
		}
	}
	return nil
}

// writeMemory sets or deletes one key, or gives a MemoryConflict.
func writeMemory(w *conn, m store.MemoryWrite, now time.Time) error {
	if m.Expect != nil {
		have := store.MemoryConflict{Namespace: m.Namespace, Key: m.Key}
		if err := w.query("SELECT version, value FROM memory WHERE namespace = ? AND key = ?", func(row []any) error {
			have.Version, have.Value = row[0].(int64), []byte(row[1].(string))
			return nil
		}, m.Namespace, m.Key); err != nil {
			return err
		}
		if have.Version != *m.Expect {
			return &have
		}
	}
	if m.Value == nil {
		_, err := w.exec("DELETE FROM memory WHERE namespace = ? AND key = ?", m.Namespace, m.Key)
		return err
	}
	_, err := w.exec(`INSERT INTO memory (namespace, key, value, version, updated_at)
		VALUES (?1, ?2, ?3, 1 + coalesce((SELECT version FROM memory_gone WHERE namespace = ?1 AND key = ?2), 0), ?4)
		ON CONFLICT (namespace, key) DO UPDATE
		SET value = excluded.value, version = version + 1, updated_at = excluded.updated_at`,
		m.Namespace, m.Key, string(m.Value), millis(now))
	return err
}

// millis is how a time is stored. The zero time has its own value, which reads back as zero.
func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// due is NULL for a run that waits for no time.
func due(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

func cost(c *float64) driver.Value {
	if c == nil {
		return nil
	}
	return *c
}

// filled makes nil an empty value, since a blob column takes no NULL.
func filled(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"flowctl/store"
)

// reads are the prepared queries of the readers' pool.
type reads struct {
	events, blob, source, remembered, cached, mentions *sql.Stmt
}

func (r *reads) prepare(ctx context.Context, db *sql.DB) error {
	for _, q := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&r.events, `SELECT e.id & 0xffffffff, e.at, e.type, e.state, e.visit, e.step, e.key, e.data
			FROM runs JOIN events e ON e.id > (runs.no << 32) + ? AND e.id < (runs.no + 1) << 32
			WHERE runs.id = ? ORDER BY e.id LIMIT ?`},
		{&r.blob, `SELECT data FROM blobs WHERE run = (SELECT no FROM runs WHERE id = ?) AND hash = ?`},
		{&r.source, `SELECT source FROM flows WHERE hash = ?`},
		{&r.remembered, `SELECT value, version, updated_at FROM memory WHERE namespace = ? AND key = ?`},
		{&r.cached, `SELECT data FROM cache WHERE key = ? AND until > ?`},
		{&r.mentions, `SELECT EXISTS (SELECT 1 FROM events
			WHERE id > (?1 << 32) AND id < (?1 + 1) << 32 AND instr(lower(data), ?2))`},
	} {
		stmt, err := db.PrepareContext(ctx, q.text)
		if err != nil {
			return err
		}
		*q.stmt = stmt
	}
	return nil
}

// Events implements store.Store.
func (db *DB) Events(ctx context.Context, run string, after int64, limit int) ([]store.Event, error) {
	if limit <= 0 {
		limit = -1 // SQLite's word for all
	}
	if after > maxSeq {
		return nil, nil
	}
	rows, err := db.reads.events.QueryContext(ctx, max(after, 0), run, limit)
	if err != nil {
		return nil, db.readError(run, err)
	}
	defer rows.Close()
	var got []store.Event
	for rows.Next() {
		var e store.Event
		var at int64
		var key sql.NullString
		if err := rows.Scan(&e.Seq, &at, &e.Type, &e.State, &e.Visit, &e.Step, &key, &e.Data); err != nil {
			return nil, db.readError(run, err)
		}
		e.At, e.Key = fromMillis(at), key.String
		got = append(got, e)
	}
	return got, db.readError(run, rows.Err())
}

// readError names the run whose data could not be read; the others may be well.
func (db *DB) readError(run string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("run %s: %w", run, explain(db.path, err))
}

// Blob implements store.Store.
func (db *DB) Blob(ctx context.Context, run, hash string) ([]byte, error) {
	var data []byte
	var err error
	if run == "" {
		err = db.reads.source.QueryRowContext(ctx, hash).Scan(&data)
	} else {
		err = db.reads.blob.QueryRowContext(ctx, run, hash).Scan(&data)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows) && run == "":
		return nil, fmt.Errorf("flow source %s: %w", hash, store.ErrNotFound)
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("run %s: blob %s: %w", run, hash, store.ErrNotFound)
	case err != nil:
		return nil, db.readError(run, err)
	}
	return filled(data), nil
}

// A row of a run with its holder; runFrom reads it.
const (
	runColumns = `runs.id, runs.flow, runs.flow_hash, runs.dir, runs.status, runs.state, runs.parent, runs.owner, runs.seq,
		runs.epoch, runs.due, runs.created, runs.updated, runs.steps, runs.model_calls, runs.tool_calls, runs.prompt_tokens,
		runs.completion_tokens, runs.cost, runs.holder, workers.boot, workers.namespace, workers.pid, workers.started,
		workers.beat`
	runTables = `runs LEFT JOIN workers ON workers.id = runs.holder`
)

// runFrom makes a run of the values of runColumns.
func runFrom(row []any) store.Run {
	text := func(i int) string { s, _ := row[i].(string); return s }
	number := func(i int) int64 { n, _ := row[i].(int64); return n }
	r := store.Run{
		ID: text(0), Flow: text(1), FlowHash: text(2), Dir: text(3), Status: store.Status(text(4)), State: text(5),
		Parent: text(6), Owner: text(7), Seq: number(8), Epoch: number(9), Created: fromMillis(number(11)),
		Updated: fromMillis(number(12)), Holder: store.Worker{ID: text(19)},
		Usage: store.Usage{Steps: number(13), ModelCalls: number(14), ToolCalls: number(15), PromptTokens: number(16),
			CompletionTokens: number(17)},
	}
	if due, ok := row[10].(int64); ok {
		r.Due = fromMillis(due)
	}
	if cost, ok := row[18].(float64); ok {
		r.Usage.Cost = &cost
	}
	if beat, ok := row[24].(int64); ok { // the holder's row is there
		r.Holder.Boot, r.Holder.Namespace, r.Holder.PID = text(20), text(21), int(number(22))
		r.Holder.Started, r.Holder.Beat = text(23), fromMillis(beat)
	}
	return r
}

// Runs implements store.Store.
func (db *DB) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	tx, err := db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, explain(db.path, err)
	}
	defer tx.Rollback() // nothing was written
	got, err := db.list(ctx, tx, f)
	return got, explain(db.path, err)
}

func (db *DB) list(ctx context.Context, tx *sql.Tx, f store.Filter) ([]store.Run, error) {
	where, args, err := conditions(ctx, tx, f)
	if err != nil {
		return nil, err
	}
	query := "SELECT runs.no, " + runColumns + " FROM " + runTables + where + " ORDER BY runs.created DESC, runs.id DESC"
	if f.Limit > 0 && f.Unheld == nil && f.Text == "" {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	mentions := tx.StmtContext(ctx, db.reads.mentions)
	row := make([]any, 26)
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	var got []store.Run
	for rows.Next() && (f.Limit <= 0 || len(got) < f.Limit) {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		run := runFrom(row[1:])
		if f.Unheld != nil && run.Holder.ID != "" && !f.Unheld(run.Holder) {
			continue
		}
		if f.Text != "" {
			var hit bool
			if err := mentions.QueryRowContext(ctx, row[0], lowerASCII(f.Text)).Scan(&hit); err != nil && !damaged(err) {
				return nil, err
			}
			if !hit { // a damaged history mentions nothing: it shall not hide the other runs
				continue
			}
		}
		got = append(got, run)
	}
	return got, rows.Err()
}

// conditions is the WHERE of a filter, less what only Go can decide.
func conditions(ctx context.Context, tx *sql.Tx, f store.Filter) (where string, args []any, err error) {
	var parts []string
	add := func(part string, values ...any) {
		parts = append(parts, part)
		args = append(args, values...)
	}
	if f.ID != "" {
		add("runs.id = ?", f.ID)
	}
	if f.IDPrefix != "" {
		add("runs.id >= ?", f.IDPrefix)
		if end := afterPrefix(f.IDPrefix); end != "" {
			add("runs.id < ?", end)
		}
	}
	if len(f.Status) > 0 {
		marks := strings.Repeat(", ?", len(f.Status))[2:]
		values := make([]any, len(f.Status))
		for i, s := range f.Status {
			values[i] = string(s)
		}
		add("runs.status IN ("+marks+")", values...)
	}
	if f.Flow != "" {
		add("runs.flow = ?", f.Flow)
	}
	if f.Parent != "" {
		add("runs.parent = ? AND runs.parent <> ''", f.Parent)
	}
	if f.Owner != "" {
		add("runs.owner = ?", f.Owner)
	}
	if !f.Since.IsZero() {
		add("runs.updated >= ?", millis(f.Since))
	}
	if !f.Until.IsZero() {
		add("runs.updated < ?", millis(f.Until))
	}
	if !f.Due.IsZero() {
		add("runs.due <= ?", millis(f.Due))
	}
	if f.After != "" {
		var created int64
		err := tx.QueryRowContext(ctx, "SELECT created FROM runs WHERE id = ?", f.After).Scan(&created)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil, fmt.Errorf("run %s: %w", f.After, store.ErrNotFound)
		} else if err != nil {
			return "", nil, err
		}
		add("(runs.created, runs.id) < (?, ?)", created, f.After)
	}
	if len(parts) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(parts, " AND "), args, nil
}

// afterPrefix is the smallest text above all that begin with the prefix, "" if there is none.
func afterPrefix(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) > 0 {
		b[len(b)-1]++
	}
	return string(b)
}

// lowerASCII does what SQLite's lower does.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

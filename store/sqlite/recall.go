package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"flowctl/store"
)

// Remembered implements store.Memory.
func (db *DB) Remembered(ctx context.Context, namespace, key string) (store.MemoryEntry, error) {
	e := store.MemoryEntry{Namespace: namespace, Key: key}
	var updated int64
	err := db.reads.remembered.QueryRowContext(ctx, namespace, key).Scan(&e.Value, &e.Version, &updated)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.MemoryEntry{}, fmt.Errorf("memory %s/%s: %w", namespace, key, store.ErrNotFound)
	case err != nil:
		return store.MemoryEntry{}, explain(db.path, err)
	}
	e.Updated = fromMillis(updated)
	return e, nil
}

// Memorize implements store.Memory.
func (db *DB) Memorize(ctx context.Context, writes []store.MemoryWrite) error {
	return db.write(ctx, func(w *conn) error { return writeMemories(w, writes, db.now()) })
}

// Memories implements store.Memory.
func (db *DB) Memories(ctx context.Context, f store.MemoryFilter) ([]store.MemoryEntry, error) {
	recall := store.NewRecall(f)
	if err := db.offer(ctx, f, recall); err != nil {
		return nil, explain(db.path, err)
	}
	return recall.Entries(), nil
}

// offer reads all entries that may be chosen.
func (db *DB) offer(ctx context.Context, f store.MemoryFilter, recall *store.Recall) error {
	var parts []string
	var args []any
	add := func(part string, values ...any) {
		parts = append(parts, part)
		args = append(args, values...)
	}
	if f.Namespace != "" {
		add("namespace = ?", f.Namespace)
	}
	if prefix := recall.Prefix(); prefix != "" {
		add("key >= ?", prefix)
		if end := afterPrefix(prefix); end != "" {
			add("key < ?", end)
		}
	}
	if either, values := holdsAny(recall.Words()); either != "" {
		add(either, values...)
	}
	value := "value"
	if f.Bare && f.Query == "" {
		value = "NULL"
	}
	query := "SELECT namespace, key, " + value + ", version, updated_at FROM memory"
	if len(parts) > 0 {
		query += " WHERE " + strings.Join(parts, " AND ")
	}
	if len(recall.Words()) == 0 {
		query += " ORDER BY namespace, key" // so that reading may end early
	}
	rows, err := db.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for !recall.Done() && rows.Next() {
		var e store.MemoryEntry
		var value sql.RawBytes // which is good until the next row; the recall copies what it keeps
		var updated int64
		if err := rows.Scan(&e.Namespace, &e.Key, &value, &e.Version, &updated); err != nil {
			return err
		}
		e.Value, e.Updated = value, fromMillis(updated)
		recall.Offer(e)
	}
	return rows.Err()
}

const (
	shortest  = 3  // characters of a word that the index knows
	beginning = 20 // characters of a word that are looked up in the index: each costs a look
	mostLikes = 3  // short words that SQLite looks for. It is slow at that: with more, all entries are read instead
)

// holdsAny is the condition that an entry holds any of the words, "" for none. It lets some through that hold none, never
// the other way round. Words have no character that means anything to LIKE or to the index.
func holdsAny(words []string) (condition string, args []any) {
	var indexed, parts []string
	var likes []any
	for _, w := range words {
		if utf8.RuneCountInString(w) < shortest {
			parts = append(parts, "key LIKE ? OR value LIKE ?")
			pattern := anyCase(w)
			likes = append(likes, pattern, pattern)
			continue
		}
		if r := []rune(w); len(r) > beginning {
			w = string(r[:beginning])
		}
		indexed = append(indexed, `"`+w+`"`)
	}
	if len(parts) > mostLikes {
		return "", nil
	}
	if len(indexed) > 0 {
		parts = append([]string{"id IN (SELECT rowid FROM memory_text WHERE memory_text MATCH ?)"}, parts...)
		args = append(args, strings.Join(indexed, " OR "))
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "(" + strings.Join(parts, " OR ") + ")", append(args, likes...)
}

// anyCase is a LIKE pattern for texts that hold the word. LIKE knows the two cases of ASCII letters only; for others it gets
// a joker.
func anyCase(word string) string {
	return "%" + strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && unicode.SimpleFold(r) != r {
			return '_'
		}
		return r
	}, word) + "%"
}

// Cached implements store.Cache.
func (db *DB) Cached(ctx context.Context, key string, now time.Time) ([]byte, error) {
	var data []byte
	err := db.reads.cached.QueryRowContext(ctx, key, millis(now)).Scan(&data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("cached answer %s: %w", key, store.ErrNotFound)
	case err != nil:
		return nil, explain(db.path, err)
	}
	return filled(data), nil
}

// PutCached implements store.Cache.
func (db *DB) PutCached(ctx context.Context, key string, data []byte, now, until time.Time) error {
	return db.write(ctx, func(w *conn) error {
		if _, err := w.exec(`INSERT INTO cache (key, until, data) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET until = excluded.until, data = excluded.data`,
			key, millis(until), filled(data)); err != nil {
			return err
		}
		_, err := w.exec("DELETE FROM cache WHERE until <= ?", millis(now))
		return err
	})
}

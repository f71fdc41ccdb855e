package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"flowctl/store"
)

// longDead is how old the heartbeat of a worker that holds nothing must be for its row to be dropped.
const longDead = 24 * time.Hour

// errNobody is returned where the zero Worker claims or beats.
var errNobody = errors.New("a worker without an id cannot hold a run: give it one that is unique for all time")

// Claim implements store.Store. A claim that fails writes nothing.
func (db *DB) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if c.Worker.ID == "" {
		return store.Claimed{}, errNobody
	}
	var got store.Claimed
	err := db.write(ctx, func(w *conn) (err error) {
		got, err = db.claim(w, c)
		return err
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return got, nil
}

func (db *DB) claim(w *conn, c store.Claim) (store.Claimed, error) {
	no, run, err := rowOf(w, c.Run)
	if err != nil {
		return store.Claimed{}, err
	}
	if held(run.Holder, c) {
		return store.Claimed{}, store.ErrBusy
	}
	c.Worker.Beat = c.Now
	if err := writeWorker(w, c.Worker); err != nil {
		return store.Claimed{}, err
	}
	if _, err := w.exec("UPDATE runs SET holder = ?, epoch = epoch + 1 WHERE no = ?", c.Worker.ID, no); err != nil {
		return store.Claimed{}, err
	}
	run.Epoch++
	run.Holder = c.Worker
	run.Holder.Beat = fromMillis(millis(c.Now))
	got := store.Claimed{Run: run}
	if err := w.query("SELECT data FROM checkpoints WHERE run = ?", func(row []any) error {
		data, _ := row[0].([]byte)
		got.Checkpoint = filled(data)
		return nil
	}, no); err != nil {
		return store.Claimed{}, err
	}
	got.Notices, err = notices(w, "runs.no = ?", no)
	return got, err
}

// rowOf reads a run with its holder inside the writer's transaction.
func rowOf(w *conn, id string) (no int64, run store.Run, err error) {
	found := false
	err = w.query("SELECT runs.no, "+runColumns+" FROM "+runTables+" WHERE runs.id = ?", func(row []any) error {
		no, found = row[0].(int64), true
		run = runFrom(row[1:])
		return nil
	}, id)
	if err == nil && !found {
		err = fmt.Errorf("run %s: %w", id, store.ErrNotFound)
	}
	return no, run, err
}

// held says whether a live worker, or the claimant itself, holds the run.
func held(holder store.Worker, c store.Claim) bool {
	switch {
	case holder.ID == "":
		return false
	case holder.ID == c.Worker.ID:
		return true
	case fromMillis(millis(c.Now)).Sub(holder.Beat) > c.Stale: // a heartbeat that is missing is of the zero time
		return false
	}
	return c.Gone == nil || !c.Gone(holder)
}

// Beat implements store.Store. It also drops the rows of workers that are long dead and hold nothing.
func (db *DB) Beat(ctx context.Context, worker store.Worker) ([]store.Notice, error) {
	if worker.ID == "" {
		return nil, errNobody
	}
	var got []store.Notice
	err := db.write(ctx, func(w *conn) error {
		if err := writeWorker(w, worker); err != nil {
			return err
		}
		if _, err := w.exec(`DELETE FROM workers WHERE beat < ? AND NOT EXISTS
			(SELECT 1 FROM runs WHERE holder = workers.id AND holder <> '')`, millis(worker.Beat.Add(-longDead))); err != nil {
			return err
		}
		var err error
		got, err = notices(w, "runs.holder = ? AND runs.holder <> ''", worker.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func writeWorker(w *conn, worker store.Worker) error {
	_, err := w.exec(`INSERT INTO workers (id, boot, namespace, pid, started, beat) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, namespace = excluded.namespace, pid = excluded.pid,
		started = excluded.started, beat = excluded.beat`,
		worker.ID, worker.Boot, worker.Namespace, int64(worker.PID), worker.Started, millis(worker.Beat))
	return err
}

// notices reads the notices of some runs, oldest first.
func notices(w *conn, which string, arg driver.Value) ([]store.Notice, error) {
	var got []store.Notice
	err := w.query(`SELECT notices.id, runs.id, notices.kind, notices.at, notices.data
		FROM runs JOIN notices ON notices.run = runs.no WHERE `+which+` ORDER BY notices.id`, func(row []any) error {
		got = append(got, store.Notice{ID: row[0].(int64), Run: row[1].(string), Kind: store.NoticeKind(row[2].(string)),
			At: fromMillis(row[3].(int64)), Data: []byte(row[4].(string))})
		return nil
	}, arg)
	return got, err
}

// Post implements store.Store.
func (db *DB) Post(ctx context.Context, n store.Notice) error {
	return db.write(ctx, func(w *conn) error {
		found, err := db.post(w, n)
		if err == nil && !found {
			err = fmt.Errorf("run %s: %w", n.Run, store.ErrNotFound)
		}
		return err
	})
}

// post leaves a notice if its run is there.
func (db *DB) post(w *conn, n store.Notice) (found bool, err error) {
	added, err := w.exec("INSERT INTO notices (run, kind, at, data) SELECT no, ?, ?, ? FROM runs WHERE id = ?",
		string(n.Kind), millis(n.At), string(n.Data), n.Run)
	return added == 1, err
}

// PutFlow implements store.Store.
func (db *DB) PutFlow(ctx context.Context, hash string, source []byte) error {
	return db.write(ctx, func(w *conn) error {
		_, err := w.exec("INSERT INTO flows (hash, source) VALUES (?, ?) ON CONFLICT DO NOTHING", hash, filled(source))
		return err
	})
}

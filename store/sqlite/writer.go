package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	turn     = 50 * time.Millisecond // how long the lead may be handed on without a rest
	rest     = time.Millisecond      // what another process gets to take the lock
	poll     = rest / 2              // how often the writer looks whether the lock is free, so that no rest is missed
	walLarge = 4 * walLimit          // bytes from which on the write-ahead log is cut down by force
)

// errClosed is returned for a call after Close.
var errClosed = errors.New("the database is closed")

// An op is what one caller writes. It runs inside a transaction of its own or, by a savepoint, as good as one, and may be
// run again from the start when a neighbour's failure took the transaction along. An error undoes all of it.
type op func(*conn) error

// request is one caller's op on its way.
type request struct {
	op       op
	err      error
	panicked any       // what the op panicked with
	wake     chan bool // true: take the lead; false: the answer is there
}

// writer commits what callers queue, in groups. There is no goroutine of its own: the caller that finds nobody leading
// leads, which means that it alone uses the connection. It commits one group and hands the lead to the first in the queue.
type writer struct {
	file    string // absolute path of the database
	connect func(context.Context) (*conn, error)
	undone  func()              // called by the leader when something that an op wrote is rolled back
	now     func() time.Time    // for pacing only
	sleep   func(time.Duration) // for pacing only

	mu      sync.Mutex
	queue   []*request
	leading bool
	closed  bool
	quiet   sync.Cond // nobody leads

	// The rest belongs to the leader.
	conn     *conn     // nil: to be opened
	suspect  bool      // the connection may be in a wrong state: where BEGIN fails on it, it is replaced
	began    time.Time // when the present turn began
	groups   int64     // transactions committed so far
	logLimit int64     // bytes of the write-ahead log at which to cut it down
}

func newWriter(file string, connect func(context.Context) (*conn, error), undone func()) *writer {
	w := &writer{file: file, connect: connect, undone: undone, now: time.Now, sleep: time.Sleep, logLimit: walLarge}
	w.quiet.L = &w.mu
	return w
}

// do carries an op out and returns when it is durable, or undone. A context that ends before the op was queued is
// returned as its error; after that the caller waits, since the op happens in any case.
func (w *writer) do(ctx context.Context, o op) error {
	r := &request{op: o, wake: make(chan bool, 1)}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, r)
	first := !w.leading
	w.leading = true
	w.mu.Unlock()
	if first {
		w.began = w.now()
	}
	if first || <-r.wake {
		w.lead(r)
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.err
}

// lead commits one group, of which self is the first, answers the others and hands the lead on.
func (w *writer) lead(self *request) {
	w.pace()
	beginErr := w.begin() // before the queue is taken: who comes while we wait for the lock is in the group
	w.mu.Lock()
	group := w.queue
	w.queue = nil
	w.mu.Unlock()
	if beginErr != nil {
		for _, r := range group {
			r.err = beginErr
		}
	} else if !w.transact(group) {
		w.oneByOne(group)
	}
	w.limitLog()
	for _, r := range group {
		if r != self {
			r.wake <- false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		w.queue[0].wake <- true
		return
	}
	w.leading = false
	w.quiet.Broadcast()
}

// pace rests after a turn of groups in which the lead was handed on and on. Without it, another process that polls for the
// lock might hardly ever find it free.
func (w *writer) pace() {
	if w.now().Sub(w.began) >= turn {
		w.sleep(rest)
		w.began = w.now()
	}
}

// begin starts a transaction that holds the write lock. It waits for other processes, and opens the connection anew after
// trouble.
func (w *writer) begin() error {
	for deadline := time.Now().Add(patience); ; {
		err := w.tryBegin()
		switch {
		case err == nil:
			w.suspect = false
			return nil
		case busy(err) && time.Now().Before(deadline):
			w.sleep(poll)
		case w.suspect:
			_ = w.conn.close() // it is of no use: BEGIN has just failed on it
			w.conn, w.suspect = nil, false
		default:
			w.suspect = w.conn != nil
			return err
		}
	}
}

func (w *writer) tryBegin() error {
	if err := w.open(context.Background()); err != nil {
		return err
	}
	_, err := w.conn.exec("BEGIN IMMEDIATE")
	return err
}

// open makes the connection if there is none.
func (w *writer) open(ctx context.Context) (err error) {
	if w.conn == nil {
		w.conn, err = w.connect(ctx)
	}
	return err
}

// transact runs a group in the open transaction and commits it. It reports false when the transaction of several requests
// broke: nothing was written then, and none of them has its answer.
func (w *writer) transact(group []*request) bool {
	good := 0
	for _, r := range group {
		if !w.apply(r, len(group) > 1) {
			w.rollback()
			return false
		}
		if r.ok() {
			good++
		}
	}
	if good == 0 {
		w.rollback()
		return true
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		if full(err) && len(group) > 1 {
			return false // certainly not written, and what is smaller may fit
		}
		for _, r := range group {
			// Nobody knows whether it was written. What was found out on the way, such as a conflict with a neighbour,
			// is as uncertain.
			r.err = err
		}
		return true
	}
	w.groups++
	return true
}

// apply runs one request. In a group it stands in a savepoint, so that its failure leaves the neighbours alone; apply
// reports false when the whole transaction is gone, which SQLite does when the file may not grow.
func (w *writer) apply(r *request, grouped bool) bool {
	r.err, r.panicked = nil, nil
	if grouped {
		if _, err := w.conn.exec("SAVEPOINT one"); err != nil {
			return false
		}
	}
	func() {
		defer func() { r.panicked = recover() }()
		r.err = r.op(w.conn)
	}()
	if !grouped {
		return true
	}
	if !r.ok() {
		w.undone()
		if _, err := w.conn.exec("ROLLBACK TO one"); err != nil {
			return false
		}
	}
	_, err := w.conn.exec("RELEASE one")
	return err == nil
}

func (r *request) ok() bool { return r.err == nil && r.panicked == nil }

// oneByOne gives each request of a broken group its own transaction, so that only the one that broke it fails.
func (w *writer) oneByOne(group []*request) {
	for _, r := range group {
		if r.err = w.begin(); r.err == nil {
			w.transact([]*request{r}) // of one request: always true
		}
	}
}

func (w *writer) rollback() {
	w.undone()
	if _, err := w.conn.exec("ROLLBACK"); err != nil {
		w.suspect = true // there may be no transaction any more, or something worse
	}
}

// limitLog cuts the write-ahead log down when it has grown large, which happens while somebody reads without a pause:
// SQLite's own checkpoints never wait for readers. This one does, for a tenth of a second.
func (w *writer) limitLog() {
	if w.conn == nil || w.groups%64 != 0 {
		return
	}
	if w.logSize() < w.logLimit {
		return
	}
	err := w.conn.script("PRAGMA busy_timeout = 100")
	if err == nil {
		err = w.conn.script("PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if e := w.conn.script("PRAGMA busy_timeout = 0"); err != nil || e != nil {
		w.suspect = true
	}
	w.logLimit = max(walLarge, 2*w.logSize()) // where it did not help, the next try is later
}

// logSize is the size of the write-ahead log in bytes, 0 if there is none.
func (w *writer) logSize() int64 {
	info, err := os.Stat(w.file + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// close waits until nobody leads, then closes the connection. A second close does nothing.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.leading {
		w.quiet.Wait()
	}
	if w.conn == nil {
		return nil
	}
	err := w.conn.close()
	w.conn = nil
	return err
}

package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sentinel errors. Any other error of Commit is ambiguous: the commit may have happened, so the caller throws its memory
// of the run away and reads it again.
var (
	// ErrConflict is returned by Commit when the run's seq or epoch is not the expected one: somebody else has written
	// or taken the run. Nothing was written.
	ErrConflict = errors.New("the run was changed by somebody else")
	// ErrExists is returned by Commit with ExpectSeq 0 when there is a run of that id. Nothing was written.
	ErrExists = errors.New("a run of that id exists")
	// ErrBusy is returned by Claim when a live worker, this one included, holds the run.
	ErrBusy = errors.New("the run is held by a live worker")
	// ErrNotFound is returned for a run, or a blob, that is not there.
	ErrNotFound = errors.New("not found")
	// ErrNewerSchema is returned, wrapped, on opening a store that a newer version has written.
	ErrNewerSchema = errors.New("the store was written by a newer version")
)

// MemoryConflict is returned by Commit when a MemoryWrite expects another version than the stored one. Nothing of the
// commit was written.
type MemoryConflict struct {
	Namespace, Key string
	Version        int64  // the stored version, 0 if there is no such key, or not any more
	Value          []byte // the stored value, nil if there is no such key
}

func (e *MemoryConflict) Error() string {
	return fmt.Sprintf("memory %s/%s is at version %d, not the expected one", e.Namespace, e.Key, e.Version)
}

// Store keeps runs. Each call is one transaction; all calls are safe for concurrent use, also from several processes on
// one database. Byte slices that are handed in are not kept or changed; those handed out belong to the caller. Times are
// kept to the millisecond, in UTC.
type Store interface {
	// Commit appends events to one run and replaces its row, all or nothing, and returns when that is durable.
	//
	// ExpectSeq 0 with at least one event creates the run, with Commit.Epoch as its epoch and Commit.Run.Holder as its
	// holder (ErrExists). Otherwise the run must stand at exactly ExpectSeq and Epoch (ErrConflict), and its id, Created
	// and holder stay as they are, except that Release clears the holder. Without events the row keeps everything but
	// what Consumed, Release, Memory, Post and Checkpoint say. A Consumed notice that is not there, or is another run's, is
	// ignored, and so is one of Post for a run that is not there. Events whose Seq does not count on are refused. A context
	// that ends before the commit has begun is its error, and nothing was written; after that it is not looked at.
	Commit(ctx context.Context, c Commit) error

	// Claim makes the worker of the claim the holder of a run and raises the run's epoch by one. It succeeds when the run
	// has no holder, or when its holder's heartbeat row is missing, older than Claim.Stale at Claim.Now, or of a worker
	// for which Claim.Gone says true; otherwise ErrBusy. A run that the worker itself holds is ErrBusy as well. It also
	// writes the worker's own heartbeat row, with Claim.Now as its beat. ErrNotFound when there is no such run. A finished run
	// can be claimed. A claim that fails writes nothing.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Beat writes the heartbeat row of a worker and gives the notices of all runs that it holds, oldest first.
	Beat(ctx context.Context, w Worker) ([]Notice, error)

	// Post leaves a notice for a run; the store gives it its ID. It never touches a history. ErrNotFound when there is no
	// such run.
	Post(ctx context.Context, n Notice) error

	// Runs lists runs, newest first (by Created, then by id, descending). ErrNotFound when there is no run Filter.After.
	Runs(ctx context.Context, f Filter) ([]Run, error)

	// Events gives the events of a run with a seq above after, in order, at most limit of them (0: all). A run that is not
	// there has none.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)

	// Blob gives a stored blob of a run; run "" is a flow's source. ErrNotFound when it is not there.
	Blob(ctx context.Context, run, hash string) ([]byte, error)

	// PutFlow stores a flow's source by its hash. Storing it again changes nothing.
	PutFlow(ctx context.Context, hash string, source []byte) error
}

// Status is what a run does.
type Status string

// The statuses of a run. The last three are final.
const (
	Running   Status = "running"
	Waiting   Status = "waiting" // for a human, a timer, a signal or a child
	Stopped   Status = "stopped" // resumable
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Final says whether the status never changes again.
func (s Status) Final() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Run is the row of a run.
type Run struct {
	ID       string
	Flow     string // the flow's name
	FlowHash string
	Dir      string // folder that the flow's relative paths start from
	Status   Status
	State    string // the present state
	Parent   string // id of the run whose child this is, "" for none
	Owner    string // who may see it, "" for everybody
	Holder   Worker // of Claim or creation; the zero Worker if nobody holds it. Commit reads its ID only
	Seq      int64  // of the newest event
	Epoch    int64  // raised by every claim
	Due      time.Time
	Created  time.Time
	Updated  time.Time // of the newest event
	Usage    Usage
}

// Usage is what a run has used. Tokens are as the endpoint reports them.
type Usage struct {
	Steps            int64    `json:"steps"`
	ModelCalls       int64    `json:"model_calls"`
	ToolCalls        int64    `json:"tool_calls"`
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
	Cost             *float64 `json:"cost"` // nil where no prices are known
}

// Event is one entry of a run's history. Data is a JSON object.
type Event struct {
	Seq   int64 // from 1, without gaps
	At    time.Time
	Type  string
	State string
	Visit int64
	Step  int64
	Key   string // of an effect, else ""
	Data  []byte
}

// Blob is a piece of data of a run, named by the hash of its content. Storing it again changes nothing.
type Blob struct {
	Hash string
	Data []byte
}

// Commit is one append to one run.
type Commit struct {
	Run        Run
	ExpectSeq  int64
	Epoch      int64
	Events     []Event // Seq counts on from ExpectSeq
	Blobs      []Blob
	Memory     []MemoryWrite
	Consumed   []int64 // ids of notices that these events take up
	Post       []Notice
	Checkpoint []byte // nil keeps the stored one
	Release    bool
}

// MemoryWrite sets or deletes one key of the long-term memory. Every write of a value raises the key's version by
// one: a new key starts at 1, one that was deleted goes on from the version that it had, so that no version is ever that
// of two values. A store keeps that version, with namespace and key, for good.
type MemoryWrite struct {
	Namespace, Key string
	Value          []byte // JSON; nil deletes. A search reads this text: letters that it escapes (\u732b) are not found
	Expect         *int64 // nil: whatever the version; 0: the key must not exist, be it new or deleted
}

// Claim asks for a run.
type Claim struct {
	Run    string
	Worker Worker
	Now    time.Time
	Stale  time.Duration     // a heartbeat older than this is a dead worker's
	Gone   func(Worker) bool // nil: nobody is known to be gone. It must be quick and must not call the store
}

// Claimed is a run that now belongs to the worker of the claim.
type Claimed struct {
	Run
	Checkpoint []byte // nil if there is none
	Notices    []Notice
}

// Worker is a process that holds runs. The zero Worker is nobody.
type Worker struct {
	ID        string // unique for all time
	Boot      string // id of the machine's present boot
	Namespace string // of process ids
	PID       int
	Started   string    // start time of the process, as the system tells it
	Beat      time.Time // newest heartbeat
}

// NoticeKind says what a notice asks for.
type NoticeKind string

// The kinds of notices.
const (
	NoticeCancel NoticeKind = "cancel"
	NoticeSignal NoticeKind = "signal"
	NoticeRaise  NoticeKind = "raise"
	NoticeChild  NoticeKind = "child"
)

// Notice is a word left for a run by somebody who does not hold it.
type Notice struct {
	ID   int64 // given by the store, rising
	Run  string
	Kind NoticeKind
	At   time.Time
	Data []byte // a JSON object
}

// Filter chooses runs. Zero fields choose all.
type Filter struct {
	ID       string // exactly this run
	IDPrefix string
	Status   []Status
	Flow     string
	Parent   string
	Owner    string
	Since    time.Time         // Updated at or after
	Until    time.Time         // Updated before
	Due      time.Time         // has a due time, at or before this
	Unheld   func(Worker) bool // only runs that nobody holds, or whose holder this says true of; as quick as Claim.Gone
	Text     string            // some event's data holds this, ignoring ASCII case
	After    string            // id of a run: only what is listed behind it
	Limit    int               // 0: all
}

// Memory is the optional ability to read the long-term memory, and to write it outside of a run.
type Memory interface {
	// Remembered gives one entry, ErrNotFound if there is none.
	Remembered(ctx context.Context, namespace, key string) (MemoryEntry, error)

	// Memories lists entries: with Query the best hits first, else by namespace and key.
	Memories(ctx context.Context, f MemoryFilter) ([]MemoryEntry, error)

	// Memorize writes outside of a run, all or nothing, under the same rules as Commit.Memory: a *MemoryConflict says that
	// a write expects another version, and nothing was written.
	Memorize(ctx context.Context, writes []MemoryWrite) error
}

// MemoryEntry is one key of the long-term memory.
type MemoryEntry struct {
	Namespace, Key string
	Value          []byte // JSON; nil where MemoryFilter.Bare leaves it out
	Version        int64
	Updated        time.Time
}

// MemoryFilter chooses entries of the long-term memory. Zero fields choose all.
type MemoryFilter struct {
	Namespace string // exactly this one
	Keys      string // a pattern for the whole key: * stands for any text, all else for itself
	// Query is what key or value must be about: words, of which more found make a better hit, whatever the order. A word is
	// letters, digits and emoji in a row; all else parts words and means nothing, so any text will do, such as a message. It
	// is found inside longer words, too. A query without a word finds nothing, and only the first MaxWords different words
	// count. Of writing without spaces (Chinese, Japanese, Thai) every two neighbours are a word.
	//
	// Case does not matter in Latin, Greek, Cyrillic, Armenian and full-width letters, taken one by one: ß is not ss, and a
	// final ς is not σ. Accents matter, as does how they are encoded. Text with zero bytes or broken UTF-8 may be missed.
	Query string
	Limit int  // 0: all
	Bare  bool // entries are given without their values, which is quick where values are large
}

// Cache is the optional ability to keep answers of models between runs.
type Cache interface {
	// Cached gives what was kept under a key, ErrNotFound if that is nothing or its time was up at now.
	Cached(ctx context.Context, key string, now time.Time) ([]byte, error)

	// PutCached keeps data under a key until a time, in place of what was there. Everything whose time is up at now is
	// dropped on the way.
	PutCached(ctx context.Context, key string, data []byte, now, until time.Time) error
}

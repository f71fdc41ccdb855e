package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// A checkpoint is stored at a step's entry when checkpointEvery events have passed since the last one, and a quarter of
// the whole history: it grows with the run, so storing it at a fixed interval would write more and more.
const (
	checkpointEvery = 64
	checkpointShare = 4
)

// commitTime bounds one commit, which no cancelled context stops.
const commitTime = time.Minute

// session is one run at work in this process: what is known of it, and the only place that writes its history. commit may
// be called from several goroutines; everything else belongs to the goroutine that advances the run.
type session struct {
	eng *Engine
	id  string
	lease
	definition
	past
	mailbox

	mu      sync.Mutex
	broken  error  // set when a commit failed: the rest is not to be trusted
	flight  flight // the newest commit, to find out after a failure whether it happened
	retries int    // reloads since the last good commit
	leaving leaving
	busy    bool // guarded by Engine.mu: some call works with the session
}

// lease says how the run is ours.
type lease struct {
	epoch    int64
	owner    string // who may see the run
	released bool   // it is given back, or was lost
	asleep   bool   // claimed, and its take-up is not recorded yet
	lost     bool   // it was claimed from a process that is gone
}

// definition is what the run goes by.
type definition struct {
	m     *machine.Machine
	tools map[string]tool.Tool
	fsm   *runFSM
}

// past is the run's history, folded.
type past struct {
	head       *history.Snapshot      // after the newest event
	base       *history.Snapshot      // at the entry of the present step, to replay record on; nil once the step was entered live
	record     []history.Event        // recorded of the present step when the session was loaded
	checkpoint int64                  // seq of the stored checkpoint
	stored     map[string]bool        // hashes of blobs that are known to be stored
	texts      map[string]string      // blobs that were read, by their hash
	counts     map[string]*remembered // of tokens, by the model's name at its endpoint
}

// mailbox holds the notices for the run that are read and not yet taken up.
type mailbox struct {
	mailMu sync.Mutex
	mail   []store.Notice
	seen   map[int64]bool          // ids of notices that were read
	stop   context.CancelCauseFunc // of the work under way; nil between advances
}

// change is one commit.
type change struct {
	events  []history.Event
	blobs   []store.Blob
	memory  []store.MemoryWrite
	release bool
}

// flight is a commit on its way: the seq that the run has when it happened, and the notices that it takes up.
type flight struct {
	seq    int64
	create bool // it makes the run
	mail   []store.Notice
}

// unstorableError is a value that has no stored form, such as a Go channel. Nothing was written.
type unstorableError struct{ err error }

func (e *unstorableError) Error() string { return e.err.Error() }
func (e *unstorableError) Unwrap() error { return e.err }

// commit appends events to the run: each gets its number, time and place, is encoded, redacted, stored and decoded
// again, so that what the caller then finds in the head is what is stored. Notices that wait for the run are taken up in
// the same transaction.
func (s *session) commit(c change) error {
	_, err := s.store(c)
	return err
}

// store commits and gives the events as they are stored. Only an *unstorableError and a *store.MemoryConflict leave the
// session as it was.
func (s *session) store(c change) ([]history.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	expect := s.head.Seq
	taken, consumed := s.takeMail(c)
	s.markSecrets(c.events)
	rows, evs, err := s.encode(withNotices(c.events, taken))
	if err != nil {
		s.putBack(taken)
		return nil, err
	}
	var before *history.Snapshot
	if len(c.memory) > 0 { // the only commit that may be refused for what it says
		before = s.head.Clone()
	}
	s.flight = flight{seq: expect + int64(len(rows)), create: expect == 0, mail: taken}
	if err := s.apply(rows, evs); err != nil {
		s.broken = err
		return nil, err
	}
	commit := store.Commit{Run: s.row(), ExpectSeq: expect, Epoch: s.epoch, Events: rows, Consumed: consumed,
		Blobs: s.newBlobs(c.blobs), Memory: c.memory, Release: c.release, Checkpoint: s.maybeCheckpoint(evs)}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	if err := s.eng.cfg.Store.Commit(ctx, commit); err != nil {
		var conflict *store.MemoryConflict
		if before != nil && errors.As(err, &conflict) {
			*s.head = *before
			s.putBack(taken)
			return nil, err
		}
		s.broken = err
		return nil, err
	}
	s.retries, s.flight.mail = 0, nil
	for _, b := range commit.Blobs {
		s.stored[b.Hash] = true
	}
	if commit.Checkpoint != nil {
		s.checkpoint = s.head.Seq
	}
	s.released = c.release
	if s.eng.cfg.Observe != nil {
		for _, ev := range evs {
			s.eng.cfg.Observe(s.id, s.head.Mask.Event(ev))
		}
	}
	return evs, nil
}

// markSecrets marks what is written into secret variables.
func (s *session) markSecrets(events []history.Event) {
	for _, ev := range events {
		if d, ok := ev.Data.(*history.VarSet); ok {
			d.Secret = s.head.Mask.Hides(d.Name)
		}
	}
}

// newBlobs leaves out what this session has stored already.
func (s *session) newBlobs(blobs []store.Blob) []store.Blob {
	var out []store.Blob
	for _, b := range blobs {
		if !s.stored[b.Hash] {
			out = append(out, b)
		}
	}
	return out
}

// encode gives events in their stored form, redacted, and as they read from there.
func (s *session) encode(events []history.Event) ([]store.Event, []history.Event, error) {
	redact := s.eng.redact()
	rows := make([]store.Event, len(events))
	evs := make([]history.Event, len(events))
	for i, ev := range events {
		var err error
		if rows[i], err = history.Encode(ev, redact); err == nil {
			evs[i], err = history.Decode(rows[i])
		}
		if err != nil {
			return nil, nil, &unstorableError{err}
		}
	}
	return rows, evs, nil
}

// apply gives events their number, time and place and applies them to the head.
func (s *session) apply(rows []store.Event, evs []history.Event) error {
	now := s.eng.now()
	for i := range evs {
		ev, row := &evs[i], &rows[i]
		ev.Seq, ev.At = s.head.Seq+1, now
		if ev.State == "" {
			ev.State, ev.Step, ev.Visit = s.head.Now.State, s.head.Now.Step, s.head.Now.Visit
		}
		row.Seq, row.At, row.State, row.Step, row.Visit = ev.Seq, ev.At, ev.State, ev.Step, ev.Visit
		if err := history.Apply(s.head, *ev); err != nil {
			return err
		}
	}
	return nil
}

// maybeCheckpoint gives a checkpoint at a step's entry when enough has happened since the last one.
func (s *session) maybeCheckpoint(evs []history.Event) []byte {
	if len(evs) == 0 || s.head.Seq-s.checkpoint < max(checkpointEvery, s.head.Seq/checkpointShare) {
		return nil
	}
	if _, entry := evs[len(evs)-1].Data.(*history.StateEntered); !entry {
		return nil
	}
	data, err := s.head.Checkpoint()
	if err != nil {
		s.eng.cfg.Log.Warn().Err(err).Str("run", s.id).Msg("no checkpoint was made")
		return nil
	}
	return data
}

// row is the run's row after the head.
func (s *session) row() store.Run {
	h := s.head
	return store.Run{ID: s.id, Flow: h.Run.Flow, FlowHash: h.Run.FlowHash, Dir: h.Run.Dir, Status: h.Status,
		State: h.Now.State, Owner: s.owner, Holder: s.eng.cfg.Worker, Seq: h.Seq, Epoch: s.epoch, Due: h.Due(), Created: h.Run.StartedAt,
		Updated: h.At, Usage: h.Spent.Usage}
}

// release gives the run back without an event.
func (s *session) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released || s.broken != nil {
		return s.broken
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	err := s.eng.cfg.Store.Commit(ctx, store.Commit{Run: s.row(), ExpectSeq: s.head.Seq, Epoch: s.epoch, Release: true})
	if err != nil {
		s.broken = err
		return err
	}
	s.released = true
	return nil
}

// load reads a claimed run: it compiles the definition that the run goes by and folds the history to the entry of the
// present step. A run whose definition or history cannot be read gives a halt that stops it.
func (s *session) load(ctx context.Context, claimed store.Claimed) (*halt, error) {
	s.epoch, s.owner = claimed.Epoch, claimed.Owner
	s.stored, s.texts = map[string]bool{}, map[string]string{}
	s.deliver(claimed.Notices)
	if h, err := s.fold(ctx, claimed); h != nil || err != nil {
		s.base, s.record, s.head = nil, nil, rowSnapshot(claimed.Run)
		return h, err
	}
	m, err := s.eng.machine(ctx, s.head.Run.FlowHash, s.head.Run.Dir)
	var gone *folderGone
	switch {
	case errors.As(err, &gone):
		return stopped(history.CodeFolder, "say where it is now with: flowctl resume "+s.id+" --dir FOLDER",
			"the folder %s of flow %s is gone", gone.dir, s.head.Run.Flow), nil
	case errors.Is(err, store.ErrNotFound):
		return corrupt(s.id, errors.New("the stored definition of its flow is missing")), nil
	case errors.Is(err, ErrStore):
		return nil, err
	case err != nil:
		return stopped(history.CodeHandler, "use the program that started this run, or switch with: flowctl resume "+s.id+" --flow FILE",
			"this program cannot run the stored definition of flow %s: %v", s.head.Run.Flow, err), nil
	}
	return s.setMachine(m), nil
}

// setMachine builds what depends on the definition.
func (s *session) setMachine(m *machine.Machine) *halt {
	s.m = m
	if _, ok := m.State(s.head.Now.State); !ok {
		return corrupt(s.id, fmt.Errorf("its flow has no state %s", s.head.Now.State))
	}
	tools, err := s.eng.buildTools(m)
	if err != nil {
		return stopped(history.CodeHandler, "when that is mended, go on with: flowctl resume "+s.id, "%v", err)
	}
	s.tools = tools
	s.fsm = newRunFSM(m, s.head.Now.State, s.moveTo)
	return nil
}

// fold reads the history from its newest checkpoint, or from its first event where there is none that leads to the run's
// present seq.
func (s *session) fold(ctx context.Context, claimed store.Claimed) (*halt, error) {
	if start := s.checkpointOf(claimed); start != nil {
		h, err := s.foldFrom(ctx, start, claimed.Seq)
		if h == nil || err != nil {
			return h, err
		}
		s.eng.cfg.Log.Warn().Str("run", s.id).Msg("the checkpoint does not go with the history and is left aside")
	}
	s.checkpoint = 0
	return s.foldFrom(ctx, history.New(s.id), claimed.Seq)
}

// checkpointOf reads the stored checkpoint, nil if it is of no use.
func (s *session) checkpointOf(claimed store.Claimed) *history.Snapshot {
	if claimed.Checkpoint == nil {
		return nil
	}
	snap, err := history.FromCheckpoint(claimed.Checkpoint)
	if err != nil || snap.Run.ID != s.id || snap.Seq > claimed.Seq {
		s.eng.cfg.Log.Warn().Err(err).Str("run", s.id).Msg("the checkpoint cannot be read and is left aside")
		return nil
	}
	return snap
}

// foldFrom folds the history behind start: base to the entry of the present step, head to its end at seq.
func (s *session) foldFrom(ctx context.Context, start *history.Snapshot, seq int64) (*halt, error) {
	rows, err := s.eng.cfg.Store.Events(ctx, s.id, start.Seq, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	evs, err := history.DecodeAll(rows, start.Seq)
	if err != nil {
		return corrupt(s.id, err), nil
	}
	entry := 0
	for i, ev := range evs {
		if _, ok := ev.Data.(*history.StateEntered); ok {
			entry = i + 1
		}
	}
	if s.base, err = history.Fold(start, evs[:entry]); err != nil {
		return corrupt(s.id, err), nil
	}
	if s.head, err = history.Fold(s.base, evs[entry:]); err != nil {
		return corrupt(s.id, err), nil
	}
	if s.head.Seq != seq || s.head.Now.State == "" {
		return corrupt(s.id, fmt.Errorf("it ends with event %d, expected %d", s.head.Seq, seq)), nil
	}
	s.record, s.checkpoint = evs[entry:], start.Seq
	return nil, nil
}

// loadText fetches the text of a message that came from a checkpoint. A *history.DamagedError says that it is not there.
func (s *session) loadText(msg *history.Message) error {
	if msg.Loaded {
		return nil
	}
	rows, err := s.eng.cfg.Store.Events(storeContext(), s.id, msg.Seq-1, 1)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return &history.DamagedError{Seq: msg.Seq, Err: errors.New("it is missing")}
	}
	evs, err := history.DecodeAll(rows, msg.Seq-1)
	if err != nil {
		return err
	}
	msg.Load(evs[0])
	return nil
}

// storeContext is for reads in the middle of a step: what has ended the step is for its next effect to say.
func storeContext() context.Context { return context.Background() }

// folderGone is a flow's folder that is not there.
type folderGone struct{ dir string }

func (e *folderGone) Error() string { return "the folder " + e.dir + " is gone" }

// machine gives the compiled definition of a hash, whose relative paths start from dir.
func (e *Engine) machine(ctx context.Context, hash, dir string) (*machine.Machine, error) {
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return nil, &folderGone{dir: dir}
	}
	key := hash + "\n" + dir
	e.mu.Lock()
	m, ok := e.machines[key]
	e.mu.Unlock()
	if ok {
		return m, nil
	}
	source, err := e.cfg.Store.Blob(ctx, "", hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	m, err = e.cfg.Compile(source, dir)
	if err != nil {
		return nil, err
	}
	e.remember(hash, dir, m)
	return m, nil
}

// remember keeps the compiled machine of a stored definition for the next run that goes by it.
func (e *Engine) remember(hash, dir string, m *machine.Machine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machines[hash+"\n"+dir] = m
}

// buildTools makes the tools of a flow.
func (e *Engine) buildTools(m *machine.Machine) (map[string]tool.Tool, error) {
	tools := make(map[string]tool.Tool, len(m.Tools))
	for _, item := range m.Tools {
		kind, ok := e.cfg.Tools[item.Value.Kind]
		if !ok {
			return nil, fmt.Errorf("tool %s is of kind %s, which this program does not have", item.Name, item.Value.Kind)
		}
		made, err := kind.New(item.Value, tool.Env{Machine: m, Dir: m.Dir, Getenv: e.cfg.Getenv})
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", item.Name, err)
		}
		tools[item.Name] = made
	}
	return tools, nil
}

func (e *Engine) now() time.Time { return e.cfg.Now().UTC().Truncate(time.Millisecond) }

func (e *Engine) redact() func([]byte) []byte {
	if e.cfg.Secrets == nil {
		return nil
	}
	return e.cfg.Secrets.JSON
}

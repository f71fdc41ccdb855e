package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Call is one tool call that a handler asks for.
type Call struct {
	Tool string

	// Args are the arguments: a machine.Values, nil for none, or a json.RawMessage with what a model wrote.
	Args any

	// Direct says that the flow itself makes the call, not a model: a result that is unknown then follows the tool's
	// in_doubt instead of being handed to the handler.
	Direct bool

	// SecretArgs names the arguments that hold the value of a secret variable, SecretResult says that the result is for one:
	// they are given and stored as they are, and shown to nobody.
	SecretArgs   []string
	SecretResult bool

	id string // of the model's call that this is
}

// CheckCall says whether another state could make a call: its arguments as they would be run, or the refusal.
func (st *Step) CheckCall(state string, call Call) (machine.Values, *tool.Result) {
	other, ok := st.s.m.State(state)
	if !ok {
		return nil, refusedResult("there is no state %s", state)
	}
	set, err := tool.NewSet(st.s.tools, other.Tools)
	if err != nil {
		return nil, refusedResult("%v", err)
	}
	call.Args = st.s.clean(call.Args)
	p, refusal := prepare(set, call)
	return p.Values, refusal
}

// Call makes a batch of tool calls and gives their results in call order, one for each, whatever happens to the others.
// Approvals and questions about writes whose result is unknown are asked inside: then Call returns an error, the handler
// returns with it, and is called again when the answers are there.
func (st *Step) Call(calls ...Call) ([]tool.Result, error) {
	past, key, err := st.begin()
	if err != nil {
		return nil, err
	}
	set, err := st.tools()
	if err != nil {
		return nil, err
	}
	b := st.newBatch(key, calls, set)
	if err := b.recall(past); err != nil {
		return nil, err
	}
	if st.wentOn() {
		b.recallOutages()
	}
	for !b.complete() {
		if err := b.work(); err != nil {
			return nil, err
		}
	}
	results := make([]tool.Result, len(b.calls))
	for i, c := range b.calls {
		results[i] = *c.result
	}
	return results, nil
}

// rawArgs are the arguments of a call as a model wrote them.
func rawArgs(text string) json.RawMessage { return json.RawMessage(text) }

func prepare(set *tool.Set, call Call) (tool.Prepared, *tool.Result) {
	switch args := call.Args.(type) {
	case json.RawMessage:
		return set.Prepare(call.Tool, args)
	case machine.Values:
		return set.PrepareValues(call.Tool, args)
	case nil:
		return set.PrepareValues(call.Tool, nil)
	case error:
		return tool.Prepared{}, refusedResult("the arguments of %s cannot be stored: %v", call.Tool, args)
	}
	return tool.Prepared{}, refusedResult("the arguments of %s must be an object, not %s", call.Tool,
		machine.FormatValue(call.Args))
}

func refusedResult(format string, args ...any) *tool.Result {
	return &tool.Result{Status: tool.Refused, Problem: machine.Problem{Kind: string(tool.Refused),
		Message: fmt.Sprintf(format, args...)}}
}

// batch is one Call effect: the calls with what is recorded of each.
type batch struct {
	st    *Step
	key   string
	calls []*batchCall
	mu    sync.Mutex // held while a call's goroutine commits
}

// batchCall is one call of a batch. Its fields follow the call's events.
type batchCall struct {
	Call
	key      string
	prepared tool.Prepared
	refusal  *tool.Result // by the check of its arguments
	settled  *tool.Result // known without a run, and not recorded yet: denied, or a human said how it ended
	result   *tool.Result // once it is recorded
	started  int          // how often it was started
	open     bool         // started, and not known to have ended or not to have happened
	tries    int          // how often it ran in this process with an unknown end
	doubts   int          // how often a human was asked whether it happened
	pending  bool         // a question about it is open
	approved *history.Answered
	redo     bool            // a human said that it did not happen
	failed   machine.Problem // of the newest failed attempt
	memory   *tool.Memory    // what it reads and writes of the long-term memory
	words    words
}

func (st *Step) newBatch(key string, calls []Call, set *tool.Set) *batch {
	b := &batch{st: st, key: key}
	for i, call := range calls {
		call.Tool, call.Args = st.s.eng.cfg.Secrets.Text(call.Tool), st.s.clean(call.Args)
		c := &batchCall{Call: call, key: key, words: st.s.words()}
		if len(calls) > 1 {
			c.key = fmt.Sprintf("%s.%d", key, i)
		}
		if c.prepared, c.refusal = prepare(set, call); c.refusal != nil && len(c.SecretArgs) > 0 {
			c.refusal = c.unseen(set)
		}
		b.calls = append(b.calls, c)
	}
	return b
}

// clean makes arguments what storing them would make of them: Go's own types become values, and secrets are taken out. So
// what is checked, approved, recorded and run is one value, which replay finds again.
func (s *session) clean(args any) any {
	switch x := args.(type) {
	case machine.Values:
		v, err := machine.Normalize(x)
		if err != nil {
			return err // which prepare refuses
		}
		if clean, ok := s.eng.cfg.Secrets.Value(v).(machine.Values); ok {
			return clean
		}
	case json.RawMessage:
		return json.RawMessage(s.eng.cfg.Secrets.JSON(x))
	}
	return args
}

// args are the arguments as they are recorded: as checked, or as given where the check refused them.
func (c *batchCall) args() machine.Value {
	if c.refusal == nil {
		return c.prepared.Values
	}
	switch args := c.Args.(type) {
	case machine.Values:
		return args
	case json.RawMessage:
		if v, err := machine.DecodeValue(args); err == nil {
			return v
		}
		return string(args)
	}
	return nil
}

func (c *batchCall) effect() machine.Effect { return c.prepared.Tool.Spec.Effect }

// recall takes over what is recorded of the batch. The record must be of the same calls.
func (b *batch) recall(past []history.Event) error {
	for _, ev := range past {
		c := b.of(ev.Key)
		if c == nil || !b.follow(c, ev) {
			return b.st.diverged(b.key, "called "+b.describe(), ev)
		}
	}
	return nil
}

// of finds the call that an event belongs to: its key is the call's own or one nested in it.
func (b *batch) of(key string) *batchCall {
	for _, c := range b.calls {
		if rest, ok := strings.CutPrefix(key, c.key); ok && (rest == "" || rest[0] == '/') {
			return c
		}
	}
	return nil
}

func (b *batch) describe() string {
	if len(b.calls) == 1 {
		return b.calls[0].Tool
	}
	return fmt.Sprintf("%d tools", len(b.calls))
}

// recall follows one event of the call; it is false when the event is of another call than this.
func (c *batchCall) recall(ev history.Event) bool {
	switch d := ev.Data.(type) {
	case *history.ToolStarted:
		c.started++
		c.open, c.redo = true, false
		return d.Tool == c.Tool && machine.EqualValues(machine.Value(d.Args), c.args())
	case *history.ToolFinished:
		c.result, c.open = &d.Result, false
		return d.Tool == c.Tool && machine.EqualValues(d.Args, c.args())
	case *history.Asked:
		c.pending = true
		if d.Kind == history.KindInDoubt {
			c.doubts++
		}
		return (d.Kind == history.KindInDoubt || d.Kind == history.KindApproval) && d.Tool == c.Tool &&
			machine.EqualValues(d.Args, c.args())
	case *history.Answered:
		c.pending, c.approved = false, d
	case *history.DoubtResolved:
		c.pending = false
		c.resolve(d)
	case *history.AttemptFailed:
		c.failed = d.Problem
		c.open = c.open && !d.NotDone
	default:
		return false
	}
	return true
}

// resolve follows a human's word on a write whose result was unknown. The result itself is recorded next.
func (c *batchCall) resolve(d *history.DoubtResolved) {
	switch d.Verdict {
	case history.NotDone:
		c.open, c.redo = false, true
	case history.Done:
		c.settled = &tool.Result{Status: tool.OK, Value: d.Value}
	case history.GiveUp:
		c.settled = unknownResult(c.words, c.Tool)
	}
}

func unknownResult(w words, name string) *tool.Result {
	return &tool.Result{Status: tool.Unknown, Problem: machine.Problem{Kind: string(tool.Unknown), Message: w.unknown(name)}}
}

func (b *batch) complete() bool {
	for _, c := range b.calls {
		if c.result == nil {
			return false
		}
	}
	return true
}

// outlivesTime says whether a human has to be asked about a write although the step's time may be up: the step would
// otherwise end without anybody knowing of it, and whoever comes back to the state would do it again.
func (b *batch) outlivesTime() bool {
	if cause := context.Cause(b.st.ctx); cause != nil && !errors.Is(cause, errTimeUp) {
		return false
	}
	for _, c := range b.open() {
		if c.open && c.doubtful(nil) && c.prepared.Tool.Spec.InDoubt == machine.InDoubtAsk {
			return true
		}
	}
	return false
}

// work brings the batch on: it settles what needs no run, runs the reads that nothing waits for, asks what has to be
// asked before the first write, and runs the rest.
func (b *batch) work() error {
	st := b.st
	if h := st.goLive(); h != nil {
		return st.kill(h)
	}
	if !b.outlivesTime() {
		if err := st.check(); err != nil {
			return err
		}
	}
	if err := b.settle(); err != nil {
		return err
	}
	questions, waiting, err := b.questions()
	if err != nil {
		return err
	}
	if len(questions) > 0 || waiting {
		if st.ctx.Err() == nil {
			if err := b.run(b.readable(questions)); err != nil {
				return err
			}
		}
		return st.suspend(questions...)
	}
	return b.run(b.open())
}

// open gives the calls that have no result.
func (b *batch) open() []*batchCall {
	var open []*batchCall
	for _, c := range b.calls {
		if c.result == nil {
			open = append(open, c)
		}
	}
	return open
}

// readable gives the reads that may run while a human is asked: those that nobody is asked about, and that have no write
// before them whose result they might be meant to see.
func (b *batch) readable(questions []history.Event) []*batchCall {
	asked := map[*batchCall]bool{}
	for _, q := range questions {
		asked[b.of(q.Key)] = true
	}
	var reads []*batchCall
	for _, c := range b.open() {
		if !c.prepared.Read() {
			break
		}
		if !c.pending && !asked[c] {
			reads = append(reads, c)
		}
	}
	return reads
}

// settle records the results that need no run: refused arguments, denied approvals, resolved doubts.
func (b *batch) settle() error {
	var events []history.Event
	for _, c := range b.open() {
		switch {
		case c.pending:
			continue
		case c.refusal != nil:
			c.settled = c.refusal
		case c.settled != nil:
		case c.approved != nil && c.approved.Value != true:
			c.settled = c.denied()
		case c.doubtful(b.st.snap.Unknown) && c.prepared.Tool.Spec.InDoubt == machine.InDoubtFail:
			c.settled = unknownResult(c.words, c.Tool)
		}
		if c.settled != nil {
			events = append(events, c.finished(*c.settled, 0))
		}
	}
	if len(events) == 0 {
		return nil
	}
	return b.record(events...)
}

// record commits events of the batch and follows them as they are stored.
func (b *batch) record(events ...history.Event) error {
	stored, err := b.st.write(change{events: events})
	if err != nil {
		return err
	}
	for _, ev := range stored {
		if c := b.of(ev.Key); c != nil {
			b.follow(c, ev)
		}
	}
	return nil
}

// follow follows one event of a call; it is false when the event is of another call than this. Where the result of a call is
// unknown, what a human said before of an equal one, that it did not happen, does not hold any more.
func (b *batch) follow(c *batchCall, ev history.Event) bool {
	ok := c.recall(ev)
	failed, tried := ev.Data.(*history.AttemptFailed)
	finished, _ := ev.Data.(*history.ToolFinished)
	if tried && !failed.NotDone || finished != nil && finished.Result.Status == tool.Unknown {
		for _, other := range b.calls {
			if other != c && other.Tool == c.Tool && machine.EqualValues(other.args(), c.args()) {
				other.redo = false
			}
		}
	}
	return ok
}

// finished is the event of a result.
func (c *batchCall) finished(r tool.Result, ms int64) history.Event {
	return history.Event{Key: c.key, Data: &history.ToolFinished{Tool: c.Tool, Effect: c.effect(), Args: c.args(), Result: r, MS: ms,
		Call: c.id, SecretArgs: c.SecretArgs, Secret: c.SecretResult}}
}

// errDoubt stops a batch after a call whose result is unknown: it is left open, and what its tool says of doubts is
// followed.
var errDoubt = errors.New("the result of a write is unknown")

// run runs calls.
func (b *batch) run(chosen []*batchCall) error {
	if len(chosen) == 0 {
		return nil
	}
	jobs := make([]tool.Job, len(chosen))
	run := b.st.snap.Run
	memory, err := b.st.memory()
	if err != nil {
		return err
	}
	for i, c := range chosen {
		c.memory = memory()
		resource, err := b.resource(c)
		if err != nil {
			return err
		}
		jobs[i] = tool.Job{Prepared: c.prepared, Resource: resource, Breaker: b.st.s.m.Hash + "/" + c.Tool,
			Call: tool.Call{Key: run.ID + "/" + c.key, RunID: run.ID, StartedAt: run.StartedAt, Memory: c.memory}}
	}
	if err := b.st.toolCallsLeft(len(jobs)); err != nil {
		return err
	}
	cfg := b.st.s.eng.cfg
	runner := tool.Runner{Now: cfg.Now, Grace: cfg.Grace, Breakers: &b.st.s.eng.breakers, Sleep: cfg.Sleep,
		Hurry: func(cause error) bool { return errors.Is(cause, errTimeUp) }}
	_, err = runner.Batch(b.st.ctx, jobs, tool.Hooks{
		Before: func(i int, _ tool.Prepared) error { return b.before(chosen[i]) },
		Again: func(i int, out tool.Outcome, try int, wait time.Duration) error {
			return b.again(chosen[i], out, int64(try), wait)
		},
		After: func(i int, out tool.Outcome) error { return b.after(chosen[i], out) },
	})
	if errors.Is(err, errDoubt) {
		return nil
	}
	switch {
	case b.st.halt != nil:
		return b.st.halt
	case b.complete(), b.outlivesTime():
		return nil // what is known is handed out, whatever has happened meanwhile; what is not is asked about
	case err != nil || b.st.ctx.Err() != nil:
		if dead := b.st.check(); dead != nil {
			return dead
		}
	}
	return err
}

// commitOne commits one event of a call, behind what the step had pending, and follows it. It is called from the
// goroutines of calls.
func (b *batch) commitOne(c *batchCall, ev history.Event, memory ...store.MemoryWrite) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	evs, err := b.st.s.store(change{events: append(b.st.pending, ev), memory: memory})
	var conflict *store.MemoryConflict
	if errors.As(err, &conflict) { // nothing was written: that is the call's result
		evs, err = b.st.s.store(change{events: append(b.st.pending, c.finished(tool.Conflict(conflict).Result(), 0))})
	}
	if err != nil {
		return b.st.failed(err)
	}
	b.st.pending, b.st.overlay = nil, nil
	b.st.seen = evs[len(evs)-1].At
	b.follow(c, evs[len(evs)-1])
	return nil
}

// resource names what a call changes, "" where its tool does not say.
func (b *batch) resource(c *batchCall) (string, error) {
	text := c.prepared.Tool.Spec.Resource
	if text == nil {
		return "", nil
	}
	facts := b.st.facts()
	facts.Args, facts.Hidden = c.prepared.Values, len(c.SecretArgs) > 0
	resource, err := text.Render(facts)
	if err != nil {
		return "", b.st.expressionFailed(err)
	}
	return resource, nil
}

// again records a try of a call that another one follows.
func (b *batch) again(c *batchCall, out tool.Outcome, try int64, wait time.Duration) error {
	return b.commitOne(c, history.Event{Key: c.key, Data: &history.AttemptFailed{Tool: c.Tool, Problem: out.Result.Problem,
		Attempt: try, WaitMS: wait.Milliseconds()}})
}

// before records the start of a call that changes the world. One that was started before and has no result runs again
// under the same record. One that is equal to a call of the same batch whose result has turned out to be unknown does not
// start: it follows its tool's in_doubt.
func (b *batch) before(c *batchCall) error {
	if c.prepared.Read() || c.open {
		return nil
	}
	if b.doubtfulNow(c) {
		return errDoubt
	}
	return b.commitOne(c, history.Event{Key: c.key, Data: &history.ToolStarted{Tool: c.Tool, Args: c.prepared.Values, Call: c.id,
		SecretArgs: c.SecretArgs}})
}

func (b *batch) doubtfulNow(c *batchCall) bool {
	b.mu.Lock() // other calls' goroutines may be committing
	defer b.mu.Unlock()
	return c.prepared.Tool.Spec.InDoubt != machine.InDoubtRetry && c.doubtful(b.st.s.head.Unknown)
}

// after records the result of a call. What a stop cut short is not recorded: a read runs again, and a write stays open.
func (b *batch) after(c *batchCall, out tool.Outcome) error {
	if out.Stack != "" {
		cfg := b.st.s.eng.cfg
		cfg.Log.Error().Str("run", b.st.s.id).Str("tool", c.Tool).Str("stack", b.mask().Text(cfg.Secrets.Text(out.Stack))).Msg("a tool broke down")
	}
	unsure := out.Result.Status == tool.Unknown
	if b.st.ctx.Err() != nil && (unsure || out.CutShort || out.Result.Problem.Kind == tool.KindCancelled) {
		return b.cutShort(c, out)
	}
	if unsure && b.follows(c) {
		failed := history.Event{Key: c.key, Data: &history.AttemptFailed{Tool: c.Tool, Problem: out.Result.Problem}}
		if err := b.commitOne(c, failed); err != nil {
			return err
		}
		return errDoubt
	}
	if c.Direct && out.Result.Status == tool.Unavailable {
		return b.outage(c, out.Result.Problem)
	}
	return b.commitOne(c, c.finished(out.Result, out.Duration.Milliseconds()), b.written(c, out.Result)...)
}

// cutShort deals with a call that had to stop. A read runs again, and a write whose result is unknown stays open; one that
// is certain to have changed nothing is recorded as an attempt, so that nobody has to be asked about it.
func (b *batch) cutShort(c *batchCall, out tool.Outcome) error {
	if c.prepared.Read() || out.Result.Status == tool.Unknown || !c.open {
		return nil
	}
	return b.commitOne(c, history.Event{Key: c.key, Data: &history.AttemptFailed{Tool: c.Tool, Problem: out.Result.Problem, NotDone: true}})
}

// outage hands out, once, that a tool is out of order. It is recorded as an attempt, which is never answered from: when
// the run stops for it, a resume tries anew.
func (b *batch) outage(c *batchCall, problem machine.Problem) error {
	failed := history.Event{Key: c.key, Data: &history.AttemptFailed{Tool: c.Tool, Problem: problem, NotDone: true}}
	if err := b.commitOne(c, failed); err != nil {
		return err
	}
	c.result = &tool.Result{Status: tool.Unavailable, Problem: c.failed}
	return nil
}

// recallOutages answers calls from their failed attempts after all, where the record goes on behind the batch: the
// handler has gone on from the outages then.
func (b *batch) recallOutages() {
	for _, c := range b.open() {
		if !c.open && !c.failed.None() {
			c.result = &tool.Result{Status: tool.Unavailable, Problem: c.failed}
		}
	}
}

// maxTries is how often a call that may simply run again does so before its result counts as unknown.
const maxTries = 3

// follows says whether a call whose result is unknown follows its tool's in_doubt instead of getting that result: the
// flow's own calls do, where a model gets to read what is known.
func (b *batch) follows(c *batchCall) bool {
	if !c.Direct {
		return false
	}
	c.tries++
	if c.effect() == machine.EffectIdempotent {
		return false // it was tried again already
	}
	switch c.prepared.Tool.Spec.InDoubt {
	case machine.InDoubtFail:
		return false
	case machine.InDoubtRetry:
		return c.tries < maxTries
	}
	return true
}

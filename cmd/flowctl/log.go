package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/flows/machine"
)

// runLog writes JSON lines: the three logs of runs, and what the engine says of its own work. A nil runLog writes nothing.
type runLog struct {
	file  *os.File // nil: the log goes to stderr
	clean *redacted
	out   zerolog.Logger
}

// openLog opens the log once, where one is wanted. Secrets are taken out of it once more, whatever stands in an event.
func (a *app) openLog(secrets *secret.Redactor) error {
	if a.log != nil {
		a.log.clean.secrets = secrets // of the run that comes next
		return nil
	}
	if a.flags.Log == "" && !a.flags.Verbose {
		return nil
	}
	l := &runLog{}
	var w io.Writer = a.Stderr
	if a.flags.Log != "" {
		if err := a.checkLogFile(); err != nil {
			return err
		}
		file, err := os.OpenFile(a.path(a.flags.Log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return usagef("choose another file with --log", "the log %s cannot be opened: %v", a.flags.Log, reason(err))
		}
		l.file, w = file, file
	}
	l.clean = &redacted{w: w, secrets: secrets}
	l.out = zerolog.New(l.clean)
	a.log = l
	return nil
}

// checkLogFile refuses a file that holds something else than a log, such as a flow or a database after a slip of the hand.
func (a *app) checkLogFile() error {
	file, err := os.Open(a.path(a.flags.Log))
	if err != nil {
		return nil // it is made, or opening it says what is wrong
	}
	defer file.Close()
	first := make([]byte, 1)
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if n, _ := file.Read(first); n == 1 && first[0] != '{' {
		return usagef("choose another file with --log", "%s is no log: it holds something else", a.flags.Log)
	}
	return nil
}

// engineLog is for what is no part of a run.
func (l *runLog) engineLog() zerolog.Logger {
	if l == nil {
		return zerolog.Nop()
	}
	return l.out
}

func (l *runLog) write(e *entry) {
	if l != nil {
		e.emit(l.out)
	}
}

func (l *runLog) close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// redacted is a writer of JSON lines that takes secrets out of them.
type redacted struct {
	w       io.Writer
	secrets *secret.Redactor
}

func (r *redacted) Write(line []byte) (int, error) {
	clean := r.secrets.JSON(line)
	if n := len(clean); n == 0 || clean[n-1] != '\n' {
		clean = append(clean, '\n')
	}
	if _, err := r.w.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}

// logKind is one of the three logs.
type logKind string

// The logs.
const (
	logDecision  logKind = "decision"  // model calls
	logExecution logKind = "execution" // tool calls
	logState     logKind = "state"     // entries, transitions and variables
)

func logNames() []string {
	return []string{string(logDecision), string(logExecution), string(logState)}
}

// entry is one line of a log.
type entry struct {
	kind logKind
	run  string
	ev   history.Event
	data json.RawMessage // the kind's own fields, an object
}

// emit writes the entry. It says `log` for its kind and `trace_id` for its run.
func (e *entry) emit(to zerolog.Logger) {
	line := to.Log().Str("log", string(e.kind)).Str("trace_id", e.run).Int64("seq", e.ev.Seq).Str("at", stamp(e.ev.At)).
		Str("type", string(e.ev.Data.Type())).Str("state", e.ev.State).Int64("visit", e.ev.Visit).Int64("step", e.ev.Step)
	if e.ev.Key != "" {
		line = line.Str("key", e.ev.Key)
	}
	line.RawJSON("data", e.data).Send()
}

// projector makes entries of events in their order. It remembers how often each call was tried.
type projector map[string]int

// executed is what the execution log says of a tool call.
type executed struct {
	Tool    string          `json:"tool"`
	Args    machine.Value   `json:"args"`
	Status  string          `json:"status"`
	MS      int64           `json:"ms"`
	Digest  string          `json:"digest"` // of the result's JSON; "" where there is none
	Retries int             `json:"retries"`
	Problem machine.Problem `json:"error,omitzero"`
}

// decided is what the decision log says of a model call.
type decided struct {
	Label    string          `json:"label"`
	Name     string          `json:"name"`  // of the model in the flow
	Model    string          `json:"model"` // as its endpoint calls it
	Turn     int64           `json:"turn"`
	Answered bool            `json:"answered"`        // the exchange ended with this, and not with a problem
	Request  history.Request `json:"request"`         // what was sent, by reference
	Text     string          `json:"text"`            // the answer, or what was said beside calls
	Thought  string          `json:"thought"`         // why, in the model's own words
	Tools    []chosen        `json:"tools,omitempty"` // chosen by the model
	Wrong    string          `json:"wrong,omitempty"` // what the model was told of an answer that would not do
	Cached   bool            `json:"cached,omitempty"`
	MS       int64           `json:"ms"`
	Retries  int             `json:"retries"`
	history.ModelUsage
	Problem machine.Problem `json:"error,omitzero"`
}

// chosen is a call that a model asked for.
type chosen struct {
	Tool string `json:"tool"`
	Args string `json:"args"` // as the model wrote them
}

// decision makes the entry of a model call.
func decision(d *history.ModelCalled, retries int) decided {
	out := decided{Label: d.Label, Name: d.Name, Model: d.Model, Turn: d.Turn, Answered: d.Final() && d.Problem.None(),
		Request: d.Request, Text: d.Text, Thought: d.Thought, Wrong: d.Wrong, Cached: d.Cached, MS: d.MS, Retries: retries,
		ModelUsage: d.ModelUsage, Problem: d.Problem}
	for _, c := range d.Calls {
		out.Tools = append(out.Tools, chosen{Tool: c.Tool, Args: c.Args})
	}
	return out
}

// entry gives what a log says of an event, nil if none does.
func (p projector) entry(run string, ev history.Event) *entry {
	kind, data := logKind(""), any(ev.Data)
	effect := run + "/" + ev.Key
	switch d := ev.Data.(type) {
	case *history.AttemptFailed:
		p[effect]++
		return nil
	case *history.ToolFinished:
		kind = logExecution
		data = executed{Tool: d.Tool, Args: d.Args, Status: string(d.Result.Status), MS: d.MS, Digest: digest(d.Result.Value),
			Retries: p[effect], Problem: d.Result.Problem}
		delete(p, effect)
	case *history.ModelCalled:
		exchange, _, _ := strings.Cut(ev.Key, "/") // asked again, it has a key of its own below that
		effect = run + "/" + exchange
		kind, data = logDecision, decision(d, p[effect])
		delete(p, effect)
	case *history.Summarised:
		kind, data = logDecision, decision(d.Called(), 0)
	case *history.StateEntered, *history.Transition, *history.VarSet:
		kind = logState
	default:
		return nil
	}
	text, err := machine.EncodeValue(data)
	if err != nil {
		text, _ = machine.EncodeValue(machine.Values{"unreadable": err.Error()})
	}
	return &entry{kind: kind, run: run, ev: ev, data: text}
}

// digest is the beginning of the SHA-256 of a value: enough to see whether two results are the same.
func digest(v machine.Value) string {
	text, err := machine.EncodeValue(v)
	if v == nil || err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// entryCatcher keeps the lines of a log as JSON values.
type entryCatcher struct{ lines []json.RawMessage }

func (c *entryCatcher) Write(line []byte) (int, error) {
	if !json.Valid(line) {
		return 0, errors.New("a line of the log is not JSON")
	}
	c.lines = append(c.lines, json.RawMessage(append([]byte(nil), line...)))
	return len(line), nil
}

package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Snapshot is the value folded from a run's events. Slices in it only grow and the values in its maps are never changed
// in place, so Clone is cheap.
type Snapshot struct {
	Run      RunInfo
	Status   store.Status
	Seq      int64     // of the newest event
	At       time.Time // of the newest event
	Now      Position
	Inputs   machine.Values
	Vars     machine.Values // variables that have a value
	Talk     Talk
	Last     machine.Last // how the newest finished step ended
	Attempts map[string][]Attempt
	Pending  []Question // asked and not answered, in the order asked
	Open     []OpenCall // started and not finished, in the order started
	Unknown  []string   // CallKey of the run's calls whose result nobody knows
	Signals  []Signal
	Spent    Spent
	Ending
	Asking
}

// Asking is what later requests to models go by.
type Asking struct {
	Mask *Mask // keeps the values of secret variables out of them, and out of all that is shown; nil: there are none

	Turns    int64    // answers of models in the present step, those that would not do among them
	NoSchema []string // models whose endpoint does not take a schema for the answer
	Warned   []string // kind and model of the warnings that were given

	Corrections map[string]tokens.Correction // of our counts of tokens, by the name of the model
	Summaries   map[string]Summary           // the newest of each state
}

// Ending is why nobody works on the run.
type Ending struct {
	Stop   *RunStopped  // why it stopped; nil unless Status is Stopped
	Finish *RunFinished // nil unless Status is final
}

// RunInfo is what never changes but with a switch of flow or folder.
type RunInfo struct {
	ID, Flow, FlowHash, Dir string
	StartedAt               time.Time
	Scripts                 map[string]string // files whose answers stand for models, by the name of the model
}

// Position is the present step.
type Position struct {
	State   string
	Step    int64
	Visit   int64
	Entered int64 // seq of the step's state_entered
	Env     Environment
	Visits  map[string]int64
	Path    []string // the state of every step so far
}

// Talk is what was said between the run and its human.
type Talk struct {
	Messages []Message
	Left     map[string]int64 // per state: the number of the newest message when it was last left
}

// Role says who speaks.
type Role string

// The roles of messages.
const (
	RoleHuman     Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the result of a call
)

// Message is one message, numbered from 1 within its run. What it says is stored once, in the event Seq that brought it:
// that is not part of a checkpoint, and Loaded says whether it is here.
type Message struct {
	N      int64
	Seq    int64
	Role   Role
	State  string
	Step   int64
	CallID string // of a tool message: the call that it answers
	Calls  int    // of an assistant message: how many calls it makes
	Secret bool   // of a human message: it answers a question for a secret variable, and no model is shown it

	Content `json:"-"`
	Loaded  bool `json:"-"`
}

// Content is what a message says.
type Content struct {
	Text      string
	Reasoning string
	Made      []ModelCall
	Remark    string // what stands behind the results of its calls
}

// Attempt is one visit of a state that ended, for those who come back to it.
type Attempt struct {
	Visit   int64           `json:"visit"`
	Outcome machine.Outcome `json:"outcome"`
	Problem machine.Problem `json:"error,omitzero"`
	Notes   []string        `json:"notes,omitempty"`
}

// Question is a pending question.
type Question struct {
	ID    string
	State string
	Seq   int64 // of its asked event
	Asked
}

// OpenCall is a call of the present step that was started and has no result.
type OpenCall struct {
	Key, Tool, Call string
	Args            machine.Values
	SecretArgs      []string // names of those that nobody is shown
}

// CallKey is equal for calls of the same tool with the same arguments.
func CallKey(tool string, args machine.Value) string { return tool + machine.FormatValue(args) }

// Signal is a signal that nobody has waited for yet.
type Signal struct {
	Name  string
	Value machine.Value
}

// Spent is what limits are measured on.
type Spent struct {
	Usage       store.Usage
	Active      time.Duration // time at work, without waits and stops
	StepActive  time.Duration // Active when the present step was entered
	Raised      map[string]float64
	Interrupted int64 // take-ups after a lost process since anything was last recorded
	Notes       []string
}

// New gives the snapshot before the first event of a run.
func New(run string) *Snapshot {
	return &Snapshot{Run: RunInfo{ID: run}}
}

// Clone gives a copy that can be folded on without changing s.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Now.Visits = maps.Clone(s.Now.Visits)
	c.Now.Path = slices.Clip(s.Now.Path)
	c.Inputs = maps.Clone(s.Inputs)
	c.Vars = maps.Clone(s.Vars)
	c.Talk.Messages = slices.Clone(s.Talk.Messages)
	c.Talk.Left = maps.Clone(s.Talk.Left)
	c.Attempts = maps.Clone(s.Attempts)
	for state := range c.Attempts {
		c.Attempts[state] = slices.Clip(c.Attempts[state])
	}
	c.Pending = slices.Clone(s.Pending)
	c.Open = slices.Clone(s.Open)
	c.Unknown = slices.Clone(s.Unknown)
	c.Signals = slices.Clone(s.Signals)
	c.Spent.Raised = maps.Clone(s.Spent.Raised)
	c.Spent.Notes = slices.Clip(s.Spent.Notes)
	return &c
}

// Values gives inputs and variables in one map, fresh.
func (s *Snapshot) Values() machine.Values {
	vs := make(machine.Values, len(s.Inputs)+len(s.Vars))
	maps.Copy(vs, s.Inputs)
	maps.Copy(vs, s.Vars)
	return vs
}

// Facts gives what expressions see.
func (s *Snapshot) Facts() machine.Facts {
	return machine.Facts{Values: s.Values(), Visits: s.Now.Visits, RunID: s.Run.ID, StartedAt: s.Run.StartedAt, Last: s.Last}
}

// Question finds a pending question by its id.
func (s *Snapshot) Question(id string) (Question, bool) {
	for _, q := range s.Pending {
		if q.ID == id {
			return q, true
		}
	}
	return Question{}, false
}

// Due gives the earliest time at which a pending question expires, the zero time if none does.
func (s *Snapshot) Due() time.Time {
	var due time.Time
	for _, q := range s.Pending {
		if q.Due != nil && (due.IsZero() || q.Due.Before(due)) {
			due = *q.Due
		}
	}
	return due
}

// NewestMessage gives the number of the newest message, 0 if there is none.
func (s *Snapshot) NewestMessage() int64 { return int64(len(s.Talk.Messages)) }

// checkpointVersion changes whenever the shape of Snapshot does, so that no version reads another's checkpoints.
const checkpointVersion = 3

type checkpoint struct {
	Version  int
	Snapshot *Snapshot
}

// Checkpoint gives the stored form of s. The texts of messages are not in it.
func (s *Snapshot) Checkpoint() ([]byte, error) {
	return machine.EncodeValue(checkpoint{Version: checkpointVersion, Snapshot: s})
}

// FromCheckpoint reads a stored snapshot. A checkpoint that cannot be read, or is of another version, is an error, on
// which the caller folds from the first event.
func FromCheckpoint(data []byte) (*Snapshot, error) {
	var c checkpoint
	if err := decodeJSON(data, &c); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if c.Version != checkpointVersion || c.Snapshot == nil {
		return nil, fmt.Errorf("checkpoint: it is of version %d, expected %d", c.Version, checkpointVersion)
	}
	s := c.Snapshot
	for _, vs := range []machine.Values{s.Inputs, s.Vars} {
		if err := normalizeMap(vs); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	for i := range s.Pending {
		if err := normalizeAll(s.Pending[i].values()); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	for i := range s.Open {
		if err := normalizeMap(s.Open[i].Args); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	for i := range s.Signals {
		if err := normalizeAll([]*machine.Value{&s.Signals[i].Value}); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	if s.Finish != nil {
		if err := normalizeAll(s.Finish.values()); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	return s, nil
}

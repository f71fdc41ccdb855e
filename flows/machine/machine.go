package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Outcome is the label that a handler returns: the trigger of a transition.
type Outcome string

// The outcomes with a meaning of their own. Error, Timeout and Limit are returned by the engine only.
const (
	Success    Outcome = "success"
	Fail       Outcome = "fail"
	Complete   Outcome = "complete"
	Incomplete Outcome = "incomplete"
	Confirmed  Outcome = "confirmed"
	Rejected   Outcome = "rejected"
	Answered   Outcome = "answered"
	Expired    Outcome = "expired"
	NextState  Outcome = "next" // of route

	Error   Outcome = "error"
	Timeout Outcome = "timeout"
	Limit   Outcome = "limit"
)

// InterruptOutcome is the outcome of a step that an interrupt ended.
func InterruptOutcome(name string) Outcome { return Outcome("interrupt." + name) }

// Duration is a time.Duration that flow files write as 90s, 15m or 1h30m.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// Pos is a place in a flow file. Line and Col are 1-based; Col counts runes. The zero Pos is unknown.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Item is one entry of a map whose written order counts.
type Item[T any] struct {
	Name  string
	Pos   Pos
	Value T
}

// Ordered is a map in its written order.
type Ordered[T any] []Item[T]

// Get finds an entry by its name.
func (o Ordered[T]) Get(name string) (T, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	var zero T
	return zero, false
}

// Names gives the names in written order.
func (o Ordered[T]) Names() []string {
	names := make([]string, len(o))
	for i := range o {
		names[i] = o[i].Name
	}
	return names
}

// Machine is a compiled flow. Nothing in it changes after flows.Compile has built it.
type Machine struct {
	Name        string
	Description string
	Language    string // "en" or "zh"
	Hash        string // "sha256:" and the hex digest of the canonical form of the flow's closure
	Source      []byte // the flow file as it was read
	Dir         string // absolute folder that relative paths start from

	Instructions Text // system text of every state that calls a model; nil if absent

	Inputs     Ordered[Variable]
	Vars       Ordered[Variable]
	Models     Ordered[ModelSpec]
	Databases  Ordered[Database]
	Servers    Ordered[MCPServer]
	Tools      Ordered[ToolSpec]
	Interrupts Ordered[Interrupt]
	Limits     Limits
	Start      string
	States     Ordered[*State]

	// Env lists the environment variables that texts read by env("NAME"), sorted. Their values are secrets.
	Env []string

	// Message names the input that is the run's first human message, "" if there is none: the input named "message",
	// else the only required string input.
	Message string

	// Memory is the namespace of the long-term memory, such as customer/{{ customer }}; nil: the flow has none.
	Memory Text

	index map[string]*State
}

// State finds a state by its name.
func (m *Machine) State(name string) (*State, bool) {
	if m.index != nil {
		s, ok := m.index[name]
		return s, ok
	}
	return m.States.Get(name)
}

// Seal makes the indexes. The compiler calls it once, last.
func (m *Machine) Seal() {
	m.index = make(map[string]*State, len(m.States))
	for i := range m.States {
		m.index[m.States[i].Name] = m.States[i].Value
	}
}

// Variable finds an input or a variable by its name.
func (m *Machine) Variable(name string) (Variable, bool) {
	if v, ok := m.Inputs.Get(name); ok {
		return v, true
	}
	return m.Vars.Get(name)
}

// Variable is a declared input or variable.
type Variable struct {
	Schema     Schema
	Input      bool  // read-only: given at start
	HasDefault bool  // an input without default must be given
	Default    Value // the start value; nil also where there is none
	Secret     bool  // its value is shown to no model and no human, and stands in no output
}

// Check says how a value breaks the variable's schema: a *SchemaError, or nil. The error does not say what came where the
// variable is secret.
func (v Variable) Check(value Value) error {
	if v.Schema == nil {
		return nil
	}
	err := v.Schema.Check(value)
	var unfit *SchemaError
	if v.Secret && errors.As(err, &unfit) {
		return unfit.Unseen()
	}
	return err
}

// Secrets gives the names of the secret inputs and variables, sorted.
func (m *Machine) Secrets() []string {
	var names []string
	for _, list := range []Ordered[Variable]{m.Inputs, m.Vars} {
		for _, item := range list {
			if item.Value.Secret {
				names = append(names, item.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// State is a node of the machine.
type State struct {
	Name         string
	Handler      string
	Description  string
	Instructions Text // nil if absent
	With         HandlerConfig
	Examples     []Example       // exchanges that a model is shown before its task
	Tools        []string        // names, in written order
	ToolWhen     map[string]Expr // guards of tools: one whose guard does not hold is not there. One without guard always is
	Select       int64           // how many of its tools a model is given, those that fit its task best; 0: all
	View         View
	Limits       StateLimits
	Model        ModelCase // what the flow says about a model; the environment says whether it is ready
	ModelName    string    // key in Machine.Models, "" if Model is ModelNone
	Cache        bool      // an answer to the same request may come from the store

	// Transitions holds the branches of every outcome that leads anywhere from here; `else` and the flow's defaults are
	// compiled into the outcomes that they cover. The last branch of a list has no guard.
	Transitions map[Outcome][]Branch
	// Falls maps an outcome without own line to the one whose line it takes (an intent's name to success).
	Falls    map[Outcome]Outcome
	Outcomes []Outcome // that the handler declares, sorted

	Reads  []string // variables and inputs that the handler may read, sorted
	Shows  []string // those of them that a model is shown, sorted
	Writes []string // variables that the handler may write, sorted

	// Digest tells whether two definitions of this state are the same to a step that is under way: it covers the state,
	// the tools that it can use and the schemas of the variables that it reads or writes.
	Digest string
	Pos    Pos
}

// End says whether the state ends the run.
func (s *State) End() bool { return len(s.Outcomes) == 0 }

// Example is one exchange that shows a model how it is done.
type Example struct {
	User      Text
	Calls     []ExampleCall // made before the answer, all in one turn
	Assistant Tree          // the answer: text, or an object
}

// ExampleCall is a tool call of an example.
type ExampleCall struct {
	Tool   string
	Args   Ordered[Tree]
	Result Tree
}

// Branch is one line of a transition.
type Branch struct {
	When Expr // nil: always
	To   string
	Set  Ordered[Tree] // in the order written, each line sees the ones before
	Say  Text          // nil if absent
	Pos  Pos
}

// View says which part of a run a model call of the state sees.
type View struct {
	Vars     []string
	Messages MessageSelect
	Attempts bool // what was tried before in this state
	Memory   *MemoryView
	Budget   Budget
}

// Budget bounds the three layers of a request, in tokens. 0 leaves a layer what the model's window has room for.
type Budget struct {
	System int64 // instructions, protocol and tools: never cut
	Task   int64 // what is to be done, variables, attempts, memory
	Recent int64 // messages
}

// MemoryView says which entries of the long-term memory are shown: those whose key fits a pattern, and the best hits of a
// search.
type MemoryView struct {
	Keys   []string // patterns: * stands for any text
	Search Text     // nil: none
	Top    int64    // hits at most
}

// MessageMode chooses the messages of a view.
type MessageMode string

// The zero mode is MessagesOwn: this step's messages and what the human said since the state was last left.
const (
	MessagesOwn    MessageMode = "own"
	MessagesNone   MessageMode = "none"
	MessagesAll    MessageMode = "all"
	MessagesStates MessageMode = "states" // those of MessageSelect.States and this step's own
)

// MessageSelect chooses messages; Last keeps only that many newest ones, 0 keeps all.
type MessageSelect struct {
	Mode   MessageMode
	States []string
	Last   int
}

// Limits bound a run. 0 is unlimited.
type Limits struct {
	Steps, ModelCalls, ToolCalls, Tokens int64
	Cost                                 float64 // in the currency of the models' prices
	Time                                 Duration
}

// StateLimits bound one state: how often it may be entered in a run, the handler's own turns, and the active time of one
// step (0: none).
type StateLimits struct {
	Visits, Turns int64
	Time          Duration
}

// What applies where a flow names no limit.
const (
	DefaultSteps      = 100
	DefaultModelCalls = 100
	DefaultToolCalls  = 200
	DefaultTime       = Duration(time.Hour)
	DefaultVisits     = 25
	DefaultTurns      = 8
)

// ModelCase says whether a state has a model.
type ModelCase string

const (
	ModelNone     ModelCase = "none"     // the flow has no models, or the state says model: none
	ModelDeclared ModelCase = "declared" // in the flow; whether its key is there is for the environment
	ModelMissing  ModelCase = "missing"  // declared, and its key is missing
	ModelReady    ModelCase = "ready"
)

// ModelSpec is a declared model.
type ModelSpec struct {
	Name     string
	Provider string
	Config   any // the provider's config struct
	Pos      Pos
}

// Database is a declared SQLite database. Paths are absolute.
type Database struct {
	Path string
	Init string // SQL file that makes the database when it does not exist; "" if there is none
	Pos  Pos
}

// Interrupt is a free answer that leaves any question.
type Interrupt struct {
	Match  []Matcher
	Branch Branch
}

// Effect says what a tool does to the world.
type Effect string

const (
	EffectRead       Effect = "read"       // changes nothing: runs beside others, is retried
	EffectIdempotent Effect = "idempotent" // may run again under the same key
	EffectWrite      Effect = "write"      // must not run twice unless a human or the flow says so
)

// InDoubt says what becomes of a write whose result is unknown.
type InDoubt string

const (
	InDoubtAsk   InDoubt = "ask"
	InDoubtFail  InDoubt = "fail"
	InDoubtRetry InDoubt = "retry"
)

// ToolSpec is a declared tool.
type ToolSpec struct {
	Name        string
	Description string
	Effect      Effect
	Timeout     time.Duration // of one call; 0: the kind's default
	Retry       *int64        // how often a call is tried again when the tool is unavailable, 0 to 10; nil: the engine's default
	InDoubt     InDoubt
	Resource    Text // over args: what a write changes. Writes of different resources may run beside each other. nil: unknown
	Batch       bool // the kind makes several reads of one turn in one go
	Approval    Approval
	Parameters  Schema // of the arguments, an object
	Result      Schema // of what a call gives; nil: anything
	Kind        string // the key of the tool kind, such as sql
	Config      ToolConfig
	Pos         Pos
}

// Approval says whether a human must approve a call. The zero value is never.
type Approval struct {
	Required bool
	When     Expr // over args; approval is required where it holds
}

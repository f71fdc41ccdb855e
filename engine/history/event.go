package history

import (
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Type is the name of an event type as it is stored and shown.
type Type string

// The event types that this version writes. Others are kept in the history and skipped by Fold.
const (
	TypeRunStarted    Type = "run_started"
	TypeStateEntered  Type = "state_entered"
	TypeModelCalled   Type = "model_called"
	TypeSummarised    Type = "summarised"
	TypeWarned        Type = "warned"
	TypeAttemptFailed Type = "attempt_failed"
	TypeToolStarted   Type = "tool_started"
	TypeToolFinished  Type = "tool_finished"
	TypeAsked         Type = "asked"
	TypeAnswered      Type = "answered"
	TypeDoubtResolved Type = "doubt_resolved"
	TypeExpired       Type = "expired"
	TypeVarSet        Type = "var_set"
	TypeSaid          Type = "said"
	TypeNoteAdded     Type = "note_added"
	TypeTransition    Type = "transition"
	TypeSignalled     Type = "signalled"
	TypeLimitRaised   Type = "limit_raised"
	TypeFlowSwitched  Type = "flow_switched"
	TypeRunWaiting    Type = "run_waiting"
	TypeRunStopped    Type = "run_stopped"
	TypeRunResumed    Type = "run_resumed"
	TypeRunFinished   Type = "run_finished"
)

// Event is one entry of a run's history with its data decoded.
type Event struct {
	Seq   int64
	At    time.Time
	State string
	Visit int64
	Step  int64
	Key   string // of the effect that it belongs to, else ""
	Data  Data
}

// Data is what an event says. Each type of event has its struct.
type Data interface{ Type() Type }

// Unknown is an event of a type that this version does not know.
type Unknown struct {
	Name Type
	Raw  []byte
}

// Environment is what the world outside decides for a step, recorded when the step is entered and read from there.
type Environment struct {
	Model      machine.ModelCase `json:"model,omitempty"`
	ModelID    string            `json:"model_id,omitempty"` // as its endpoint calls it
	Script     string            `json:"script,omitempty"`   // file whose answers stand for the model
	ApproveAll bool              `json:"approve_all,omitempty"`
}

// RunStarted is the first event of every run.
type RunStarted struct {
	Flow     string         `json:"flow"`
	FlowHash string         `json:"flow_hash"`
	Dir      string         `json:"dir"`
	Inputs   machine.Values `json:"inputs"`
	Vars     machine.Values `json:"vars"`              // start values
	Message  string         `json:"message,omitempty"` // name of the input that is the first human message

	// Scripts are files whose answers stand for models, by the name of the model, for the whole run.
	Scripts map[string]string `json:"scripts,omitempty"`

	Secrets []string `json:"secrets,omitempty"` // names of the inputs and variables that nobody is shown
}

// StateEntered begins a step.
type StateEntered struct {
	Env       Environment `json:"env"`
	Restarted bool        `json:"restarted,omitempty"` // the state was begun anew, without a transition
}

// AttemptFailed is a try of an effect that did not succeed and is not its result.
type AttemptFailed struct {
	Tool    string          `json:"tool,omitempty"`
	Problem machine.Problem `json:"error"`
	NotDone bool            `json:"not_done,omitempty"` // it is certain that nothing happened

	// Of a model: its name, the turn, the number of the try from 1, and how long the next one waits, in milliseconds.
	Model   string `json:"model,omitempty"`
	By      string `json:"by,omitempty"` // another model that stood in for it
	Turn    int64  `json:"turn,omitempty"`
	Attempt int64  `json:"attempt,omitempty"`
	WaitMS  int64  `json:"wait_ms,omitempty"`
}

// ToolStarted says that a call which changes the world is about to run.
type ToolStarted struct {
	Tool string         `json:"tool"`
	Args machine.Values `json:"args"`
	Call string         `json:"call,omitempty"` // id of the model's call that it is

	SecretArgs []string `json:"secret_args,omitempty"` // names of the arguments that nobody is shown
}

// ToolFinished is the result of a call.
type ToolFinished struct {
	Tool   string         `json:"tool"`
	Effect machine.Effect `json:"effect,omitempty"` // "" where the tool is not known
	Args   machine.Value  `json:"args"`             // as checked; as given where they were refused
	Result tool.Result    `json:"result"`
	MS     int64          `json:"ms"`             // duration in milliseconds
	Call   string         `json:"call,omitempty"` // id of the model's call that it answers

	SecretArgs []string `json:"secret_args,omitempty"` // names of the arguments that nobody is shown
	Secret     bool     `json:"secret,omitempty"`      // nor is the result
}

// QuestionKind says what is waited for.
type QuestionKind string

// The kinds of questions.
const (
	KindConfirm  QuestionKind = "confirm"
	KindAsk      QuestionKind = "ask"
	KindApproval QuestionKind = "approval"
	KindInDoubt  QuestionKind = "in_doubt"
)

// Choice is one of the answers that a question offers.
type Choice struct {
	Name   string        `json:"name"`
	Label  string        `json:"label"`
	Schema machine.Value `json:"schema,omitempty"` // of the value that is given with the choice, if any
}

// Asked is a question to a human. The event's key is the question's id.
type Asked struct {
	Kind     QuestionKind  `json:"kind"`
	Question string        `json:"question"`
	Schema   machine.Value `json:"schema"` // JSON Schema of the answer
	Choices  []Choice      `json:"choices,omitempty"`
	Free     bool          `json:"free,omitempty"` // any text is taken
	Tool     string        `json:"tool,omitempty"` // of an approval or a doubt
	Args     machine.Value `json:"args,omitempty"` // of that call
	Due      *time.Time    `json:"due,omitempty"`

	SecretArgs []string `json:"secret_args,omitempty"` // names of the arguments that nobody is shown
	Secret     bool     `json:"secret,omitempty"`      // nor will the answer be
}

// By says who answered.
type By string

// Who can answer.
const (
	ByPerson  By = "person"
	ByFlag    By = "flag"
	ByDefault By = "default"
)

// Answered is a human's answer.
type Answered struct {
	Value     machine.Value `json:"value"`
	Text      string        `json:"text,omitempty"`   // as it was said, a human message; the reason beside a no
	Choice    string        `json:"choice,omitempty"` // the chosen key
	Interrupt string        `json:"interrupt,omitempty"`
	By        By            `json:"by"`
	Secret    bool          `json:"secret,omitempty"` // nobody is shown value and text
}

// Verdict is what a human says of a write whose result is unknown.
type Verdict string

// The verdicts.
const (
	Done    Verdict = "done"
	NotDone Verdict = "not_done"
	GiveUp  Verdict = "give_up"
)

// DoubtResolved answers a question of kind in_doubt.
type DoubtResolved struct {
	Verdict Verdict       `json:"verdict"`
	Value   machine.Value `json:"value,omitempty"` // the result, with Done
	By      By            `json:"by"`
	Secret  bool          `json:"secret,omitempty"` // nobody is shown the value
}

// Expired says that the human's time for a question ran out.
type Expired struct{}

// VarSet writes a variable; a nil value unsets it.
type VarSet struct {
	Name   string        `json:"name"`
	Value  machine.Value `json:"value"`
	Secret bool          `json:"secret,omitempty"` // nobody is shown the value
}

// Said is something told to the human.
type Said struct {
	Text string `json:"text"`
}

// NoteAdded is a handler's line for the attempts of its state and the log.
type NoteAdded struct {
	Text string `json:"text"`
}

// Transition ends a step.
type Transition struct {
	From    string          `json:"from"`
	To      string          `json:"to"`
	Outcome machine.Outcome `json:"outcome"` // whose line was taken
	Branch  int             `json:"branch"`
	Problem machine.Problem `json:"error,omitzero"`
}

// Signalled is a signal that reached the run.
type Signalled struct {
	Name   string        `json:"name"`
	Value  machine.Value `json:"value"`
	Notice string        `json:"notice,omitempty"` // the sender's token
}

// LimitRaised lifts a limit of the run.
type LimitRaised struct {
	Limit  string  `json:"limit"` // steps, model_calls, tool_calls, tokens, cost or time
	By     float64 `json:"by"`    // time in milliseconds
	Notice string  `json:"notice,omitempty"`
}

// FlowSwitched says that the run goes on with another definition.
type FlowSwitched struct {
	From   string            `json:"from"` // hashes
	To     string            `json:"to"`
	Dir    string            `json:"dir"`
	State  string            `json:"state"`  // the present state's name in the new definition
	Inputs machine.Values    `json:"inputs"` // inputs and variables as they are from now on
	Vars   machine.Values    `json:"vars"`
	Map    map[string]string `json:"map,omitempty"` // old state name to new

	Secrets []string `json:"secrets,omitempty"` // names of the inputs and variables that nobody is shown
}

// RunWaiting says that the run waits.
type RunWaiting struct {
	Due *time.Time `json:"due,omitempty"` // the earliest time that ends the wait by itself
}

// StopCode says why a run stopped or failed.
type StopCode string

// The codes.
const (
	CodeLimit       StopCode = "limit"
	CodeOutage      StopCode = "outage"
	CodeNoKey       StopCode = "no_key"
	CodeTimeout     StopCode = "timeout"
	CodeDiverged    StopCode = "diverged"
	CodePanic       StopCode = "panic"
	CodeHandler     StopCode = "handler"
	CodeExpression  StopCode = "expression"
	CodeCorrupt     StopCode = "corrupt"
	CodePoison      StopCode = "poison"
	CodeFolder      StopCode = "folder"
	CodeInterrupted StopCode = "interrupted"
	CodeFailed      StopCode = "failed" // an end state failed the run; never of a stop
)

// RunStopped ends the work on a run until it is resumed.
type RunStopped struct {
	Code    StopCode `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"` // what to do next
}

// RunResumed says that somebody took the run up again.
type RunResumed struct {
	Interrupted bool         `json:"interrupted,omitempty"` // it had not stopped: its process was gone
	Env         *Environment `json:"env,omitempty"`         // replaces the step's, where the step stopped for it
	Dir         string       `json:"dir,omitempty"`         // the flow's folder from now on
}

// RunFinished is the last event of every run.
type RunFinished struct {
	Status store.Status  `json:"status"`
	Output machine.Value `json:"output"`
	Reason string        `json:"reason,omitempty"`
}

// Type implements Data.
func (u *Unknown) Type() Type { return u.Name }

// Type implements Data.
func (*RunStarted) Type() Type { return TypeRunStarted }

// Type implements Data.
func (*StateEntered) Type() Type { return TypeStateEntered }

// Type implements Data.
func (*AttemptFailed) Type() Type { return TypeAttemptFailed }

// Type implements Data.
func (*ToolStarted) Type() Type { return TypeToolStarted }

// Type implements Data.
func (*ToolFinished) Type() Type { return TypeToolFinished }

// Type implements Data.
func (*Asked) Type() Type { return TypeAsked }

// Type implements Data.
func (*Answered) Type() Type { return TypeAnswered }

// Type implements Data.
func (*DoubtResolved) Type() Type { return TypeDoubtResolved }

// Type implements Data.
func (*Expired) Type() Type { return TypeExpired }

// Type implements Data.
func (*VarSet) Type() Type { return TypeVarSet }

// Type implements Data.
func (*Said) Type() Type { return TypeSaid }

// Type implements Data.
func (*NoteAdded) Type() Type { return TypeNoteAdded }

// Type implements Data.
func (*Transition) Type() Type { return TypeTransition }

// Type implements Data.
func (*Signalled) Type() Type { return TypeSignalled }

// Type implements Data.
func (*LimitRaised) Type() Type { return TypeLimitRaised }

// Type implements Data.
func (*FlowSwitched) Type() Type { return TypeFlowSwitched }

// Type implements Data.
func (*RunWaiting) Type() Type { return TypeRunWaiting }

// Type implements Data.
func (*RunStopped) Type() Type { return TypeRunStopped }

// Type implements Data.
func (*RunResumed) Type() Type { return TypeRunResumed }

// Type implements Data.
func (*RunFinished) Type() Type { return TypeRunFinished }

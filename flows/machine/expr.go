package machine

import "time"

// Facts is what expressions and texts see. Values must not be changed while it is in use.
type Facts struct {
	Values    Values           // inputs and variables by name; one without value is missing or nil
	Visits    map[string]int64 // entries per state, the present one counted
	RunID     string
	StartedAt time.Time
	Last      Last
	Result    Value  // inside expect
	Args      Values // inside a tool's texts and its approval.when
	Hidden    bool   // Result and Args hold the value of a secret variable: no error shows them
	// Getenv reads the environment where `env("NAME")` is allowed, and is nil elsewhere.
	Getenv func(name string) (string, bool)
}

// Last is how the step before ended; in transitions, how this one ends.
type Last struct {
	Outcome Outcome
	Error   Problem
}

// Problem is a failure that a flow can reason about: a kind from a short list and a sentence for people. The zero
// Problem is none.
type Problem struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// None says whether there was no failure.
func (p Problem) None() bool { return p == Problem{} }

// Expr is a compiled expression. It is safe for concurrent use. An evaluation error is an *ExprError.
type Expr interface {
	Source() string
	Eval(Facts) (Value, error)
	Reads() []string // inputs and variables that it names, sorted
}

// Tree is a YAML value whose strings are texts: arguments, the right side of set, an output. It is safe for concurrent
// use.
type Tree interface {
	Value(Facts) (Value, error)
	Reads() []string
}

// Text is a string that may hold {{ expression }}.
type Text interface {
	Tree // Value keeps the type of a text that is exactly one expression
	Source() string
	Render(Facts) (string, error)
}

// Template is a Text whose owner puts the parts together itself, because what is inserted must be made fit for its place,
// as in the url of a tool.
type Template interface {
	Text
	Parts() []TextPart // in the order written; they must not be changed
}

// TextPart is a piece of a text: an expression, or where that is nil a string as it stands.
type TextPart struct {
	Fixed string
	Expr  Expr
}

// ExprError is an expression that failed at run time.
type ExprError struct {
	Pos    Pos    // of the expression in the flow file
	Source string // the expression
	Values string // the values that it read, as name = JSON, sorted
	Err    error
}

func (e *ExprError) Error() string {
	msg := e.Pos.String() + ": " + e.Source + ": " + e.Err.Error()
	if e.Values != "" {
		msg += " (with " + e.Values + ")"
	}
	return msg
}

func (e *ExprError) Unwrap() error { return e.Err }

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema interface {
	// Check says how v breaks the schema: a *SchemaError with all that is wrong, or nil.
	Check(v Value) error
	// Coerce turns simple types into the ones that the schema wants ("5" into 5, one value into a list of one) and
	// fills defaults of absent properties. What it cannot turn it leaves for Check to refuse.
	Coerce(v Value) Value
	Info() SchemaInfo
	JSON() []byte // canonical
}

// SchemaInfo is the part of a schema that handlers read.
type SchemaInfo struct {
	Types       []string // JSON types that it allows, sorted; empty: any
	Enum        []Value  // nil: anything
	Pattern     string
	Format      string
	Description string
	Properties  []string // of an object, in written order
	Required    []string
	Items       *SchemaInfo // of a list whose items have one schema, else nil
}

// OnlyType gives the one JSON type that the schema allows beside null, "" if there are several or any.
func (i SchemaInfo) OnlyType() string {
	only := ""
	for _, t := range i.Types {
		switch {
		case t == "null":
		case only != "":
			return ""
		default:
			only = t
		}
	}
	return only
}

// Allows says whether the schema allows a JSON type; number allows integer.
func (i SchemaInfo) Allows(kind string) bool {
	if len(i.Types) == 0 {
		return true
	}
	for _, t := range i.Types {
		if t == kind || t == "number" && kind == "integer" {
			return true
		}
	}
	return false
}

// SchemaError lists the places where a value breaks a schema, sorted by path.
type SchemaError struct {
	Faults []SchemaFault
}

// SchemaFault is one place: Path is a dotted path such as items[2].name ("" for the value itself), Want what was
// expected and Got what came, both for people.
type SchemaFault struct {
	Path, Want, Got string
}

func (e *SchemaError) Error() string {
	var msg string
	for i, f := range e.Faults {
		if i > 0 {
			msg += "; "
		}
		if f.Path != "" {
			msg += f.Path + ": "
		}
		msg += "expected " + f.Want + ", got " + f.Got
	}
	return msg
}

// Unseen gives a copy that does not say what came.
func (e *SchemaError) Unseen() *SchemaError {
	faults := make([]SchemaFault, len(e.Faults))
	for i, f := range e.Faults {
		faults[i] = SchemaFault{Path: f.Path, Want: f.Want, Got: "***"}
	}
	return &SchemaError{Faults: faults}
}

// Matcher finds a rule in what a human wrote. It ignores case and width, and never finds a piece of a longer word, number
// or identifier. It is safe for concurrent use.
type Matcher interface {
	Source() string
	Find(text string) []string // the hits as written, left to right
}

// Keyword is a Matcher for a word or phrase; Pattern one for a regular expression (RE2, its outer ^ and $ dropped). The
// decoder of flow files tells them apart by the type of the field.
type (
	Keyword interface {
		Matcher
		Meant(text string) []string // the hits that the text does not deny directly before, as in: no refund
	}
	Pattern interface{ Matcher }
)

// Error makes a Problem usable as the reason that a handler returns beside its outcome.
func (p Problem) Error() string {
	if p.Message == "" {
		return p.Kind
	}
	return p.Message
}

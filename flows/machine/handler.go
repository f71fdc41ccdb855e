package machine

// HandlerSpec says what a handler is to the compiler.
//
// With points to a fresh, zero config struct. Its exported fields are decoded from the state's `with` by the key in their
// yaml tag, strictly: a key that no field has is an error, and so is a value of another type. A field without yaml tag is
// the handler's own. The doc tag is the field's line in the flow reference and in messages about it: one line, without a
// full stop.
//
// What a field can be:
//
//	string, bool, int64, float64    as they are; a float64 is not negative. A pointer tells absent from zero
//	Duration                        90s, 15m, 1h30m; more than zero
//	Text                            a string that may hold {{ expression }}
//	Template                        the same, for an owner that puts its parts together itself
//	Expr                            an expression that must be true or false, such as when and expect
//	Tree                            any YAML value whose strings are texts; also a map of texts, and arguments by name
//	Keyword, Pattern                a Matcher, compiled
//	VarRef, ToolRef, StateRef       a name that the flow declares
//	Schema                          a JSON Schema
//	Value                           any JSON value
//	[]T                             a list
//	Ordered[T]                      T by name, in written order. Names are lower-case words; with T Tree they are free,
//	                                since they are arguments that others named; with the word write they are variables,
//	                                and with the word free anything
//	struct                          a mapping with fixed keys
//
// Words of the flow tag, separated by commas:
//
//	required      the key must be there
//	enum:a|b      a string, or a list of strings, with these words
//	min1          a number of at least 1
//	upto:10       a number from 0 to 10
//	one           a list that may also be written as its only item: into: answer for into: [answer]
//	scalar        on a field of an inner struct: the struct may also be written as this field's value alone, be it a
//	              scalar or a list. With the tags yaml:"name" flow:"required,scalar" a list
//	              `fields: [order_id, {name: city, ask: Where to?}]` works; with
//	              yaml:"label" in Ordered[choice] so does `choices: {keep: Keep it, other: {label: Another, into: size}}`.
//	              With yaml:"-" the field has no key and is only ever the bare value
//	prompt        the texts or the variable of this field, and all inside it, are shown to a model
//	write         a VarRef (or the names of an Ordered) that is written: it must be a variable and no input
//	secret        a secret variable may stand in this field, and in the texts of it and of all inside it: what it is filled
//	              with comes from a human or a tool, never from a model, and what its texts make goes to a tool or a child
//	              run, and is shown to nobody. Without this word a secret variable is an error, except in an Expr and where
//	              an Ordered with the word write gives a secret variable its value
//	free          an Ordered whose names others chose, such as headers
//	env           in the config of a tool kind: env("NAME") may stand in the texts of this field, and in all inside it. Its
//	              owner gives them machine.Facts.Getenv, and keeps what they make out of results and errors
//	outcomes      an Ordered whose names become outcomes: they cannot be success, fail, error, timeout, limit, expired, else
//	expr:result   an Expr that also sees `result`, typed by the tool that the ToolRef field of the same struct names
//
// A struct must not hold itself.
type HandlerSpec struct {
	Doc  string // one line
	With HandlerConfig
	// Outcomes says for the flow reference which outcomes the handler declares, and when: "success, fail; more with stop_after".
	Outcomes string
	// Hears is the key of With that names a variable to be read instead of the newest human message, where the handler cannot
	// do without one of the two; "" elsewhere.
	Hears string
}

// VarRef names a declared input or variable. In a field whose flow tag says write it must be a variable.
type VarRef string

// ToolRef names a tool of the flow.
type ToolRef string

// StateRef names a state.
type StateRef string

// HandlerConfig is a decoded `with`.
type HandlerConfig interface {
	// Uses is asked once, when the flow is compiled, after all fields are decoded and references checked. While there is an
	// error in the config it is not asked, or only to tell more about the flow: required fields are there, but where a name
	// is not declared nothing but the outcomes counts, and a panic is no harm. Of a flow that runs, every name is declared.
	Uses(Scope) Uses
}

// Scope is what a config may know of its flow and state.
type Scope struct {
	State     string
	Machine   *Machine  // inputs, vars and tools are complete; States only as far as StateTools needs
	Routes    []Outcome // outcomes with an own line in this state, sorted
	HasElse   bool
	Model     ModelCase // ModelNone or ModelDeclared
	Tools     []string  // of this state
	ToolsOf   func(state string) ([]string, bool)
	TextConst func(Text) (string, bool) // the text, when it holds no expression
}

// Uses is what a state does, as its config says.
type Uses struct {
	Outcomes []OutcomeUse
	Reads    []string // variables read beyond those that texts, expressions and VarRef fields name
	Shows    []string // variables shown to a model beyond those of prompt fields; a secret one among them is not shown
	Tools    []string // tools known to the state beyond those of its `tools`
	Holds    []Hold
	Problems []ConfigProblem
}

// OutcomeUse is one declared outcome.
type OutcomeUse struct {
	Name   Outcome
	Falls  Outcome  // the outcome whose line it takes where it has none of its own ("" for none)
	Writes []string // variables that are written when it comes
}

// Hold says that a variable must be able to hold what the handler makes.
type Hold struct {
	Path  string  // of the field below `with`, such as into
	Var   string  // name of the variable
	Type  string  // JSON type of what is written
	Enum  []Value // the values that may be written, nil if open
	Named string  // what it is, for the message: "the intents", "the plan"
}

// ConfigProblem is something wrong in a config that only the handler can see. Path is the field below `with`
// (steps[1].args), "" for all of it; Rule the id of the rule, which decides whether it is an error or a warning, "" for
// with-invalid.
type ConfigProblem struct {
	Path, Rule, Message, Suggestion string
}

// ToolKind says what a kind of tool is to the compiler.
type ToolKind struct {
	Doc    string            // one line
	More   string            // Markdown that stands below the kind's keys in the flow reference; "" for none
	Config func() ToolConfig // a pointer to a fresh, zero config struct, decoded like a handler's
}

// ToolConfig is the decoded kind part of a tool (`sql: {…}`). Its texts are made anew for each call, from what the kind
// gives them: they see `args`, typed by the tool's parameters, and `run`, and no variables of the flow.
type ToolConfig interface {
	// Uses is asked once, after decoding.
	Uses(ToolScope) ToolUses
}

// ToolScope is what a tool's config may know.
type ToolScope struct {
	Machine    *Machine // databases and memory are complete
	Name       string
	Parameters Schema // nil where the flow gives none
	Effect     Effect // "" where the flow gives none
	Batch      bool   // the flow wants the calls of one turn made in one go
}

// ToolUses is what a tool is, as its config says. Where the flow itself gives description, parameters or effect, the
// flow's word counts unless it is in Problems.
type ToolUses struct {
	Description string
	Effect      Effect
	Parameters  []byte // JSON Schema; nil: the flow must give them (or there are none)
	Result      []byte // JSON Schema; nil: anything
	Batch       bool   // the tool can make several calls in one go; where the flow wants it and it cannot, that is an error
	Problems    []ConfigProblem
}

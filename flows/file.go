package flows

import (
	"reflect"

	"flowctl/flows/machine"
)

// flowFile is a flow file. The decoder, the JSON Schema and the reference are made from this definition.
type flowFile struct {
	Version      int64                              `yaml:"version" flow:"required" doc:"Format of the file: 1"`
	Name         flowName                           `yaml:"name" flow:"required" doc:"Name of the flow"`
	Description  string                             `yaml:"description" doc:"What the flow is for"`
	Language     string                             `yaml:"language" flow:"enum:en|zh" doc:"Language of the engine's own words; en if left out"`
	Inputs       machine.Ordered[machine.Schema]    `yaml:"inputs" flow:"variable" doc:"Given at start and read-only: a JSON Schema each; a default makes one optional, and secret: true one that nobody is shown"`
	Vars         machine.Ordered[machine.Schema]    `yaml:"vars" flow:"variable" doc:"Written by states: a JSON Schema each; a default is the start value, and secret: true makes one that nobody is shown"`
	Instructions machine.Text                       `yaml:"instructions" flow:"prompt" doc:"System text of every state that calls a model"`
	Models       machine.Ordered[modelDecl]         `yaml:"models" doc:"Models by name; the one named default is taken by states that name none"`
	Databases    machine.Ordered[databaseDecl]      `yaml:"databases" doc:"SQLite databases by name"`
	MCP          machine.Ordered[machine.MCPServer] `yaml:"mcp" doc:"MCP servers by name, for tools of the kind mcp"`
	Tools        machine.Ordered[toolDecl]          `yaml:"tools" doc:"Tools by name"`
	Memory       *memoryDecl                        `yaml:"memory" doc:"The long-term memory, which outlives runs"`
	Limits       limitsDecl                         `yaml:"limits" doc:"What one run may use"`
	Defaults     defaultsDecl                       `yaml:"defaults" doc:"What holds for every state that says nothing else"`
	Interrupts   machine.Ordered[interruptDecl]     `yaml:"interrupts" doc:"Free answers that leave any question, by name"`
	Start        machine.StateRef                   `yaml:"start" flow:"required" doc:"The first state"`
	States       machine.Ordered[stateDecl]         `yaml:"states" flow:"required" doc:"States by name"`
}

// flowName is a name that its flow gives to itself.
type flowName string

type modelDecl struct {
	Provider string `yaml:"provider" flow:"required" doc:"Where the model runs"`
	Config   any    // the provider's own keys
}

type databaseDecl struct {
	Path string `yaml:"path" flow:"required" doc:"SQLite file, relative to the flow file"`
	Init string `yaml:"init" doc:"SQL file that makes the database when it does not exist"`
}

type toolDecl struct {
	Description string           `yaml:"description" doc:"What it does, for the model that chooses; needed where the kind does not know it (sql, http)"`
	Effect      string           `yaml:"effect" flow:"enum:read|idempotent|write" doc:"What a call does to the world; needed where the kind does not know it"`
	Parameters  machine.Schema   `yaml:"parameters" flow:"short" doc:"Arguments: a JSON Schema each by name, all required unless they have a default; or one JSON Schema of type object"`
	Timeout     machine.Duration `yaml:"timeout" doc:"Longest time of one call; 5s for read, else 10s, if left out"`
	Retry       *int64           `yaml:"retry" flow:"upto:10" doc:"How often a read or idempotent call is tried again when the tool is unavailable"`
	InDoubt     string           `yaml:"in_doubt" flow:"enum:ask|fail|retry" doc:"What becomes of a write that started and whose result is unknown; ask if left out"`
	Approval    approvalDecl     `yaml:"approval" doc:"Whether a human must approve a call; never if left out"`
	Resource    machine.Text     `yaml:"resource" doc:"Text over args that names what a call changes; calls that change different things may run beside each other"`
	Batch       bool             `yaml:"batch" doc:"Whether the calls of one turn are made in one go; for read tools of a kind that can"`
	Kind        string           // name of the kind
	Config      machine.ToolConfig
	At          spot
}

type approvalDecl struct {
	Mode string       `yaml:"-" flow:"scalar,enum:required|never"`
	When machine.Expr `yaml:"when" flow:"required" doc:"Expression over args: approval is required where it holds"`
}

type memoryDecl struct {
	Namespace machine.Text `yaml:"namespace" flow:"required" doc:"Whose memory it is: runs with the same namespace share what they remember, such as customer/{{ customer }}"`
}

type limitsDecl struct {
	Steps      int64            `yaml:"steps" flow:"min1" doc:"State entries; 100 if left out"`
	ModelCalls int64            `yaml:"model_calls" flow:"min1" doc:"Model calls; 100 if left out"`
	ToolCalls  int64            `yaml:"tool_calls" flow:"min1" doc:"Tool calls; 200 if left out"`
	Tokens     int64            `yaml:"tokens" flow:"min1" doc:"Tokens in and out; unlimited if left out"`
	Cost       float64          `yaml:"cost" doc:"Cost in the currency of the prices; unlimited if left out"`
	Time       machine.Duration `yaml:"time" doc:"Active time, waiting not counted; 1h if left out"`
}

type defaultsDecl struct {
	Transitions machine.Ordered[[]lineDecl] `yaml:"transitions" flow:"one" doc:"Lines for states that have the outcome and no own line for it"`
}

// lineDecl is one line of a transition.
type lineDecl struct {
	When machine.Expr                  `yaml:"when" doc:"Expression: the line is taken where it holds"`
	To   machine.StateRef              `yaml:"to" flow:"required,scalar" doc:"The next state"`
	Set  machine.Ordered[machine.Tree] `yaml:"set" flow:"write" doc:"Variables to write, in this order; null unsets one"`
	Say  machine.Text                  `yaml:"say" doc:"What the human is told"`
	At   spot
}

type interruptDecl struct {
	Keywords []machine.Keyword             `yaml:"keywords" doc:"Words or phrases that leave the question"`
	Patterns []machine.Pattern             `yaml:"patterns" doc:"Regular expressions that leave the question"`
	To       machine.StateRef              `yaml:"to" flow:"required" doc:"The next state"`
	Set      machine.Ordered[machine.Tree] `yaml:"set" flow:"write" doc:"Variables to write, in this order; null unsets one"`
	Say      machine.Text                  `yaml:"say" doc:"What the human is told"`
	At       spot
}

type stateDecl struct {
	Handler      string                      `yaml:"handler" flow:"required" doc:"What does the state's work"`
	Description  string                      `yaml:"description" doc:"What the state is for"`
	Instructions machine.Text                `yaml:"instructions" flow:"prompt" doc:"System text of this state, after the flow's"`
	Examples     []exampleDecl               `yaml:"examples" flow:"prompt" doc:"Exchanges that a model is shown before its task, as if they had been said"`
	View         viewDecl                    `yaml:"view" doc:"What a model call of the state sees"`
	Tools        toolsDecl                   `yaml:"tools" doc:"Tools that the handler may choose from: a list of names and {tool, when}, or {of, select}"`
	Model        string                      `yaml:"model" doc:"Name of a model, or none"`
	Cache        bool                        `yaml:"cache" doc:"Whether an answer that was given to the same request before, in any run, is taken from the store"`
	Limits       stateLimitsDecl             `yaml:"limits" doc:"What the state may use"`
	Transitions  machine.Ordered[[]lineDecl] `yaml:"transitions" flow:"one" doc:"Outcome to state, or to {to, set, say}, or to a list of {when, to, set, say} whose last has no when; else takes all other outcomes"`
	With         machine.HandlerConfig       // the handler's own keys
	At           spot
}

type toolsDecl struct {
	Of     []toolUseDecl `yaml:"of" flow:"required,scalar" doc:"The tools, each a name or {tool, when}"`
	Select *selectDecl   `yaml:"select" doc:"Gives a model only those tools that fit its task best"`
}

// toolUseDecl is one of a state's tools.
type toolUseDecl struct {
	Tool machine.ToolRef `yaml:"tool" flow:"required,scalar" doc:"The tool"`
	When machine.Expr    `yaml:"when" doc:"Expression: where it does not hold, the state does not have the tool"`
	At   spot
}

type selectDecl struct {
	Top int64 `yaml:"top" flow:"required,min1" doc:"How many"`
}

// exampleDecl is one exchange of a state's examples.
type exampleDecl struct {
	User      machine.Text      `yaml:"user" flow:"required" doc:"What the human says"`
	Calls     []exampleCallDecl `yaml:"calls" doc:"Tool calls that the model makes before it answers, all in one turn"`
	Assistant machine.Tree      `yaml:"assistant" flow:"required" doc:"What the model answers: text, or a mapping where the handler wants an object"`
	At        spot
}

type exampleCallDecl struct {
	Tool   machine.ToolRef               `yaml:"tool" flow:"required" doc:"One of the state's tools"`
	Args   machine.Ordered[machine.Tree] `yaml:"args" doc:"Its arguments"`
	Result machine.Tree                  `yaml:"result" flow:"required" doc:"What it gives"`
	At     spot
}

type viewDecl struct {
	Vars     []machine.VarRef `yaml:"vars" doc:"Inputs and variables"`
	Messages messagesDecl     `yaml:"messages" doc:"Which messages: none, own, all, or {states, last}; own if left out"`
	Attempts bool             `yaml:"attempts" doc:"Whether what was tried before in this state is shown"`
	Memory   *memoryViewDecl  `yaml:"memory" doc:"Which entries of the long-term memory; needs keys or search"`
	Budget   budgetDecl       `yaml:"budget" doc:"Longest parts of a request, in tokens; what the model's window has room for if left out"`
}

type memoryViewDecl struct {
	Keys   []string     `yaml:"keys" doc:"Entries whose key is one of these; * stands for any text"`
	Search machine.Text `yaml:"search" flow:"prompt" doc:"Entries that have words of this text"`
	Top    int64        `yaml:"top" flow:"min1" doc:"At most so many hits of search, the best; 5 if left out"`
	At     spot
}

type budgetDecl struct {
	System int64 `yaml:"system" flow:"min1" doc:"Of instructions and tools, which are never cut"`
	Task   int64 `yaml:"task" flow:"min1" doc:"Of the task, variables, attempts and memory"`
	Recent int64 `yaml:"recent" flow:"min1" doc:"Of messages"`
}

type messagesDecl struct {
	Mode   string             `yaml:"-" flow:"scalar,enum:none|own|all"`
	States []machine.StateRef `yaml:"states" doc:"Messages of these states and of this step; all states if left out"`
	Last   int64              `yaml:"last" flow:"min1" doc:"At most so many, the newest"`
	At     spot
}

type stateLimitsDecl struct {
	Visits int64            `yaml:"visits" flow:"min1" doc:"Entries in one run; 25 if left out"`
	Turns  int64            `yaml:"turns" flow:"min1" doc:"Questions or model turns of one step; 8 if left out"`
	Time   machine.Duration `yaml:"time" doc:"Active time of one step; unlimited if left out"`
}

// ModelKind says what a model provider is to the compiler.
//
// Fallbacks and Check are given the pointer that Config made, filled from the flow.
type ModelKind struct {
	Doc    string     // one line
	Config func() any // a pointer to a fresh, zero config struct, decoded like a handler's

	// Fallbacks gives the models that are asked in the place of this one, as its key `fallback` lists them. The compiler
	// looks that each is declared, stands there once and does not lead back. Nil: the provider has no such key.
	Fallbacks func(config any) []string

	// Check says what is wrong with a config, or unwise, that its own keys do not show. It is asked once for each model
	// whose keys are right, when the whole flow is known. A problem has the severity of its rule. Nil: nothing to check.
	Check func(config any, scope ModelScope) []machine.ConfigProblem
}

// ModelScope is what the check of a model may know of its flow. It must not be changed.
type ModelScope struct {
	Name      string   // the model's key under models
	Models    []string // all that the flow declares, in written order
	Dir       string   // absolute folder that relative paths start from
	Used      bool     // a state takes it, or one that a state takes falls back to it
	CostLimit float64  // limits.cost, in the currency of the prices; 0: the flow sets none
}

// Catalog is what flows are made of, by the names that they use. The maps must not change while it is in use.
type Catalog struct {
	Handlers   map[string]func() machine.HandlerSpec
	ToolKinds  map[string]machine.ToolKind
	ModelKinds map[string]ModelKind
}

// fileShape puts the catalog's own keys into the shape of the file.
func fileShape(cat Catalog) *shape {
	s := &shapes{byType: map[reflect.Type]*shape{}}
	root := s.of(typeOf[flowFile](), "flow")
	state, tool, model := s.of(typeOf[stateDecl](), ""), s.of(typeOf[toolDecl](), ""), s.of(typeOf[modelDecl](), "")

	state.pick = &variant{by: "handler", under: "with", what: "handler", rule: ruleUnknownHandler,
		name: indexOf[stateDecl]("Handler"), config: indexOf[stateDecl]("With")}
	for _, name := range machine.SortedNames(cat.Handlers) {
		spec := cat.Handlers[name]()
		state.pick.add(s, name, spec.Doc, func() any { return cat.Handlers[name]().With })
	}
	tool.pick = &variant{what: "tool", name: indexOf[toolDecl]("Kind"), config: indexOf[toolDecl]("Config")}
	for _, name := range machine.SortedNames(cat.ToolKinds) {
		kind := cat.ToolKinds[name]
		tool.pick.add(s, name, kind.Doc, func() any { return kind.Config() })
	}
	model.pick = &variant{by: "provider", what: "model provider", rule: ruleUnknownModel,
		name: indexOf[modelDecl]("Provider"), config: indexOf[modelDecl]("Config")}
	for _, name := range machine.SortedNames(cat.ModelKinds) {
		kind := cat.ModelKinds[name]
		model.pick.add(s, name, kind.Doc, kind.Config)
	}
	return root
}

func (v *variant) add(s *shapes, name, doc string, fresh func() any) {
	v.cases = append(v.cases, &variantCase{name: name, doc: doc, make: fresh, shape: s.of(reflect.TypeOf(fresh()), name)})
}

func indexOf[T any](name string) []int {
	f, _ := reflect.TypeFor[T]().FieldByName(name)
	return f.Index
}

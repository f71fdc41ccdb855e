package flows

import (
	"fmt"
	"slices"

	"flowctl/flows/machine"
)

// testCatalog holds handlers, tool kinds and model providers shaped like those that flows really use, so that the
// compiler is tested without the packages above it.
func testCatalog() Catalog {
	handler := func(doc string, fresh func() machine.HandlerConfig) func() machine.HandlerSpec {
		return func() machine.HandlerSpec { return machine.HandlerSpec{Doc: doc, With: fresh()} }
	}
	return Catalog{
		Handlers: map[string]func() machine.HandlerSpec{
			"intent": func() machine.HandlerSpec {
				return machine.HandlerSpec{Doc: "Classify a text into one of intents.", With: new(intentConfig),
					Outcomes: "the intents, else success; fail", Hears: "from"}
			},
			"collect": handler("Fill fields from what the human said.", func() machine.HandlerConfig { return new(collectConfig) }),
			"plan":    handler("Make a plan.", func() machine.HandlerConfig { return new(planConfig) }),
			"execute": handler("Carry out a plan.", func() machine.HandlerConfig { return new(executeConfig) }),
			"agent":   handler("Think and act.", func() machine.HandlerConfig { return new(agentConfig) }),
			"ask":     handler("Ask the human.", func() machine.HandlerConfig { return new(askConfig) }),
			"confirm": handler("Ask for yes or no.", func() machine.HandlerConfig { return new(confirmConfig) }),
			"call":    handler("Call one tool.", func() machine.HandlerConfig { return new(callConfig) }),
			"route":   handler("Only transitions.", func() machine.HandlerConfig { return new(routeConfig) }),
			"end":     handler("End the run.", func() machine.HandlerConfig { return new(endConfig) }),
		},
		ToolKinds: map[string]machine.ToolKind{
			"builtin": {Doc: "A tool that flowctl brings.", Config: func() machine.ToolConfig { return new(builtinConfig) }},
			"sql":     {Doc: "One SQL statement.", Config: func() machine.ToolConfig { return new(sqlConfig) }},
			"mcp":     {Doc: "A tool of a server.", Config: func() machine.ToolConfig { return new(mcpConfig) }},
		},
		ModelKinds: map[string]ModelKind{
			"openai": {Doc: "Any OpenAI-compatible endpoint.", Config: func() any { return new(openaiConfig) },
				Fallbacks: func(config any) []string { return config.(*openaiConfig).Fallback }, Check: checkOpenai},
			"script": {Doc: "Answers from a file.", Config: func() any { return new(scriptConfig) }},
		},
	}
}

type openaiConfig struct {
	Model       string           `yaml:"model" doc:"Name of the model"`
	BaseURL     string           `yaml:"base_url" doc:"Address of the endpoint"`
	APIKeyEnv   string           `yaml:"api_key_env" doc:"Environment variable that holds the key"`
	Temperature *float64         `yaml:"temperature" doc:"Randomness"`
	MaxTokens   int64            `yaml:"max_tokens" flow:"min1" doc:"Longest answer"`
	Timeout     machine.Duration `yaml:"timeout" doc:"Longest time of one call"`
	Fallback    []string         `yaml:"fallback" flow:"one" doc:"Models that are asked instead"`
	Extra       machine.Value    `yaml:"extra" doc:"Fields of the request"`
	Prices      *openaiPrices    `yaml:"prices" doc:"What tokens cost"`
}

type openaiPrices struct {
	Prompt     float64 `yaml:"prompt" flow:"required" doc:"Of the request"`
	Completion float64 `yaml:"completion" flow:"required" doc:"Of the answer"`
}

func checkOpenai(config any, s ModelScope) []machine.ConfigProblem {
	c := config.(*openaiConfig)
	var found []machine.ConfigProblem
	if _, ok := c.Extra.(machine.Values); c.Extra != nil && !ok {
		found = append(found, machine.ConfigProblem{Path: "extra", Message: "extra must be a mapping"})
	}
	if s.CostLimit > 0 && s.Used && c.Prices == nil {
		found = append(found, machine.ConfigProblem{Rule: ruleNoPrices, Message: s.Name + " has no prices, so limits.cost does not count it"})
	}
	return found
}

type scriptConfig struct {
	File string `yaml:"file" flow:"required" doc:"Script file"`
}

type sqlConfig struct {
	Database string `yaml:"database" flow:"required" doc:"Name of a database"`
	Query    string `yaml:"query" flow:"required" doc:"One SQL statement with :name parameters"`
	Rows     string `yaml:"rows" flow:"enum:one|many" doc:"How many rows"`
}

func (c *sqlConfig) Uses(s machine.ToolScope) machine.ToolUses {
	var uses machine.ToolUses
	if _, ok := s.Machine.Databases.Get(c.Database); !ok {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "database", Message: "the flow has no database " + c.Database})
	}
	uses.Batch = c.Rows != "one"
	if s.Batch && c.Rows == "one" {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "rows", Message: "one row each cannot be read in one go"})
	}
	if s.Effect == machine.EffectWrite {
		uses.Result = []byte(`{"type":"object","properties":{"affected":{"type":"integer"}}}`)
	}
	return uses
}

type mcpConfig struct {
	Server string `yaml:"server" flow:"required" doc:"Name of a server"`
	Tool   string `yaml:"tool" flow:"required" doc:"Its tool"`
}

func (c *mcpConfig) Uses(s machine.ToolScope) machine.ToolUses {
	uses := machine.ToolUses{Effect: machine.EffectWrite}
	if _, ok := s.Machine.Servers.Get(c.Server); !ok {
		uses.Problems = []machine.ConfigProblem{{Path: "server", Message: "the flow has no server " + c.Server}}
	}
	return uses
}

type builtinConfig struct {
	Name string `yaml:"name" flow:"required,enum:calculator|read_file|remember" doc:"Which one"`
	Root string `yaml:"root" doc:"Folder"`
}

func (c *builtinConfig) Uses(s machine.ToolScope) machine.ToolUses {
	if c.Name == "remember" {
		uses := machine.ToolUses{Description: "Remember a value.", Effect: machine.EffectWrite,
			Parameters: []byte(`{"type":"object","properties":{"key":{"type":"string"},"value":{}},"required":["key","value"]}`)}
		if s.Machine.Memory == nil {
			uses.Problems = []machine.ConfigProblem{{Path: "name", Rule: ruleNoMemory, Message: "the flow has no memory to remember in"}}
		}
		return uses
	}
	return machine.ToolUses{Description: "Compute a sum.", Effect: machine.EffectRead,
		Parameters: []byte(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`),
		Result:     []byte(`{"type":"number"}`)}
}

type intentConfig struct {
	From    machine.VarRef                `yaml:"from" flow:"prompt" doc:"What to classify"`
	Into    machine.VarRef                `yaml:"into" flow:"write" doc:"Variable for the intent"`
	Intents machine.Ordered[intentChoice] `yaml:"intents" flow:"required,outcomes" doc:"The intents by name"`
}

type intentChoice struct {
	Description string            `yaml:"description" flow:"required" doc:"What it means"`
	Keywords    []machine.Keyword `yaml:"keywords" doc:"Words that decide"`
	Patterns    []machine.Pattern `yaml:"patterns" doc:"Expressions that decide"`
	Examples    []string          `yaml:"examples" doc:"Examples for the model"`
}

func (c *intentConfig) Uses(s machine.Scope) machine.Uses {
	writes := func() []string {
		if c.Into == "" {
			return nil
		}
		return []string{string(c.Into)}
	}
	var uses machine.Uses
	var words []machine.Value
	all := true
	for _, in := range c.Intents {
		words = append(words, in.Name)
		routed := slices.Contains(s.Routes, machine.Outcome(in.Name))
		if all = all && routed; routed {
			uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Outcome(in.Name), Falls: machine.Success, Writes: writes()})
		}
	}
	if !all {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Success, Writes: writes()})
	}
	uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Fail})
	if c.Into != "" {
		uses.Holds = []machine.Hold{{Path: "into", Var: string(c.Into), Type: "string", Enum: words, Named: "the intents"}}
	}
	return uses
}

type collectConfig struct {
	From    machine.VarRef   `yaml:"from" flow:"prompt" doc:"Variable read first"`
	Fields  []collectField   `yaml:"fields" flow:"required" doc:"Variables to fill"`
	Timeout machine.Duration `yaml:"timeout" doc:"The human's time"`
}

type collectField struct {
	Name machine.VarRef `yaml:"name" flow:"required,scalar,write,secret" doc:"The variable"`
	Ask  machine.Text   `yaml:"ask" doc:"The question"`
}

func (c *collectConfig) Uses(machine.Scope) machine.Uses {
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, string(f.Name))
	}
	uses := machine.Uses{Shows: fields, Outcomes: []machine.OutcomeUse{
		{Name: machine.Complete, Writes: fields}, {Name: machine.Incomplete}}}
	if c.Timeout > 0 {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Expired})
	}
	return uses
}

type planConfig struct {
	Into    machine.VarRef   `yaml:"into" flow:"required,write" doc:"Variable for the plan"`
	For     machine.StateRef `yaml:"for" flow:"required" doc:"State that carries it out"`
	Goal    machine.Text     `yaml:"goal" flow:"required,prompt" doc:"What it is for"`
	Steps   []planStep       `yaml:"steps" doc:"Fixed steps"`
	Confirm bool             `yaml:"confirm" doc:"Whether the human is asked"`
	Comment machine.VarRef   `yaml:"comment" flow:"write" doc:"Variable for what a no said"`
}

type planStep struct {
	ID          string          `yaml:"id" flow:"required" doc:"Name of the step"`
	When        machine.Expr    `yaml:"when" doc:"Whether the step is taken"`
	Description machine.Text    `yaml:"description" doc:"What is done"`
	Tool        machine.ToolRef `yaml:"tool" doc:"The tool"`
	Args        machine.Tree    `yaml:"args" doc:"Its arguments"`
	Expect      machine.Expr    `yaml:"expect" flow:"expr:result" doc:"What must hold of the result"`
}

func (c *planConfig) Uses(s machine.Scope) machine.Uses {
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Confirmed, Writes: []string{string(c.Into)}}, {Name: machine.Fail}},
		Holds: []machine.Hold{{Path: "into", Var: string(c.Into), Type: "object", Named: "the plan"}}}
	if c.Confirm {
		rejected := machine.OutcomeUse{Name: machine.Rejected, Writes: []string{string(c.Into)}}
		if c.Comment != "" {
			rejected.Writes = append(rejected.Writes, string(c.Comment))
		}
		uses.Outcomes = append(uses.Outcomes, rejected)
	}
	known, _ := s.ToolsOf(string(c.For))
	for i, step := range c.Steps {
		if step.Tool != "" && !slices.Contains(known, string(step.Tool)) {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: fmt.Sprintf("steps[%d].tool", i),
				Message: fmt.Sprintf("%s does not have the tool %s", c.For, step.Tool)})
		}
		if step.Args != nil && step.Tool == "" {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: fmt.Sprintf("steps[%d].args", i),
				Message: "args stand beside a tool, and this step has none"})
		}
	}
	return uses
}

type executeConfig struct {
	From    machine.VarRef `yaml:"from" flow:"required,prompt" doc:"The plan"`
	Into    machine.VarRef `yaml:"into" flow:"write" doc:"Variable for the summary"`
	Summary machine.Text   `yaml:"summary" doc:"The summary"`
}

func (c *executeConfig) Uses(machine.Scope) machine.Uses {
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Success}, {Name: machine.Fail, Writes: []string{string(c.From)}}}}
	uses.Outcomes[0].Writes = []string{string(c.From)}
	uses.Holds = []machine.Hold{{Path: "from", Var: string(c.From), Type: "object", Named: "the plan"}}
	if c.Into != "" {
		uses.Outcomes[0].Writes = append(uses.Outcomes[0].Writes, string(c.Into))
		uses.Holds = append(uses.Holds, machine.Hold{Path: "into", Var: string(c.Into), Type: "string", Named: "the summary"})
	}
	return uses
}

type agentConfig struct {
	Goal     machine.Text            `yaml:"goal" flow:"required,prompt" doc:"What to do"`
	Into     []machine.VarRef        `yaml:"into" flow:"write,one" doc:"Variable for the answer, or a list of them"`
	Outcomes machine.Ordered[string] `yaml:"outcomes" flow:"outcomes" doc:"Outcomes by name, with a description each"`
}

func (c *agentConfig) Uses(s machine.Scope) machine.Uses {
	var into []string
	for _, name := range c.Into {
		into = append(into, string(name))
	}
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Fail}}}
	for _, o := range c.Outcomes {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Outcome(o.Name), Writes: into})
	}
	if len(c.Outcomes) == 0 {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Success, Writes: into})
	}
	if s.Model == machine.ModelNone {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Message: "an agent needs a model; declare one in models"})
	}
	return uses
}

type askConfig struct {
	Question machine.Text            `yaml:"question" flow:"required,prompt" doc:"The question"`
	Into     machine.VarRef          `yaml:"into" flow:"write,secret" doc:"Variable for the answer"`
	Choices  machine.Ordered[choice] `yaml:"choices" flow:"outcomes" doc:"Answers to choose from"`
	Timeout  machine.Duration        `yaml:"timeout" doc:"The human's time"`
}

type choice struct {
	Label machine.Text   `yaml:"label" flow:"required,scalar" doc:"What the human sees"`
	Into  machine.VarRef `yaml:"into" flow:"write,secret" doc:"Variable for a new value"`
}

func (c *askConfig) Uses(machine.Scope) machine.Uses {
	var uses machine.Uses
	for _, ch := range c.Choices {
		o := machine.OutcomeUse{Name: machine.Outcome(ch.Name)}
		if ch.Value.Into != "" {
			o.Writes = []string{string(ch.Value.Into)}
		}
		uses.Outcomes = append(uses.Outcomes, o)
	}
	if len(c.Choices) == 0 {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Answered, Writes: []string{string(c.Into)}})
	}
	return uses
}

type confirmConfig struct {
	Question machine.Text     `yaml:"question" flow:"required,prompt" doc:"The question"`
	Comment  machine.VarRef   `yaml:"comment" flow:"write" doc:"Variable for what a no said"`
	Timeout  machine.Duration `yaml:"timeout" doc:"The human's time"`
}

func (c *confirmConfig) Uses(machine.Scope) machine.Uses {
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Confirmed}, {Name: machine.Rejected}}}
	if c.Comment != "" {
		uses.Outcomes[1].Writes = []string{string(c.Comment)}
	}
	return uses
}

type callConfig struct {
	Tool   machine.ToolRef               `yaml:"tool" flow:"required" doc:"The tool"`
	Args   machine.Ordered[machine.Tree] `yaml:"args" flow:"secret" doc:"Its arguments"`
	Expect machine.Expr                  `yaml:"expect" flow:"expr:result" doc:"What must hold of the result"`
	Into   machine.VarRef                `yaml:"into" flow:"write,secret" doc:"Variable for the result"`
}

func (c *callConfig) Uses(machine.Scope) machine.Uses {
	var writes []string
	if c.Into != "" {
		writes = []string{string(c.Into)}
	}
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Success, Writes: writes}, {Name: machine.Fail, Writes: writes}}}
	if c.Into != "" {
		uses.Holds = []machine.Hold{{Path: "into", Var: string(c.Into), Named: "the result"}}
	}
	return uses
}

type routeConfig struct {
	Set machine.Ordered[machine.Tree] `yaml:"set" flow:"write" doc:"Variables to write"`
}

func (c *routeConfig) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.NextState, Writes: c.Set.Names()}}}
}

type endConfig struct {
	Status string       `yaml:"status" flow:"enum:succeeded|failed" doc:"How the run ended"`
	Output machine.Tree `yaml:"output" doc:"Text, or a map of texts"`
}

func (c *endConfig) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"flowctl/engine/model"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/tokens"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

func (a *app) toolsLsCommand() *cobra.Command {
	var state, server string
	cmd := &cobra.Command{
		Use:   "ls FLOW",
		Short: "List a flow's tools by state, with what their schemas cost",
		Long: `List the tools of each state that has some: kind, effect, approval, guard (when), the time that one call may take, how
often a call is tried again, and the tokens of its definition, which every request of the state carries. Tokens are
counted by the encoding of the state's model where that is known, and estimated elsewhere. A state's sum is that of all
its tools, or of the largest ones that select may give a model; what stands around a list of tools counts in it once.

With --server, list what an MCP server of the flow offers instead, as tools that can be pasted into the flow. The server
is started or asked for that, so a server that is a program needs --allow-commands.

-o json prints {flow, advised, allowed, states, unlisted}; with --server {server, tools, yaml}.`,
		Example: `  flowctl tools ls flow.yaml
  flowctl tools ls flow.yaml --state carry_out -o json
  flowctl tools ls flow.yaml --server files --allow-commands`,
		Args: args(1, 1, "FLOW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			switch {
			case given("state") && given("server"):
				return usagef("use one of the two", "--state and --server cannot stand together")
			case given("server"):
				return a.toolsServer(cmd.Context(), args[0], server)
			case given("state"):
				return a.toolsLs(args[0], &state)
			}
			return a.toolsLs(args[0], nil)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only the tools of this `STATE`")
	cmd.Flags().StringVar(&server, "server", "", "what the MCP server of this `NAME` offers")
	a.allowFlag(cmd.Flags())
	a.completeFlag(cmd, "state", func(m *machine.Machine) []string { return m.States.Names() })
	a.completeFlag(cmd, "server", func(m *machine.Machine) []string { return m.Servers.Names() })
	return cmd
}

// completeFlag completes a flag that takes a name of the flow.
func (a *app) completeFlag(cmd *cobra.Command, flag string, names func(*machine.Machine) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeNames(args, start, names)
	})
	if err != nil {
		panic(err) // there is no such flag: a mistake in this file
	}
}

// How many tools a model can choose from. Above the first the checker of flows warns, above the second it refuses.
const (
	advisedTools = 5
	allowedTools = 15
)

// toolsDocument is what ls tells programs. Its shape only grows.
type toolsDocument struct {
	Flow     string       `json:"flow"`
	Advised  int          `json:"advised"` // tools that a model is given at most, to choose well
	Allowed  int          `json:"allowed"`
	States   []stateTools `json:"states"`
	Unlisted []toolFacts  `json:"unlisted"` // tools that no state has
}

// stateTools are the tools of one state.
type stateTools struct {
	State   string      `json:"state"`
	Handler string      `json:"handler"`
	Model   string      `json:"model"`      // its name in the flow; "" where no model chooses among the tools
	ModelID string      `json:"model_id"`   // as its endpoint calls it; "" where nobody says
	Counted string      `json:"counted_by"` // encoding or estimate; "" where no model chooses
	Select  int64       `json:"select"`     // how many of them a model is given; 0: all
	Given   int         `json:"given"`      // tools that a model is given at most
	Above   bool        `json:"above_advised"`
	Tokens  *int64      `json:"tokens"` // that one request carries at most; null where no model chooses
	Tools   []toolFacts `json:"tools"`
}

// toolFacts is one tool, as a state has it.
type toolFacts struct {
	Tool         string         `json:"tool"`
	Kind         string         `json:"kind"`
	Effect       machine.Effect `json:"effect"`
	Approval     string         `json:"approval"`      // never, required or when
	ApprovalWhen string         `json:"approval_when"` // the expression of when, else ""
	When         string         `json:"when"`          // the state's guard; "": the tool is always there
	TimeoutMS    int64          `json:"timeout_ms"`    // of one call
	Retry        int64          `json:"retry"`         // how often a call may be tried again
	Tokens       *int64         `json:"tokens"`        // of its definition; null where no model is given it
}

// How tokens are counted: by the encoding of the model, or roughly.
const (
	countedExactly = "encoding"
	countedRoughly = "estimate"
)

// When a call of a tool needs approval.
const (
	approvalNever    = "never"
	approvalRequired = "required"
	approvalWhen     = "when"
)

// toolsLs lists the tools of all states, or of one.
func (a *app) toolsLs(flow string, state *string) error {
	m, err := a.readFlow(flow, a.catalog(a.toolKinds()))
	if err != nil {
		return err
	}
	env, err := a.environment(m.Dir)
	if err != nil {
		return err
	}
	doc := toolsDocument{Flow: m.Name, Advised: advisedTools, Allowed: allowedTools, States: []stateTools{}, Unlisted: []toolFacts{}}
	if state != nil {
		s, ok := m.State(*state)
		if !ok {
			return usagef(suggest(*state, m.States.Names(), "see them with: flowctl graph "+shellQuote(flow)),
				"the flow %s has no state %q", m.Name, *state)
		}
		doc.States = append(doc.States, toolsOf(m, s, env))
	} else {
		doc.addAll(m, env)
	}
	if a.json() {
		a.printJSON(doc)
		return nil
	}
	a.printTools(doc)
	return nil
}

// addAll adds the states that have tools, and the tools that no state has.
func (doc *toolsDocument) addAll(m *machine.Machine, env environment) {
	listed := map[string]bool{}
	for _, s := range m.States {
		for _, name := range s.Value.Tools {
			listed[name] = true
		}
		if len(s.Value.Tools) > 0 {
			doc.States = append(doc.States, toolsOf(m, s.Value, env))
		}
	}
	for _, spec := range m.Tools {
		if !listed[spec.Name] {
			doc.Unlisted = append(doc.Unlisted, factsOfTool(spec.Value))
		}
	}
}

// toolsOf describes the tools of a state.
func toolsOf(m *machine.Machine, s *machine.State, env environment) stateTools {
	out := stateTools{State: s.Name, Handler: s.Handler, Select: s.Select, Tools: []toolFacts{}}
	var counter tokens.Counter
	if s.ModelName != "" && s.Handler != "call" { // a call knows its tool, and asks no model
		out.Model, out.ModelID, out.Counted = s.ModelName, modelID(m, s.ModelName, env), countedExactly
		if counter = tokens.For(out.ModelID); counter == tokens.For("") {
			out.Counted = countedRoughly
		}
	}
	var given []model.Tool
	for _, name := range s.Tools {
		spec, _ := m.Tools.Get(name)
		facts := factsOfTool(spec)
		if guard := s.ToolWhen[name]; guard != nil {
			facts.When = guard.Source()
		}
		if counter != nil {
			def := definition(spec)
			n := tokens.Tools(counter, []model.Tool{def})
			facts.Tokens, given = &n, append(given, def)
		}
		out.Tools = append(out.Tools, facts)
	}
	if counter != nil {
		given = largest(counter, given, s.Select)
		sum := tokens.Tools(counter, given)
		out.Given, out.Above, out.Tokens = len(given), len(given) > advisedTools, &sum
	}
	return out
}

// largest gives the n tools whose definitions have most tokens, for select may choose them; all for 0.
func largest(counter tokens.Counter, tools []model.Tool, n int64) []model.Tool {
	if n == 0 || int64(len(tools)) <= n {
		return tools
	}
	slices.SortStableFunc(tools, func(x, y model.Tool) int {
		return int(tokens.Tools(counter, []model.Tool{y}) - tokens.Tools(counter, []model.Tool{x}))
	})
	return tools[:n]
}

// definition is what a model is sent of a tool.
func definition(spec machine.ToolSpec) model.Tool {
	def := model.Tool{Name: spec.Name, Description: spec.Description}
	if spec.Parameters != nil {
		def.Parameters = spec.Parameters.JSON()
	}
	return def
}

// modelID gives the name of a model at its endpoint, "" where neither the flow nor the environment says it.
func modelID(m *machine.Machine, name string, env environment) string {
	spec, _ := m.Models.Get(name)
	if cfg, ok := spec.Config.(*openai.Config); ok {
		return cfg.ID(env.get)
	}
	return ""
}

func factsOfTool(spec machine.ToolSpec) toolFacts {
	out := toolFacts{Tool: spec.Name, Kind: spec.Kind, Effect: spec.Effect, Approval: approvalNever,
		TimeoutMS: tool.TimeoutOf(spec).Milliseconds(), Retry: int64(tool.RetriesOf(spec))}
	switch {
	case spec.Approval.When != nil:
		out.Approval, out.ApprovalWhen = approvalWhen, spec.Approval.When.Source()
	case spec.Approval.Required:
		out.Approval = approvalRequired
	}
	return out
}

// printTools prints a table for each state.
func (a *app) printTools(doc toolsDocument) {
	for i, s := range doc.States {
		if i > 0 {
			a.outln("")
		}
		a.outln(s.headline())
		if len(s.Tools) > 0 {
			a.toolTable(s.Tools)
		}
	}
	if len(doc.Unlisted) > 0 {
		if len(doc.States) > 0 {
			a.outln("")
		}
		a.outln("in no state: " + plural(len(doc.Unlisted), "tool"))
		a.toolTable(doc.Unlisted)
	}
	if len(doc.States) == 0 && len(doc.Unlisted) == 0 {
		a.errln("the flow " + doc.Flow + " has no tools")
	}
}

// headline sums up the tools of a state.
func (s stateTools) headline() string {
	text := fmt.Sprintf("state %s (%s): %s", s.State, s.Handler, plural(len(s.Tools), "tool"))
	if len(s.Tools) == 0 {
		return fmt.Sprintf("state %s (%s): no tools", s.State, s.Handler)
	}
	if s.Given < len(s.Tools) && s.Tokens != nil {
		text += fmt.Sprintf(", of which select gives a model %d", s.Given)
	}
	if s.Above {
		text += fmt.Sprintf(" (more than the %d that are advised; at most %d are allowed)", advisedTools, allowedTools)
	}
	switch {
	case s.Tokens == nil:
		return text + "; no model chooses"
	case s.Given < len(s.Tools):
		text += fmt.Sprintf("; at most %d tokens", *s.Tokens)
	default:
		text += fmt.Sprintf("; %d tokens", *s.Tokens)
	}
	switch {
	case s.Counted == countedExactly:
		return text + ", counted for " + s.ModelID
	case s.ModelID != "":
		return text + ", estimated for " + s.ModelID
	}
	return text + ", estimated, since nothing says which model " + s.Model + " is"
}

func (a *app) toolTable(tools []toolFacts) {
	rows := make([][]string, len(tools))
	for i, t := range tools {
		approval := t.Approval
		if t.ApprovalWhen != "" {
			approval += " " + t.ApprovalWhen
		}
		count := "-"
		if t.Tokens != nil {
			count = fmt.Sprint(*t.Tokens)
		}
		guard := t.When
		if guard == "" {
			guard = "-"
		}
		rows[i] = []string{t.Tool, t.Kind, string(t.Effect), oneLine(approval), oneLine(guard),
			(time.Duration(t.TimeoutMS) * time.Millisecond).String(), fmt.Sprint(t.Retry), count}
	}
	a.table([]string{"TOOL", "KIND", "EFFECT", "APPROVAL", "WHEN", "TIMEOUT", "RETRY", "TOKENS"}, rows)
}

package flows

import (
	"fmt"
	"strings"
	"time"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// finishTool is the tool by which a model that has tools gives its answer. The engine makes it.
const finishTool = "finish"

// tools compiles the tools. Texts of a tool see its arguments, so they are resolved here, tool by tool: those of its kind
// before the kind is asked, the approval when the kind may have given the parameters.
func (c *compiler) tools() {
	for i := range c.file.Tools {
		decl := &c.file.Tools[i]
		path := join("tools", decl.Name)
		if decl.Name == finishTool {
			c.add(c.keyOf("tools", decl.Name), problem(ruleReservedName,
				"finish is no tool's name: a model that has tools gives its answer by a tool of this name; call yours something else"))
		}
		spec := machine.ToolSpec{Name: decl.Name, Kind: decl.Value.Kind, Config: decl.Value.Config, Pos: decl.Pos,
			Description: decl.Value.Description, Effect: machine.Effect(decl.Value.Effect), Parameters: decl.Value.Parameters,
			Timeout: time.Duration(decl.Value.Timeout), InDoubt: or(machine.InDoubt(decl.Value.InDoubt), machine.InDoubtAsk),
			Retry: decl.Value.Retry, Batch: decl.Value.Batch}
		scope := c.scope
		scope.HasArgs, scope.Args = true, spec.Parameters
		own := scope // of the kind's own texts, which are made when the tool is called
		own.Vars, own.ArgsOnly = nil, true
		if own.Args == nil && !c.broken(path) {
			own.Args = noParameters()
		}
		c.resolve(own, func(p pending) bool { return below(p.at.Path, join(path, spec.Kind)) })
		if spec.Config != nil && !c.broken(path) {
			c.askKind(&spec, path)
		}
		switch {
		case spec.Parameters != nil:
		case c.broken(path):
			spec.Parameters = anything() // nobody knows them; what calls the tool shall not be called wrong too
		default:
			spec.Parameters = noParameters()
		}
		own.Args, scope.Args = spec.Parameters, spec.Parameters
		c.resolve(own, func(p pending) bool { return below(p.at.Path, join(path, "resource")) })
		spec.Resource = decl.Value.Resource
		c.resolve(scope, func(p pending) bool { return below(p.at.Path, path) })
		spec.Approval = machine.Approval{Required: decl.Value.Approval.Mode == "required", When: decl.Value.Approval.When}
		c.checkEffectKeys(spec, path)
		c.m.Tools = append(c.m.Tools, machine.Item[machine.ToolSpec]{Name: decl.Name, Pos: decl.Pos, Value: spec})
	}
}

// servers compiles the MCP servers, which the tools of that kind look up. Their texts are made once for all runs, so they see
// the environment and nothing else.
func (c *compiler) servers() {
	scope := exprScope{ArgsOnly: true, Lines: c.scope.Lines}
	c.resolve(scope, func(p pending) bool { return below(p.at.Path, "mcp") })
	for _, item := range c.file.MCP {
		c.m.Servers = append(c.m.Servers, item)
		if path := join("mcp", item.Name); !c.broken(path) {
			c.configProblems(path, item.Value.Problems())
		}
	}
}

// below says whether a path is at or below another.
func below(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// askKind fills in what the tool's kind says of it; the flow's own word counts where there is one.
func (c *compiler) askKind(spec *machine.ToolSpec, path string) {
	uses := spec.Config.Uses(machine.ToolScope{
		Machine: c.m, Name: spec.Name, Parameters: spec.Parameters, Effect: spec.Effect, Batch: spec.Batch})
	spec.Description = or(spec.Description, uses.Description)
	spec.Effect = or(spec.Effect, uses.Effect)
	if spec.Parameters == nil && uses.Parameters != nil {
		spec.Parameters = c.kindSchema(uses.Parameters, path)
	}
	if uses.Result != nil {
		spec.Result = c.kindSchema(uses.Result, path)
	}
	c.configProblems(join(path, spec.Kind), uses.Problems)
	if c.broken(path) {
		return
	}
	if spec.Description == "" {
		c.add(c.keyOf("tools", spec.Name), problem(ruleMissingKey, "%s needs description (what it does, for the model that chooses)", spec.Name))
	}
	if spec.Effect == "" {
		c.add(c.keyOf("tools", spec.Name), problem(ruleMissingKey, "%s needs effect (read, idempotent or write)", spec.Name))
	}
	if spec.Batch && !uses.Batch && spec.Effect == machine.EffectRead {
		c.add(c.keyOf(path, "batch"), problem(ruleWithInvalid,
			"the calls of %s cannot be made in one go (kind %s); remove batch", spec.Name, spec.Kind))
	}
}

// checkEffectKeys: with-invalid. Some keys make sense for some effects only.
func (c *compiler) checkEffectKeys(spec machine.ToolSpec, path string) {
	if spec.Effect == "" {
		return // missing or unknown: said already
	}
	wrong := func(key, format string, args ...any) {
		c.add(c.keyOf(path, key), problem(ruleWithInvalid, format, args...))
	}
	read := spec.Effect == machine.EffectRead
	if spec.Retry != nil && spec.Effect == machine.EffectWrite {
		wrong("retry", "%s is a write, and a write is never tried again by itself; remove retry, or write effect: idempotent where a call may run twice", spec.Name)
	}
	if spec.Resource != nil && read {
		wrong("resource", "%s only reads, and reads run beside each other anyway; remove resource", spec.Name)
	}
	if spec.Batch && !read {
		wrong("batch", "only reads are made in one go, and the effect of %s is %s; remove batch", spec.Name, spec.Effect)
	}
	if fixed, ok := textConst(spec.Resource); ok && strings.TrimSpace(fixed) == "" {
		wrong("resource", "resource is empty; name what a call changes, such as order/{{ args.order_id }}")
	}
}

// kindSchema compiles a schema that a kind made.
func (c *compiler) kindSchema(data []byte, path string) machine.Schema {
	s, err := schema.Compile(data)
	if err != nil {
		c.add(c.under(path), problem(ruleBadSchema, "the schema that this kind of tool makes is wrong: %v", err))
		return anything()
	}
	return s
}

// configProblems places what a handler, a kind of tool or a provider says about its own keys.
func (c *compiler) configProblems(path string, problems []machine.ConfigProblem) {
	for _, p := range problems {
		at := c.under(path)
		if p.Path != "" {
			at = c.under(join(path, p.Path))
		}
		f := problem(or(p.Rule, ruleWithInvalid), "%s", p.Message)
		f.Severity, f.Suggestion = severityOf(f.Rule), p.Suggestion
		c.add(at, f)
	}
}

// anything is the schema that every value fits, and as a tool's parameters every argument.
func anything() machine.Schema { return mustSchema(`{"additionalProperties":true}`) }

// noParameters is the schema of a tool without arguments.
func noParameters() machine.Schema {
	return mustSchema(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)
}

func mustSchema(text string) machine.Schema {
	s, err := schema.Compile([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("the compiler's own schema %s is wrong: %v", text, err))
	}
	return s
}

package flows

import (
	"reflect"
	"slices"
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// resolve compiles the texts and expressions and looks up the names that the decoder has left, where which says so.
func (c *compiler) resolve(scope exprScope, which func(pending) bool) {
	var rest []pending
	for _, p := range c.pending {
		if which(p) {
			c.settle(p, scope)
		} else {
			rest = append(rest, p)
		}
	}
	c.pending = rest
}

func (c *compiler) settle(p pending, scope exprScope) {
	name := p.at.Node.Value
	switch p.shape.kind {
	case shapeVar:
		c.settleVar(p, name)
	case shapeTool:
		if _, ok := c.file.Tools.Get(name); !ok {
			c.add(p.at, c.noSuch(ruleUnknownTool, "tool", "tools", name, c.file.Tools.Names()))
		}
		c.used["tool:"+name] = true
		c.touch(p, func(t *touched) { t.tools.add(name) })
	case shapeState:
		if _, ok := c.file.States.Get(name); !ok {
			c.add(p.at, c.noSuch(ruleUnknownState, "state", "states", name, c.file.States.Names()))
		}
	default:
		c.settleText(p, scope)
	}
}

// noSuch is a finding about a name that the flow does not declare.
func (c *compiler) noSuch(rule, what, section, name string, known []string) Finding {
	known = slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !namePattern.MatchString(name) })
	f := problem(rule, "the flow has no %s %s", what, quote(brief(name)))
	f.Got, f.Suggestion = name, spell.Nearest(name, known)
	switch {
	case f.Suggestion != "":
	case len(known) == 0:
		f.Message += "; it declares none in " + section
	default:
		f.Message += "; it has " + strings.Join(known, ", ")
	}
	return f
}

func (c *compiler) settleVar(p pending, name string) {
	v, ok := c.m.Variable(name)
	switch {
	case !ok:
		known := c.m.Vars.Names()
		if !p.flags.write {
			known = append(known, c.m.Inputs.Names()...)
		}
		c.add(p.at, c.noSuch(ruleUnknownVariable, "variable", "vars", name, known))
	case p.flags.write && v.Input:
		c.add(p.at, problem(ruleReadOnly, "%s is an input and cannot be written; declare a variable for it in vars", name))
	default:
		c.settleSecret(p, v, name)
	}
	c.used[name] = true
	c.touch(p, func(t *touched) {
		if p.flags.write {
			t.writes.add(name)
			return
		}
		t.reads.add(name)
		if p.flags.prompt || inView(p.at.Path) {
			t.shows.add(name)
		}
	})
}

// settleText compiles a text, an expression or a tree, and keeps which variables it reads.
func (c *compiler) settleText(p pending, scope exprScope) {
	if p.flags.result {
		scope.HasResult, scope.Result = true, c.resultOf(p.owner)
	}
	if p.flags.env {
		scope.Env = func(name string) { c.env.add(name) }
	}
	scope.NoSecret = c.whySecret(p)
	var compiled interface{ Reads() []string }
	var found []Finding
	switch p.shape.kind {
	case shapeExpr:
		var e machine.Expr
		if e, found = scope.compileExpr(p.at.Node.Value, p.at, wantBool); e != nil {
			compiled = e
		}
	case shapeText:
		var t machine.Text
		if t, found = scope.compileText(p.at.Node.Value, p.at); t != nil {
			compiled = t
		}
	case shapeTree:
		var t machine.Tree
		if t, found = scope.compileTree(p.at); t != nil {
			compiled = t
		}
	}
	c.found = append(c.found, found...)
	if compiled == nil || hasErrors(found) {
		c.leaveUnread(p.at.Path, p.shape.kind, p.dst)
		return
	}
	p.dst.Set(reflect.ValueOf(compiled))
	if t, ok := compiled.(*tree); ok {
		c.useTree(p, t)
	}
	for _, name := range compiled.Reads() {
		c.used[name] = true
	}
	c.touch(p, func(t *touched) {
		t.reads.add(compiled.Reads()...)
		if p.flags.prompt {
			t.shows.add(compiled.Reads()...)
		}
	})
}

// resultOf gives the schema of what the tool gives that stands in the same struct as an expression; nil is anything.
func (c *compiler) resultOf(owner reflect.Value) machine.Schema {
	tool, _ := c.m.Tools.Get(toolBeside(owner))
	return tool.Result
}

// toolBeside gives the name of the tool that a struct names, "" for none.
func toolBeside(owner reflect.Value) string {
	for i := range owner.NumField() {
		if f := owner.Field(i); f.Type() == typeOf[machine.ToolRef]() {
			return f.String()
		}
	}
	return ""
}

// touch notes something for the state that a place belongs to, if its handler can see the place: what stands in a
// transition is the engine's.
func (c *compiler) touch(p pending, note func(*touched)) {
	steps := strings.SplitN(p.at.Path, ".", 4)
	switch {
	case p.at.Path == "instructions":
		for _, state := range c.file.States {
			note(c.of(state.Name))
		}
	case len(steps) > 2 && steps[0] == "states" && !inLine(p.at.Path):
		note(c.of(steps[1]))
	}
}

// inView says whether a path is one of a state's view.vars.
func inView(path string) bool {
	steps := strings.SplitN(path, ".", 4)
	return len(steps) == 4 && steps[2] == "view" && strings.HasPrefix(steps[3], "vars")
}

func (c *compiler) of(state string) *touched {
	if c.touched[state] == nil {
		c.touched[state] = &touched{reads: names{}, shows: names{}, writes: names{}, tools: names{}}
	}
	return c.touched[state]
}

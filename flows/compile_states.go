package flows

import (
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// engineOutcomes are returned by the engine only. They never fall under `else`, and any state but an end may name them.
var engineOutcomes = []machine.Outcome{machine.Error, machine.Timeout, machine.Limit}

func isEngineOutcome(o machine.Outcome) bool { return slices.Contains(engineOutcomes, o) }

// states compiles the states. A handler is asked for its outcomes once its own keys are read; the lines of transitions
// are read after that, since they see which outcomes there are.
func (c *compiler) states() {
	c.resolve(c.scope, func(p pending) bool { return !inLine(p.at.Path) })
	for i := range c.file.States {
		item := &c.file.States[i]
		c.m.States = append(c.m.States, machine.Item[*machine.State]{
			Name: item.Name, Pos: item.Pos, Value: c.state(item.Name, item.Pos, &item.Value)})
	}
	for i, s := range c.m.States {
		decl := &c.file.States[i].Value
		c.askHandler(s.Value, decl)
		scope := c.scope
		for _, o := range slices.Concat(s.Value.Outcomes, engineOutcomes) {
			if c.asked(s.Name) {
				scope.Outcomes = append(scope.Outcomes, string(o))
			}
		}
		c.resolve(scope, func(p pending) bool { return below(p.at.Path, decl.At.Path) })
	}
	c.resolve(c.scope, func(pending) bool { return true })
	for i := range c.file.Interrupts {
		item := &c.file.Interrupts[i]
		c.m.Interrupts = append(c.m.Interrupts, machine.Item[machine.Interrupt]{
			Name: item.Name, Pos: item.Pos, Value: c.interrupt(item.Name, &item.Value)})
	}
	for i, s := range c.m.States {
		c.route(s.Value, &c.file.States[i].Value)
	}
	c.m.Instructions = c.file.Instructions
}

// inLine says whether a path lies in a transition or an interrupt, which are the engine's and not a handler's.
func inLine(path string) bool {
	steps := strings.SplitN(path, ".", 4)
	return steps[0] == "defaults" || steps[0] == "interrupts" || len(steps) > 2 && steps[0] == "states" && steps[2] == "transitions"
}

// asked says whether a state's handler could be asked for its outcomes.
func (c *compiler) asked(state string) bool {
	_, ok := c.uses[state]
	return ok
}

// state fills in what the file itself says; askHandler adds the rest.
func (c *compiler) state(name string, pos machine.Pos, decl *stateDecl) *machine.State {
	s := &machine.State{
		Name: name, Pos: pos, Handler: decl.Handler, Description: decl.Description, Instructions: decl.Instructions,
		With: decl.With, Examples: examples(decl.Examples), View: view(decl.View), Cache: decl.Cache,
		Limits: machine.StateLimits{Visits: or(decl.Limits.Visits, machine.DefaultVisits),
			Turns: or(decl.Limits.Turns, machine.DefaultTurns), Time: decl.Limits.Time},
		Transitions: map[machine.Outcome][]machine.Branch{}, Falls: map[machine.Outcome]machine.Outcome{},
	}
	c.toolsOfState(s, decl)
	s.ModelName = c.modelOf(decl)
	s.Model = machine.ModelDeclared
	if s.ModelName == "" {
		s.Model = machine.ModelNone
	}
	return s
}

// toolsOfState fills in the tools that a state lists itself.
func (c *compiler) toolsOfState(s *machine.State, decl *stateDecl) {
	for _, use := range decl.Tools.Of {
		name := string(use.Tool)
		if name == "" {
			continue // missing, or no text: said already
		}
		if slices.Contains(s.Tools, name) {
			c.add(use.At, problem(ruleDuplicateKey, "%s stands in tools twice", name))
			continue
		}
		s.Tools = append(s.Tools, name)
		if use.When != nil {
			if s.ToolWhen == nil {
				s.ToolWhen = map[string]machine.Expr{}
			}
			s.ToolWhen[name] = use.When
		}
	}
	if decl.Tools.Select != nil {
		s.Select = decl.Tools.Select.Top
	}
}

func examples(decls []exampleDecl) []machine.Example {
	var out []machine.Example
	for _, decl := range decls {
		e := machine.Example{User: decl.User, Assistant: decl.Assistant}
		for _, call := range decl.Calls {
			e.Calls = append(e.Calls, machine.ExampleCall{Tool: string(call.Tool), Args: call.Args, Result: call.Result})
		}
		out = append(out, e)
	}
	return out
}

func view(decl viewDecl) machine.View {
	v := machine.View{Attempts: decl.Attempts, Memory: memoryView(decl.Memory), Budget: machine.Budget(decl.Budget),
		Messages: machine.MessageSelect{Mode: machine.MessageMode(decl.Messages.Mode), Last: int(decl.Messages.Last)}}
	for _, name := range decl.Vars {
		v.Vars = append(v.Vars, string(name))
	}
	for _, name := range decl.Messages.States {
		v.Messages.States = append(v.Messages.States, string(name))
	}
	switch {
	case v.Messages.Mode != "":
	case len(v.Messages.States) > 0:
		v.Messages.Mode = machine.MessagesStates
	case v.Messages.Last > 0:
		v.Messages.Mode = machine.MessagesAll
	default:
		v.Messages.Mode = machine.MessagesOwn
	}
	return v
}

// modelOf finds a state's model: the one that it names, else the one named default, else the only one. "" is none.
func (c *compiler) modelOf(decl *stateDecl) string {
	names := c.m.Models.Names()
	switch {
	case decl.Model == string(machine.ModelNone):
		return ""
	case decl.Model != "":
		if !slices.Contains(names, decl.Model) {
			c.add(c.under(join(decl.At.Path, "model")), c.noSuch(ruleUnknownModel, "model", "models", decl.Model, names))
		}
		return decl.Model
	case slices.Contains(names, "default"):
		return "default"
	case len(names) == 1:
		return names[0]
	case len(names) > 1 && decl.Handler != "end": // an end state never has use for one
		c.add(c.keyOf("states", last(decl.At.Path)), problem(ruleUnknownModel,
			"%s does not say which model it takes, and none of %s is named default; add model, or model: none",
			last(decl.At.Path), strings.Join(names, ", ")))
		return names[0]
	}
	return ""
}

func (c *compiler) interrupt(name string, decl *interruptDecl) machine.Interrupt {
	out := machine.Interrupt{Branch: machine.Branch{To: string(decl.To), Set: decl.Set, Say: decl.Say, Pos: c.doc.pos(decl.At.Node)}}
	for _, k := range decl.Keywords {
		out.Match = append(out.Match, k)
	}
	for _, p := range decl.Patterns {
		out.Match = append(out.Match, p)
	}
	if len(out.Match) == 0 && !c.broken(join("interrupts", name)) {
		c.add(c.keyOf("interrupts", name), problem(ruleMissingKey, "%s needs keywords or patterns, or nothing ever calls it", name))
	}
	return out
}

// askHandler asks a state's handler for its outcomes and for what it reads, shows and writes.
func (c *compiler) askHandler(s *machine.State, decl *stateDecl) {
	t := c.of(s.Name)
	with := join(decl.At.Path, "with")
	if uses, ok := c.usesOf(s, decl); ok {
		c.uses[s.Name] = uses
		c.configProblems(with, uses.Problems)
		t.reads.add(uses.Reads...)
		t.reads.add(uses.Shows...)
		t.shows.add(c.shown(uses.Shows)...)
		for _, name := range uses.Tools {
			if _, ok := c.m.Tools.Get(name); ok && !slices.Contains(s.Tools, name) {
				s.Tools = append(s.Tools, name)
			}
		}
		for _, o := range uses.Outcomes {
			s.Outcomes = append(s.Outcomes, o.Name)
			t.writes.add(o.Writes...)
		}
		slices.Sort(s.Outcomes)
		s.Outcomes = slices.Compact(s.Outcomes)
	}
	if c.m.Memory != nil && (s.View.Memory != nil || len(s.Tools) > 0) { // a tool may remember and recall
		t.reads.add(c.m.Memory.Reads()...)
	}
	s.Reads, s.Writes = t.reads.sorted(), t.writes.sorted()
	if s.Model != machine.ModelNone {
		s.Shows = t.shows.sorted()
	}
	for _, name := range slices.Concat(s.Reads, s.Writes) {
		c.used[name] = true
	}
}

// usesOf asks the handler. One whose keys are wrong is not asked, with two exceptions that leave its outcomes known. Where a
// text cannot be read, something else stands in its place. Where a name is not declared, only the outcomes count: what
// else the handler says may follow from the name, and it need not be able to live with it.
func (c *compiler) usesOf(s *machine.State, decl *stateDecl) (uses machine.Uses, ok bool) {
	with := join(decl.At.Path, "with")
	if decl.With == nil || c.missingWith(decl) {
		return uses, false
	}
	unnamed := false
	for _, f := range c.found {
		switch {
		case f.Severity != SeverityError || !below(f.Path, with):
		case slices.ContainsFunc(c.unread, func(path string) bool { return below(f.Path, path) }):
		case slices.Contains([]string{ruleUnknownVariable, ruleUnknownTool, ruleUnknownState, ruleReadOnly, ruleSecretShown}, f.Rule):
			unnamed = true
		default:
			return uses, false
		}
	}
	if !unnamed {
		return decl.With.Uses(c.scopeOf(s, decl)), true
	}
	defer func() {
		if recover() != nil {
			uses, ok = machine.Uses{}, false
		}
	}()
	return machine.Uses{Outcomes: decl.With.Uses(c.scopeOf(s, decl)).Outcomes}, true
}

func (c *compiler) scopeOf(s *machine.State, decl *stateDecl) machine.Scope {
	scope := machine.Scope{State: s.Name, Machine: c.m, Model: s.Model, Tools: s.Tools, ToolsOf: c.toolsOf, TextConst: textConst}
	for _, line := range decl.Transitions {
		if line.Name == "else" {
			scope.HasElse = true
		} else {
			scope.Routes = append(scope.Routes, machine.Outcome(line.Name))
		}
	}
	slices.Sort(scope.Routes)
	return scope
}

// missingWith says whether the handler misses keys because there is no `with` at all: the finding then stands at the state.
func (c *compiler) missingWith(decl *stateDecl) bool {
	if _, with := lookup(decl.At.Node, "with"); with != nil {
		return false
	}
	return slices.ContainsFunc(c.found, func(f Finding) bool { return f.Rule == ruleMissingKey && f.Path == decl.At.Path })
}

func (c *compiler) toolsOf(state string) ([]string, bool) {
	s, ok := c.m.States.Get(state)
	if !ok {
		return nil, false
	}
	return s.Tools, true
}

// branches compiles the lines of one outcome.
func (c *compiler) branches(path, outcome string, lines []lineDecl) []machine.Branch {
	var out []machine.Branch
	for i, line := range lines {
		_, guarded := lookup(line.At.Node, "when")
		final := i == len(lines)-1
		switch {
		case isNull(line.At.Node):
		case guarded != nil && final:
			c.add(line.At, problem(ruleGuardOrder,
				"the last line of %s has a when, so nothing says where to go if no guard holds; add a line without when", outcome))
		case guarded == nil && !final:
			c.add(line.At, problem(ruleGuardOrder,
				"the lines of %s below this one are never reached, since it has no when", outcome))
		}
		out = append(out, machine.Branch{When: line.When, To: string(line.To), Set: line.Set, Say: line.Say, Pos: c.doc.pos(line.At.Node)})
	}
	if len(lines) == 0 && !c.broken(join(path, outcome)) {
		c.add(c.under(join(path, outcome)), problem(ruleNoValue, "%s leads nowhere; name a state", outcome))
	}
	return out
}

// route decides which line each outcome takes: its own; for one that falls to another, that one's; the state's `else`; the
// flow's default. Of a handler that could not be asked nobody knows the outcomes: what is written stands.
func (c *compiler) route(s *machine.State, decl *stateDecl) {
	own := map[machine.Outcome][]machine.Branch{}
	for i := range decl.Transitions {
		line := &decl.Transitions[i]
		own[machine.Outcome(line.Name)] = c.branches(join(decl.At.Path, "transitions"), line.Name, line.Value)
	}
	if !c.asked(s.Name) {
		s.Transitions = own
		return
	}
	for _, use := range c.uses[s.Name].Outcomes {
		o := use.Name
		if lines, ok := own[o]; ok {
			s.Transitions[o] = lines
			continue
		}
		if use.Falls != "" {
			s.Falls[o] = use.Falls
			if slices.Contains(s.Outcomes, use.Falls) {
				continue // its line is found, or said to be missing, when its own turn comes
			}
			o = use.Falls
		}
		if lines, ok := c.fallback(own, o); ok {
			s.Transitions[o] = lines
			continue
		}
		c.missing = append(c.missing, missingRoute{s, o})
	}
	for _, o := range engineOutcomes {
		if s.End() || s.Transitions[o] != nil {
			continue
		}
		if lines, ok := own[o]; ok {
			s.Transitions[o] = lines
		} else if lines, ok := c.byDefault(o); ok {
			s.Transitions[o] = lines
		}
	}
}

// fallback finds the line of an outcome that has none of its own.
func (c *compiler) fallback(own map[machine.Outcome][]machine.Branch, o machine.Outcome) ([]machine.Branch, bool) {
	if lines, ok := own[o]; ok {
		return lines, true
	}
	if lines, ok := own["else"]; ok && !isEngineOutcome(o) {
		return lines, true
	}
	return c.byDefault(o)
}

// byDefault compiles the flow's default line of an outcome, once.
func (c *compiler) byDefault(o machine.Outcome) ([]machine.Branch, bool) {
	if c.defaults == nil {
		c.defaults = map[machine.Outcome][]machine.Branch{}
		for i := range c.file.Defaults.Transitions {
			line := &c.file.Defaults.Transitions[i]
			c.defaults[machine.Outcome(line.Name)] = c.branches("defaults.transitions", line.Name, line.Value)
		}
	}
	lines, ok := c.defaults[o]
	return lines, ok
}

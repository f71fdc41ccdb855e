package flows

import (
	"slices"
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// checks look at the whole flow once everything in it has been read. Each adds the findings of the rules in its comment.
var checks = []func(*compiler){
	checkOutcomes,
	checkDefaults,
	checkReachable,
	checkDeadEnds,
	checkHolds,
	checkTrees,
	checkOpenObjects,
	checkToolCounts,
	checkUnused,
	checkFiles,
	checkHeard,
	checkExamples,
	checkNoModel,
	checkMemory,
	checkBudgets,
	checkFallbacks,
	checkModels,
}

// whole says whether the graph is known: a state whose handler could not be asked has outcomes that nobody knows, and a
// line that leads to no state leads nowhere. Rules about the graph as a whole wait until that is mended.
func (c *compiler) whole() bool {
	return len(c.uses) == len(c.m.States) && !slices.ContainsFunc(c.found, hidesWays)
}

// hidesWays says whether something that stands where ways through the graph are written could not be read. What is wrong in
// names that the flow declares and in the expressions and texts of a line hides nothing.
func hidesWays(f Finding) bool {
	if f.Rule == ruleBadName && strings.Contains(f.Path, ".transitions.") {
		return true
	}
	reading := slices.ContainsFunc(slices.Concat(yamlRules, shapeRules), func(r Rule) bool { return r.ID == f.Rule })
	if !reading && !slices.Contains([]string{ruleUnknownState, ruleMissingRoute, ruleUnknownOutcome}, f.Rule) || f.Severity != SeverityError {
		return false
	}
	steps := strings.Split(f.Path, ".")
	switch steps[0] {
	case "", "start", "defaults", "interrupts":
		return true
	case "states":
		return len(steps) <= 2 || steps[2] == "transitions" || len(steps) == 3 && f.Rule == ruleUnknownKey
	}
	return len(steps) == 1 && f.Rule == ruleUnknownKey // it may be one of those above
}

// manners are words of other tools that people write for `else`.
var manners = []string{"goto", "next", "to", "then", "default", "otherwise", "any", "always", "done"}

// checkOutcomes: unknown-outcome and missing-route. A line must be for an outcome that the state's handler can return, and
// each of these must find a line. An outcome that a wrong line was meant for is not called missing too.
func checkOutcomes(c *compiler) {
	meant := map[string]bool{}
	for i := range c.m.States {
		s := c.m.States[i].Value
		if !c.asked(s.Name) {
			continue
		}
		for _, line := range c.file.States[i].Value.Transitions {
			o := machine.Outcome(line.Name)
			if slices.Contains(s.Outcomes, o) || !s.End() && (o == "else" || isEngineOutcome(o)) {
				continue
			}
			f := unknownOutcome(s, line.Name)
			meant[s.Name+" "+f.Suggestion] = true
			if !namePattern.MatchString(line.Name) {
				continue // it is no name: said already
			}
			c.add(c.keyOf("states."+s.Name+".transitions", line.Name), f)
		}
	}
	for _, m := range c.missing {
		at := c.keyOf("states", m.state.Name)
		if meant[m.state.Name+" "+string(m.outcome)] || c.meant(spot{Path: "states." + m.state.Name}, "transitions") ||
			c.unreadable(join("states."+m.state.Name, "transitions")) {
			continue
		}
		if _, n := lookup(child(c.root.Node, "states."+m.state.Name), "transitions"); n != nil {
			at = c.keyOf("states."+m.state.Name, "transitions")
		}
		c.add(at, problem(ruleMissingRoute, "%s can end with %s, and no line says where that leads; add a line %s, or else",
			m.state.Name, m.outcome, m.outcome))
	}
}

// unreadable says whether what stands at a path is not what must stand there.
func (c *compiler) unreadable(path string) bool {
	return slices.ContainsFunc(c.found, func(f Finding) bool {
		return f.Path == path && slices.Contains([]string{ruleWrongType, ruleNoValue, ruleBareBraces, ruleTag}, f.Rule)
	})
}

func unknownOutcome(s *machine.State, name string) Finding {
	if s.End() {
		return problem(ruleUnknownOutcome, "%s ends the run (handler %s), so no line leads on from it", s.Name, s.Handler)
	}
	known := make([]string, len(s.Outcomes))
	for i, o := range s.Outcomes {
		known[i] = string(o)
	}
	f := problem(ruleUnknownOutcome, "%s never ends with %s (handler %s)", s.Name, name, s.Handler)
	f.Got, f.Suggestion = name, spell.Nearest(name, append([]string{"else"}, known...))
	if slices.Contains(manners, name) {
		f.Suggestion = "else"
		if len(known) == 1 {
			f.Suggestion = known[0]
		}
	}
	if f.Suggestion == "" {
		f.Message += "; it can end with " + strings.Join(known, ", ")
	}
	return f
}

// checkDefaults: unused-default. A default line must be for an outcome that some state has.
func checkDefaults(c *compiler) {
	c.byDefault("")
	if len(c.uses) < len(c.m.States) {
		return
	}
	var known []string
	for _, s := range c.m.States {
		for _, o := range s.Value.Outcomes {
			known = append(known, string(o))
		}
	}
	for _, line := range c.file.Defaults.Transitions {
		if slices.Contains(known, line.Name) || isEngineOutcome(machine.Outcome(line.Name)) {
			continue
		}
		f := problem(ruleUnusedDefault, "no state ends with %s, so this line is never taken", line.Name)
		if line.Name == "else" {
			f.Message = "else stands in a state's own transitions; a default names its outcome"
		}
		f.Got, f.Suggestion = line.Name, spell.Nearest(line.Name, known)
		c.add(c.keyOf("defaults.transitions", line.Name), f)
	}
}

// leads gives where the lines of a state lead, interrupts aside.
func leads(s *machine.State) []string {
	var to []string
	for _, branches := range s.Transitions {
		for _, b := range branches {
			to = append(to, b.To)
		}
	}
	slices.Sort(to)
	return slices.Compact(to)
}

// checkReachable: unreachable. Every state must be on some way from the start.
func checkReachable(c *compiler) {
	if !c.whole() {
		return
	}
	todo := []string{c.m.Start}
	for _, in := range c.m.Interrupts {
		todo = append(todo, in.Value.Branch.To)
	}
	seen := names{}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen.add(name)
		if s, ok := c.m.States.Get(name); ok {
			todo = append(todo, leads(s)...)
		}
	}
	for _, s := range c.m.States {
		if !seen[s.Name] {
			c.add(c.keyOf("states", s.Name), problem(ruleUnreachable,
				"no way leads from the start (%s) to %s; lead a line to it or delete it", c.m.Start, s.Name))
		}
	}
}

// checkDeadEnds: dead-end. From every state some way must lead to an end.
func checkDeadEnds(c *compiler) {
	if !c.whole() {
		return
	}
	ends := names{}
	for again := true; again; {
		again = false
		for _, s := range c.m.States {
			if ends[s.Name] {
				continue
			}
			if s.Value.End() || slices.ContainsFunc(leads(s.Value), func(to string) bool { return ends[to] }) {
				ends.add(s.Name)
				again = true
			}
		}
	}
	for _, s := range c.m.States {
		if !ends[s.Name] {
			c.add(c.keyOf("states", s.Name), problem(ruleDeadEnd,
				"no way leads from %s to an end, so a run that comes here never finishes; lead a line to a state with handler end", s.Name))
		}
	}
}

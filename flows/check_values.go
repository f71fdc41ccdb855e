package flows

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// checkHolds: cannot-hold. A variable must be able to hold what its handler makes.
func checkHolds(c *compiler) {
	for _, s := range c.m.States {
		for _, hold := range c.uses[s.Name].Holds {
			v, ok := c.m.Vars.Get(hold.Var)
			if !ok || c.file.vars(hold.Var) == nil {
				continue // unknown, or its schema is wrong: said already
			}
			if message := misfit(hold, v.Schema); message != "" {
				c.add(c.under(join("states."+s.Name+".with", hold.Path)), problem(ruleCannotHold, "%s", message))
			}
		}
	}
}

// vars gives the schema of a declared variable, nil where it is wrong.
func (f *flowFile) vars(name string) machine.Schema {
	s, _ := f.Vars.Get(name)
	return s
}

// misfit says why a variable cannot hold something, "" if it can.
func misfit(hold machine.Hold, s machine.Schema) string {
	info := s.Info()
	what := or(hold.Named, "what is written")
	if hold.Type != "" && !info.Allows(hold.Type) {
		return fmt.Sprintf("%s cannot hold %s: it takes %s, and this is %s", hold.Var, what, strings.Join(info.Types, " or "), hold.Type)
	}
	var missing []string
	for _, word := range hold.Enum {
		if s.Check(word) != nil {
			missing = append(missing, machine.FormatValue(word))
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("%s cannot hold %s: its schema refuses %s", hold.Var, what, strings.Join(missing, ", "))
	}
	if hold.Enum == nil && info.Enum != nil && hold.Type == "string" {
		return fmt.Sprintf("%s cannot hold %s: its schema takes a few words only", hold.Var, what)
	}
	return ""
}

// checkOpenObjects: open-object. A model that fills an object must be told its properties.
func checkOpenObjects(c *compiler) {
	filled := map[string]string{} // variable → the first state whose model fills it
	for _, s := range c.m.States {
		if s.Value.Model == machine.ModelNone {
			continue
		}
		uses := c.uses[s.Name]
		for _, o := range uses.Outcomes {
			for _, name := range o.Writes {
				made := slices.ContainsFunc(uses.Holds, func(h machine.Hold) bool { return h.Var == name })
				if _, known := filled[name]; !known && !made {
					filled[name] = s.Name
				}
			}
		}
	}
	for _, v := range c.m.Vars {
		info := v.Value.Schema.Info()
		if filled[v.Name] == "" || !slices.Contains(info.Types, "object") || len(info.Properties) > 0 {
			continue
		}
		c.add(c.keyOf("vars", v.Name), advice(ruleOpenObject,
			"%s is filled by the model of %s, and its schema names no properties; without them a model guesses", v.Name, filled[v.Name]))
	}
}

// How many tools a model can choose from: above the first it chooses worse, above the second it is refused.
const (
	manyTools    = 5
	tooManyTools = 15
)

// checkToolCounts: many-tools and too-many-tools. They count what a model is given of the tools that the state lists; those
// that its handler knows besides are called by the handler.
func checkToolCounts(c *compiler) {
	for i := range c.m.States {
		s := c.m.States[i].Value
		listed := names{}
		for _, use := range c.file.States[i].Value.Tools.Of {
			listed.add(string(use.Tool))
		}
		delete(listed, "") // missing, or no text: said already
		if s.Model == machine.ModelNone || s.End() && c.asked(s.Name) {
			continue // nobody chooses
		}
		count, given := int64(len(listed)), ""
		if s.Select > 0 && s.Select < count {
			given = fmt.Sprintf(", of which select gives a model %d", s.Select)
			count = s.Select
		}
		at := c.under("states." + s.Name + ".tools")
		switch {
		case count > tooManyTools:
			c.add(at, problem(ruleTooManyTools, "%s has %d tools%s; at most %d are allowed, so split the state or add select: {top: %d}",
				s.Name, len(listed), given, tooManyTools, manyTools))
		case count > manyTools:
			c.add(at, advice(ruleManyTools, "%s has %d tools%s; with more than %d a model chooses worse", s.Name, len(listed), given, manyTools))
		}
	}
}

// checkFiles: missing-file. Of a flow that is in no folder nobody knows where its files would be.
func checkFiles(c *compiler) {
	if c.m.Dir == "" {
		return
	}
	for _, db := range c.m.Databases {
		if db.Value.Init == "" || isFile(db.Value.Path) || isFile(db.Value.Init) {
			continue
		}
		decl, _ := c.file.Databases.Get(db.Name)
		c.add(c.under(join(join("databases", db.Name), "init")), problem(ruleNoFile,
			"there is no file %s, from which the database %s would be made", decl.Init, db.Name))
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkUnused: unused-variable and unused-tool. The first human message is heard even where nothing names it.
func checkUnused(c *compiler) {
	if len(c.uses) < len(c.m.States) || hasErrors(c.found) {
		return // what is broken may be what uses it
	}
	for _, in := range c.m.Inputs {
		if !c.used[in.Name] && in.Name != c.m.Message {
			c.add(c.keyOf("inputs", in.Name), advice(ruleUnusedVariable, "nothing in the flow reads the input %s", in.Name))
		}
	}
	for _, v := range c.m.Vars {
		if !c.used[v.Name] {
			c.add(c.keyOf("vars", v.Name), advice(ruleUnusedVariable, "nothing in the flow reads or writes the variable %s", v.Name))
		}
	}
	for _, tool := range c.m.Tools {
		if !c.used["tool:"+tool.Name] {
			c.add(c.keyOf("tools", tool.Name), advice(ruleUnusedTool, "no state uses the tool %s", tool.Name))
		}
	}
}

// checkHeard: nothing-heard. A handler that cannot do without a human message is the first state of a flow that is given none.
func checkHeard(c *compiler) {
	start, ok := c.m.States.Get(c.m.Start)
	handler := c.cat.Handlers[or(start, &machine.State{}).Handler]
	if !ok || handler == nil || c.m.Message != "" {
		return
	}
	key := handler().Hears
	if _, given := lookup(child(c.root.Node, "states."+c.m.Start+".with"), key); key == "" || given != nil {
		return
	}
	f := advice(ruleNothingHeard, "%s reads what the human said last, and at the start nothing is said: name a variable with %s, or call an input message",
		c.m.Start, key)
	if len(c.m.Inputs) > 0 {
		f.Got = strings.Join(c.m.Inputs.Names(), ", ")
	}
	c.add(c.keyOf("states", c.m.Start), f)
}

package flows

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// checkExamples: bad-example and wrong-type. An example must show what its state can do: the calls of its own tools, and an
// answer that is a text or an object.
func checkExamples(c *compiler) {
	for i := range c.m.States {
		s := c.m.States[i].Value
		for _, decl := range c.file.States[i].Value.Examples {
			c.checkSaid(decl)
			for _, call := range decl.Calls {
				c.checkExampleCall(s, call)
			}
		}
	}
}

// checkSaid looks at the two texts of an example.
func (c *compiler) checkSaid(decl exampleDecl) {
	answer := c.under(join(decl.At.Path, "assistant"))
	if _, n := lookup(decl.At.Node, "assistant"); n != nil && !isBroken(n) && !isMapping(n) &&
		!(isLeaf(n) && (n.Tag == tagString || n.Tag == tagTime)) {
		c.mismatch(answer, "text or a mapping")
	}
	if fixed, ok := textConst(decl.User); ok && strings.TrimSpace(fixed) == "" {
		c.add(c.under(join(decl.At.Path, "user")), problem(ruleBadExample, "user is empty; an example starts with what the human says"))
	}
	if fixed, ok := treeConst(decl.Assistant); ok {
		if said, text := fixed.(string); text && strings.TrimSpace(said) == "" {
			c.add(answer, problem(ruleBadExample, "assistant is empty; an example ends with what the model answers"))
		}
	}
}

// checkExampleCall looks whether the state has the tool of a call, and whether that takes the arguments where these are known
// already. Those that are not are checked by their types; see checkTrees.
func (c *compiler) checkExampleCall(s *machine.State, call exampleCallDecl) {
	spec, declared := c.m.Tools.Get(string(call.Tool))
	if !declared || !c.asked(s.Name) || c.broken(join("states."+s.Name, "tools")) {
		return // unknown, or nobody knows which tools the state has: said already
	}
	if !slices.Contains(s.Tools, spec.Name) {
		have := "has none"
		if len(s.Tools) > 0 {
			have = "has " + strings.Join(s.Tools, ", ")
		}
		c.add(c.under(join(call.At.Path, "tool")), problem(ruleBadExample,
			"the example calls %s, and a model in %s cannot: the state %s; add it to tools", spec.Name, s.Name, have))
		return
	}
	args, known := machine.Values{}, true
	for _, arg := range call.Args {
		v, fixed := treeConst(arg.Value)
		args[arg.Name], known = v, known && fixed
	}
	if !known || c.broken(call.At.Path) {
		return
	}
	if err := takes(spec.Parameters, args); err != nil {
		c.add(c.under(join(call.At.Path, "args")), problem(ruleBadExample, "%s does not take these arguments: %v", spec.Name, err))
	}
}

// takes says how arguments do not fit the parameters of a tool, nil if they do. As in a real call, simple types are turned
// into the wanted ones, and null may stand for what is left out.
func takes(parameters machine.Schema, args machine.Values) error {
	err := parameters.Check(parameters.Coerce(args))
	if err == nil {
		return nil
	}
	given := machine.Values{}
	for name, v := range args {
		if v != nil {
			given[name] = v
		}
	}
	if len(given) < len(args) && parameters.Check(parameters.Coerce(given)) == nil {
		return nil
	}
	return err
}

// checkNoModel: no-model. What only a model reads does nothing in a state that has none.
func checkNoModel(c *compiler) {
	if len(c.m.Models) == 0 && (c.broken("models") || c.meant(c.root, "models")) {
		return // there are some, and they could not be read
	}
	for i := range c.m.States {
		s := c.m.States[i].Value
		why := "its model is none"
		switch {
		case s.End() && c.asked(s.Name):
			why = "it ends the run"
		case s.Model != machine.ModelNone:
			continue
		case len(c.m.Models) == 0:
			why = "the flow declares no models"
		}
		for _, key := range modelKeys(s, &c.file.States[i].Value) {
			at := "states." + s.Name
			step := key
			if above, below, nested := strings.Cut(key, "."); nested {
				at, step = join(at, above), below
			}
			c.add(c.keyOf(at, step), advice(ruleNoModel, "the key %s has no effect: no model is asked in %s (%s)", key, s.Name, why))
		}
	}
}

// modelKeys gives the keys of a state that only a model reads.
func modelKeys(s *machine.State, decl *stateDecl) []string {
	var keys []string
	if len(s.Examples) > 0 {
		keys = append(keys, "examples")
	}
	if s.Cache {
		keys = append(keys, "cache")
	}
	if s.View.Memory != nil {
		keys = append(keys, "view.memory")
	}
	if s.View.Budget != (machine.Budget{}) {
		keys = append(keys, "view.budget")
	}
	if decl.Tools.Select != nil {
		keys = append(keys, "tools.select")
	}
	return keys
}

// fallbacks gives the models that a model falls back to, as they are written.
func (c *compiler) fallbacks(spec machine.ModelSpec) []string {
	kind := c.cat.ModelKinds[spec.Provider]
	if kind.Fallbacks == nil || spec.Config == nil {
		return nil
	}
	return kind.Fallbacks(spec.Config)
}

// fallbackAt gives the place of the i-th fallback of a model, which may stand there alone, without a list.
func (c *compiler) fallbackAt(model string, i int) spot {
	at := c.under(join(join("models", model), "fallback"))
	if !isList(at.Node) {
		return at
	}
	return c.under(fmt.Sprintf("%s[%d]", at.Path, i))
}

// fallback is one model of another's fallback, with its place.
type fallback struct {
	to string
	at spot
}

// checkFallbacks: unknown-model, duplicate-key and fallback-cycle. A model falls back to others that are declared, to each
// once, and none of them leads back to it.
func checkFallbacks(c *compiler) {
	sound := map[string][]fallback{}
	for _, item := range c.m.Models {
		for i, to := range c.fallbacks(item.Value) {
			at := c.fallbackAt(item.Name, i)
			_, declared := c.m.Models.Get(to)
			switch {
			case c.broken(at.Path): // it is no text: said already
			case to == item.Name:
				c.add(at, problem(ruleFallbackCycle, "%s cannot fall back to itself; name another model", to))
			case !declared:
				c.add(at, c.noSuchFallback(item.Name, to))
			case slices.ContainsFunc(sound[item.Name], func(f fallback) bool { return f.to == to }):
				c.add(at, problem(ruleDuplicateKey, "%s stands in fallback twice", to))
			default:
				sound[item.Name] = append(sound[item.Name], fallback{to, at})
			}
		}
	}
	c.fallbackCircles(sound)
}

func (c *compiler) noSuchFallback(model, to string) Finding {
	others := slices.DeleteFunc(c.m.Models.Names(), func(name string) bool { return name == model })
	if len(others) == 0 {
		return problem(ruleUnknownModel, "the flow has no model %s; it declares none besides %s", quote(brief(to)), model)
	}
	return c.noSuch(ruleUnknownModel, "model", "models", to, others)
}

// fallbackCircles reports each fallback that leads back to a model on the way to it.
func (c *compiler) fallbackCircles(sound map[string][]fallback) {
	done := names{}
	var way []string
	var walk func(model string)
	walk = func(model string) {
		way = append(way, model)
		for _, f := range sound[model] {
			if i := slices.Index(way, f.to); i >= 0 {
				circle := append(slices.Clone(way[i:]), f.to)
				c.add(f.at, problem(ruleFallbackCycle, "fallback leads round in a circle (%s); take %s out here, or another one elsewhere",
					strings.Join(circle, " → "), f.to))
			} else if !done[f.to] {
				walk(f.to)
			}
		}
		way = way[:len(way)-1]
		done.add(model)
	}
	for _, name := range c.m.Models.Names() {
		if !done[name] {
			walk(name)
		}
	}
}

// checkModels asks each provider about its models. The rules are those that it names.
func checkModels(c *compiler) {
	used := c.usedModels()
	for _, item := range c.m.Models {
		spec, path := item.Value, join("models", item.Name)
		kind := c.cat.ModelKinds[spec.Provider]
		if kind.Check == nil || spec.Config == nil || c.broken(path) {
			continue
		}
		c.configProblems(path, kind.Check(spec.Config, ModelScope{Name: item.Name, Models: c.m.Models.Names(), Dir: c.m.Dir,
			Used: used[item.Name], CostLimit: c.m.Limits.Cost}))
	}
}

// usedModels gives the models that a run may ask: those of the states, and what these fall back to.
func (c *compiler) usedModels() names {
	used := names{}
	var todo []string
	for _, s := range c.m.States {
		if !s.Value.End() || !c.asked(s.Name) {
			todo = append(todo, s.Value.ModelName)
		}
	}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		spec, ok := c.m.Models.Get(name)
		if !ok || used[name] {
			continue
		}
		used.add(name)
		todo = append(todo, c.fallbacks(spec)...)
	}
	return used
}

package flows

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// Place says where a flow file is from.
type Place struct {
	File string // its name in findings and in errors of expressions; "" is flow.yaml
	Dir  string // folder that relative paths in it start from; "" is the working folder
}

// Check reads a flow file strictly and gives every finding, sorted, with the machine when none of them is an error.
func Check(source []byte, at Place, cat Catalog) (*machine.Machine, []Finding) {
	m, found := build(source, at, cat)
	if hasErrors(found) {
		return nil, found
	}
	return m, found
}

// Compile reads a flow that is to be started. A flow with errors is an *Error with all findings, warnings too.
func Compile(source []byte, dir string, cat Catalog) (*machine.Machine, error) {
	m, found := Check(source, Place{Dir: dir}, cat)
	if m == nil {
		return nil, &Error{Findings: found}
	}
	return m, nil
}

// CompileStored reads the flow of a run that was started before. Rules that only judge a flow (Rule.Lint) do not count, so
// that a newer flowctl takes up what an older one started. Otherwise it is like Compile.
func CompileStored(source []byte, dir string, cat Catalog) (*machine.Machine, error) {
	m, found := build(source, Place{Dir: dir}, cat)
	if found = structural(found); hasErrors(found) {
		return nil, &Error{Findings: found}
	}
	return m, nil
}

// maxSource bounds a flow file, in bytes.
const maxSource = 1 << 20

// build makes the machine. It is nil where a finding that is no lint is an error.
func build(source []byte, at Place, cat Catalog) (*machine.Machine, []Finding) {
	if at.File == "" {
		at.File = "flow.yaml"
	}
	if len(source) > maxSource {
		return nil, []Finding{problem(ruleSyntax, "the file is larger than 1 MiB").at(machine.Pos{File: at.File, Line: 1, Col: 1})}
	}
	doc, found := parse(at.File, source)
	if doc.root == nil {
		return nil, SortFindings(found)
	}
	dir, err := filepath.Abs(at.Dir)
	if err != nil {
		return nil, []Finding{problem(ruleSyntax, "the folder of the flow is not known: %v", err).at(doc.top())}
	}
	c := &compiler{
		decoder: decoder{doc: doc, found: found},
		root:    spot{File: at.File, Node: doc.root},
		shape:   fileShape(cat),
		m:       &machine.Machine{Source: slices.Clone(source), Dir: dir},
		touched: map[string]*touched{},
		uses:    map[string]machine.Uses{},
		used:    map[string]bool{},
		env:     names{},
		cat:     cat,
	}
	c.run()
	found = SortFindings(c.found)
	if hasErrors(structural(found)) {
		return nil, found
	}
	c.m.Hash, c.m.Env = c.hash(), c.env.sorted()
	c.digests()
	c.m.Seal()
	return c.m, found
}

func hasErrors(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Severity == SeverityError })
}

// compiler turns one decoded file into a machine.
type compiler struct {
	decoder
	root    spot
	shape   *shape
	file    flowFile
	m       *machine.Machine
	scope   exprScope
	touched map[string]*touched     // by state
	uses    map[string]machine.Uses // by state; missing where its handler's keys are wrong
	env     names                   // environment variables that are read anywhere
	used    map[string]bool         // inputs, variables ("order_id") and tools ("tool:refund") that are named anywhere
	// defaults holds the compiled lines of defaults.transitions; nil until they are asked for.
	defaults map[machine.Outcome][]machine.Branch
	missing  []missingRoute
	trees    []treeUse
	cat      Catalog
}

// missingRoute is an outcome of a state that finds no line.
type missingRoute struct {
	state   *machine.State
	outcome machine.Outcome
}

// touched is what the texts and names of one state come to.
type touched struct {
	reads, shows, writes, tools names
}

// names is a set of names.
type names map[string]bool

func (n names) add(list ...string) {
	for _, name := range list {
		n[name] = true
	}
}

func (n names) sorted() []string { return machine.SortedNames(n) }

func (c *compiler) run() {
	c.value(c.root, c.shape, flags{}, reflect.ValueOf(&c.file).Elem())
	c.head()
	c.variables()
	c.models()
	c.databases()
	c.scope = exprScope{Vars: map[string]machine.Schema{}, Secret: map[string]bool{}, States: c.file.States.Names(), Lines: c.doc.lines}
	for _, v := range slices.Concat(c.m.Inputs, c.m.Vars) {
		c.scope.Vars[v.Name] = v.Value.Schema
		if v.Value.Secret {
			c.scope.Secret[v.Name] = true
		}
	}
	c.servers()
	c.memory()
	c.tools()
	c.states()
	for _, check := range checks {
		check(c)
	}
}

// under gives the place below a path of the file; where nothing stands there, the nearest place above.
func (c *compiler) under(path string) spot {
	return spot{File: c.root.File, Node: child(c.root.Node, path), Path: path}
}

// keyOf gives the place of a key itself.
func (c *compiler) keyOf(path, key string) spot {
	k, _ := lookup(child(c.root.Node, path), key)
	if k == nil {
		return c.under(path)
	}
	return spot{File: c.root.File, Node: k, Path: join(path, key)}
}

// broken says whether an error was found at or below a path.
func (c *compiler) broken(path string) bool {
	return slices.ContainsFunc(c.found, func(f Finding) bool {
		rest, ok := strings.CutPrefix(f.Path, path)
		return ok && f.Severity == SeverityError && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// flowVersion is the format of flow files that is read here.
const flowVersion = 1

func (c *compiler) head() {
	f, m := &c.file, c.m
	if v, _ := lookup(c.root.Node, "version"); v != nil && !c.broken("version") && f.Version != flowVersion {
		c.add(c.under("version"), problem(ruleVersion, "version is %d; this flowctl reads version %d", f.Version, flowVersion))
	}
	m.Name, m.Description, m.Language, m.Start = string(f.Name), f.Description, f.Language, string(f.Start)
	if m.Language == "" {
		m.Language = "en"
	}
	m.Limits = machine.Limits{
		Steps: or(f.Limits.Steps, machine.DefaultSteps), ModelCalls: or(f.Limits.ModelCalls, machine.DefaultModelCalls),
		ToolCalls: or(f.Limits.ToolCalls, machine.DefaultToolCalls), Tokens: f.Limits.Tokens, Cost: f.Limits.Cost,
		Time: or(f.Limits.Time, machine.DefaultTime),
	}
	if len(f.States) == 0 && !c.broken("states") && f.States != nil {
		c.add(c.under("states"), problem(ruleMissingKey, "states is empty; a flow has at least one state"))
	}
}

// or gives the first value unless it is zero.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// reserved are the words that expressions and flow files use themselves.
var reserved = strings.Fields(`run last visits result args env else
	true false nil null not and or in let contains startsWith endsWith matches if
	all any one none map filter find findIndex findLast findLastIndex count sum groupBy sortBy reduce`)

// reservedOutcomes are no names of intents, choices and the like.
var reservedOutcomes = strings.Fields("success fail error timeout limit expired else")

func (c *compiler) variables() {
	for _, decl := range c.file.Inputs {
		c.m.Inputs = append(c.m.Inputs, machine.Item[machine.Variable]{
			Name: decl.Name, Pos: decl.Pos, Value: c.variable("inputs", decl.Name, decl.Value, true)})
	}
	for _, decl := range c.file.Vars {
		if first, clash := c.m.Inputs.Get(decl.Name); clash && first.Input {
			c.add(c.keyOf("vars", decl.Name), problem(ruleNameClash,
				"%s is an input already; inputs and variables share their names", decl.Name))
		}
		c.m.Vars = append(c.m.Vars, machine.Item[machine.Variable]{
			Name: decl.Name, Pos: decl.Pos, Value: c.variable("vars", decl.Name, decl.Value, false)})
	}
	c.m.Message = firstMessage(c.m.Inputs)
}

func (c *compiler) variable(section, name string, s machine.Schema, input bool) machine.Variable {
	if slices.Contains(reserved, name) {
		c.add(c.keyOf(section, name), problem(ruleReservedName,
			"%s is a word of the expression language; call it something else, such as the_%s", name, name))
	}
	v := machine.Variable{Schema: s, Input: input}
	if s == nil {
		v.Schema = anything() // it is wrong; what uses it shall not be called wrong too
		return v
	}
	if _, node := lookup(child(c.root.Node, join(section, name)), "default"); node != nil {
		v.HasDefault, v.Default = true, nodeValue(node)
	}
	v.Secret = c.secret(section, name, s)
	return v
}

// firstMessage finds the input that is the run's first human message. A secret one is none: messages are shown.
func firstMessage(inputs machine.Ordered[machine.Variable]) string {
	if v, ok := inputs.Get("message"); ok && !v.Secret && v.Schema.Info().Allows("string") {
		return "message"
	}
	var texts []string
	for _, in := range inputs {
		if kinds := in.Value.Schema.Info().Types; !in.Value.HasDefault && !in.Value.Secret && slices.Equal(kinds, []string{"string"}) {
			texts = append(texts, in.Name)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return ""
}

func (c *compiler) models() {
	for _, decl := range c.file.Models {
		if decl.Name == string(machine.ModelNone) {
			c.add(c.keyOf("models", decl.Name), problem(ruleReservedName, "none is no model's name: model: none says that a state has no model"))
		}
		c.m.Models = append(c.m.Models, machine.Item[machine.ModelSpec]{Name: decl.Name, Pos: decl.Pos, Value: machine.ModelSpec{
			Name: decl.Name, Provider: decl.Value.Provider, Config: decl.Value.Config, Pos: decl.Pos}})
	}
}

func (c *compiler) databases() {
	for _, decl := range c.file.Databases {
		db := machine.Database{Path: c.absolute(decl.Value.Path), Init: c.absolute(decl.Value.Init), Pos: decl.Pos}
		c.m.Databases = append(c.m.Databases, machine.Item[machine.Database]{Name: decl.Name, Pos: decl.Pos, Value: db})
	}
}

// absolute makes a path of the flow absolute; "" stays "".
func (c *compiler) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.m.Dir, path)
}

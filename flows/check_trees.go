package flows

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// treeUse is a value of the file together with what takes it.
type treeUse struct {
	at   spot
	name string // of a variable, or of a parameter of the tool
	tool string // "": a variable is written
	tree *tree
}

// useTree remembers a value that is written into a variable or passed to a tool: an entry of a map that writes, or of one
// beside the name of a tool.
func (c *compiler) useTree(p pending, t *tree) {
	use := treeUse{at: p.at, name: p.entry, tree: t}
	if p.entry == "" {
		return
	}
	if !p.flags.write {
		if use.tool = toolBeside(p.owner); use.tool == "" {
			return
		}
	}
	c.trees = append(c.trees, use)
}

// checkTrees: bad-value. What is written into a variable must fit its schema, and what is passed to a tool that of the
// parameter: a value without expression as it is, one with expressions by their types. Arguments without expression are
// checked by the handler that passes them.
func checkTrees(c *compiler) {
	for _, use := range c.trees {
		if use.tool != "" {
			c.checkPassed(use)
		} else {
			c.checkWritten(use)
		}
	}
}

func (c *compiler) checkWritten(use treeUse) {
	s := c.file.vars(use.name)
	if s == nil {
		return // unknown, or its schema is wrong: said already
	}
	if value, fixed := treeConst(use.tree); fixed {
		if err := s.Check(value); err != nil && value != nil {
			c.add(use.at, problem(ruleBadValue, "%s does not take this value: %v", use.name, err))
		}
		return
	}
	u := misfits{}
	u.node(use.tree.root, typeOfSchema(s), use.at)
	for _, one := range u.found {
		below := strings.TrimPrefix(one.at.Path, use.at.Path)
		f := problem(ruleBadValue, "%s never takes this: expected %s", use.name+below, one.what)
		f.Fix = one.fix
		c.add(one.at, f)
	}
}

func (c *compiler) checkPassed(use treeUse) {
	tool, ok := c.m.Tools.Get(use.tool)
	if _, fixed := treeConst(use.tree); !ok || fixed || tool.Parameters == nil {
		return
	}
	parameters := typeOfSchema(tool.Parameters)
	if parameters == nil || parameters.fields[use.name] == nil {
		return
	}
	u := misfits{coerced: true}
	u.node(use.tree.root, parameters.fields[use.name], use.at)
	for _, one := range u.found {
		c.add(one.at, problem(ruleBadValue, "the parameter %s of %s never takes this: expected %s",
			use.name+strings.TrimPrefix(one.at.Path, use.at.Path), use.tool, one.what))
	}
}

// misfits finds the places of a value that can never be of the wanted type.
type misfits struct {
	coerced bool // simple types are turned into the wanted ones, as arguments of tools are
	found   []misfitPlace
}

type misfitPlace struct {
	at   spot
	what string // "an integer, got a string"
	fix  string // what to write instead, "" if unknown
}

func (u *misfits) node(n treeNode, want *exprType, at spot) {
	if want == nil {
		return
	}
	switch n := n.(type) {
	case fixedNode:
		switch v := n.value.(type) {
		case machine.Values:
			var object objectNode
			for _, name := range machine.SortedNames(v) {
				object = append(object, objectField{name, fixedNode{v[name]}})
			}
			u.node(object, want, at)
			return
		case []machine.Value:
			list := make(listNode, len(v))
			for i, item := range v {
				list[i] = fixedNode{item}
			}
			u.node(list, want, at)
			return
		}
	case listNode:
		for i, item := range n {
			if want.allows("array") {
				u.node(item, want.items, under1(at, fmt.Sprintf("[%d]", i)))
			}
		}
	case objectNode:
		for _, f := range n {
			if want.allows("object") {
				u.node(f.node, want.fields[f.name], under1(at, f.name))
			}
		}
	}
	u.leaf(n, want, at)
}

// under1 gives the place one step below another.
func under1(at spot, step string) spot {
	path := at.Path + step
	if step[0] != '[' {
		path = join(at.Path, step)
	}
	return spot{File: at.File, Node: child(at.Node, step), Path: path}
}

// leaf compares the type of a value itself.
func (u *misfits) leaf(n treeNode, want *exprType, at spot) {
	got := typeOfTree(n)
	if got == nil {
		return
	}
	if !want.allows(got.kind) {
		if !u.coerced || !coercible(n, got, want) {
			u.found = append(u.found, misfitPlace{at, typeWords(want) + ", got " + kindWord(got.kind), asText(n, got, want)})
		}
		return
	}
	if want.enum == nil || got.enum == nil || slices.ContainsFunc(got.enum, func(v machine.Value) bool { return hasValue(want.enum, v) }) {
		return
	}
	u.found = append(u.found, misfitPlace{at, listed(want.enum) + ", got " + listed(got.enum), ""})
}

// asText gives what makes a text of the one expression that stands where text is wanted.
func asText(n treeNode, got, want *exprType) string {
	t, ok := n.(*text)
	if !ok || !want.allows("string") || got.kind == "object" || got.kind == "array" {
		return ""
	}
	return yamlText("{{ string(" + t.parts[0].expr.source + ") }}")
}

func hasValue(list []machine.Value, v machine.Value) bool {
	return slices.ContainsFunc(list, func(one machine.Value) bool { return machine.EqualValues(one, v) })
}

// coercible says whether an argument may be turned into the wanted type when the tool is called: a text that could be a number
// or a boolean, a whole number where text is wanted, one value where a list is.
func coercible(n treeNode, got, want *exprType) bool {
	wants := func(kind string) bool { return slices.Contains(want.types, kind) }
	switch {
	case wants("array"):
		return want.items.allows(got.kind) || coercible(n, got, want.items)
	case got.kind == "integer" || got.kind == "number":
		return wants("string")
	case got.kind != "string":
		return false
	case got.enum != nil:
		return slices.ContainsFunc(got.enum, func(v machine.Value) bool {
			word, _ := v.(string)
			read, err := machine.DecodeValue([]byte(strings.ToLower(strings.TrimSpace(word))))
			return err == nil && machine.KindOf(read) != "string" && want.allows(machine.KindOf(read))
		})
	}
	t, ok := n.(*text)
	if !ok {
		return true
	}
	numbers := wants("integer") || wants("number")
	for _, part := range t.parts {
		piece := strings.ToLower(strings.TrimSpace(part.fixed))
		digits := numbers && strings.Trim(piece, "0123456789+-.e") == ""
		word := wants("boolean") && (strings.Contains("true", piece) || strings.Contains("false", piece)) ||
			wants("null") && strings.Contains("null", piece)
		if piece != "" && !digits && !word {
			return false
		}
	}
	return numbers || wants("boolean") || wants("null")
}

// typeWords says in a person's words which types are wanted.
func typeWords(t *exprType) string {
	var words []string
	for _, kind := range t.types {
		if kind != "null" {
			words = append(words, kindWord(kind))
		}
	}
	return strings.Join(words, " or ")
}

// listed writes values for a message.
func listed(values []machine.Value) string {
	words := make([]string, 0, len(values))
	for _, v := range values {
		words = append(words, brieflyJSON(v))
	}
	return strings.Join(words, " or ")
}

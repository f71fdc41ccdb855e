package flows

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
)

// tree is a compiled YAML value whose strings are texts. It is immutable and safe for concurrent use.
type tree struct {
	root        treeNode
	reads       []string
	expressions []string
}

// treeNode is one of fixedNode, *text, listNode and objectNode.
type treeNode interface {
	Value(machine.Facts) (machine.Value, error)
}

// fixedNode is a value without expressions.
type fixedNode struct{ value machine.Value }

type listNode []treeNode

type objectNode []objectField

type objectField struct {
	name string
	node treeNode
}

// maxTreeDepth bounds how deep lists and objects may stand in each other.
const maxTreeDepth = 100

// compileTree checks and compiles a YAML value: its strings are texts, all else stands for itself. The tree is nil when a
// finding is an error.
func (s *exprScope) compileTree(at spot) (machine.Tree, []Finding) {
	b := treeBuilder{scope: s}
	root := b.node(at, 0)
	if hasErrors(b.found) || root == nil {
		return nil, b.found
	}
	slices.Sort(b.reads)
	return &tree{root: root, reads: slices.Compact(b.reads), expressions: b.expressions}, b.found
}

type treeBuilder struct {
	scope       *exprScope
	found       []Finding
	reads       []string
	expressions []string // as written
}

func (b *treeBuilder) add(at spot, f Finding) {
	f.Path = at.Path
	b.found = append(b.found, f.at(b.scope.pos(at, 0)))
}

func (b *treeBuilder) node(at spot, depth int) treeNode {
	n := at.Node
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n == nil:
		return fixedNode{nil}
	case depth > maxTreeDepth:
		b.add(at, problem(ruleTextSyntax, "lists and objects stand in each other more than %d deep", maxTreeDepth))
		return nil
	}
	at.Node = n
	switch n.Kind {
	case yaml.SequenceNode:
		return b.list(at, depth)
	case yaml.MappingNode:
		return b.object(at, depth)
	}
	return b.scalar(at)
}

func (b *treeBuilder) list(at spot, depth int) treeNode {
	list := make(listNode, len(at.Node.Content))
	for i, item := range at.Node.Content {
		list[i] = b.node(spot{File: at.File, Node: item, Path: at.Path + "[" + strconv.Itoa(i) + "]"}, depth+1)
	}
	return settled(list)
}

func (b *treeBuilder) object(at spot, depth int) treeNode {
	var object objectNode
	for i := 0; i+1 < len(at.Node.Content); i += 2 {
		key, value := at.Node.Content[i], at.Node.Content[i+1]
		path := key.Value
		if at.Path != "" {
			path = at.Path + "." + key.Value
		}
		object = append(object, objectField{key.Value, b.node(spot{File: at.File, Node: value, Path: path}, depth+1)})
	}
	return settled(object)
}

// settled makes a value without expressions once and for all.
func settled(n treeNode) treeNode {
	var parts []treeNode
	switch n := n.(type) {
	case listNode:
		parts = n
	case objectNode:
		for _, field := range n {
			parts = append(parts, field.node)
		}
	}
	for _, part := range parts {
		if _, fixed := part.(fixedNode); !fixed {
			return n
		}
	}
	v, err := n.Value(machine.Facts{})
	if err != nil {
		return n
	}
	return fixedNode{v}
}

func (b *treeBuilder) scalar(at spot) treeNode {
	n := at.Node
	switch n.ShortTag() {
	case tagNull:
		return fixedNode{nil}
	case tagBool, tagTime:
		return fixedNode{nodeValue(n)}
	case tagInt, tagFloat:
		v := nodeValue(n)
		if _, text := v.(string); text {
			b.add(at, problem(ruleNumber, "%s is no exact decimal number; write it in plain decimal, or in quotes as text", n.Value))
			return nil
		}
		return fixedNode{v}
	}
	t, found := b.scope.text(n.Value, at)
	b.found = append(b.found, found...)
	if fixed, ok := textConst(t); ok {
		return fixedNode{fixed}
	}
	b.reads = append(b.reads, t.reads...)
	for _, part := range t.parts {
		if part.expr != nil {
			b.expressions = append(b.expressions, part.expr.source)
		}
	}
	return t
}

// Value gives a value of the caller's own.
func (n fixedNode) Value(machine.Facts) (machine.Value, error) {
	return machine.CloneValue(n.value), nil
}

func (n listNode) Value(f machine.Facts) (machine.Value, error) {
	out := make([]machine.Value, len(n))
	for i, item := range n {
		v, err := item.Value(f)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (n objectNode) Value(f machine.Facts) (machine.Value, error) {
	out := make(machine.Values, len(n))
	for _, field := range n {
		v, err := field.node.Value(f)
		if err != nil {
			return nil, err
		}
		out[field.name] = v
	}
	return out, nil
}

// Value gives the value over facts. An error is a *machine.ExprError.
func (t *tree) Value(f machine.Facts) (machine.Value, error) { return t.root.Value(f) }

// Reads gives the inputs and variables that it names, sorted. The slice must not be changed.
func (t *tree) Reads() []string { return t.reads }

// Expressions gives the expressions in it, as written. The slice must not be changed.
func (t *tree) Expressions() []string { return t.expressions }

// treeConst gives a tree that holds no expression, as a value of the caller's own.
func treeConst(t machine.Tree) (machine.Value, bool) {
	own, ok := t.(*tree)
	if !ok {
		return nil, false
	}
	fixed, ok := own.root.(fixedNode)
	return machine.CloneValue(fixed.value), ok
}

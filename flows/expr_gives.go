package flows

import (
	"reflect"

	"github.com/expr-lang/expr/ast"

	"flowctl/flows/machine"
)

// typeGiven gives what is known of the values of a checked expression, null apart; nil is nothing. It never says more than is
// sure: a number may turn out to be an integer.
func (c *exprCheck) typeGiven(n ast.Node) *exprType {
	switch n := n.(type) {
	case *ast.StringNode, *ast.BoolNode, *ast.IntegerNode:
		v, _ := literalValue(n)
		return &exprType{kind: machine.KindOf(v), enum: []machine.Value{v}}
	case *ast.ConditionalNode:
		return eitherType(c.typeGiven(n.Exp1), c.typeGiven(n.Exp2))
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return eitherType(c.typeGiven(n.Left), c.typeGiven(n.Right))
		}
	}
	if t := c.typeOf(n, place{}); t != nil && t.kind != "" {
		return t
	}
	nature := n.Nature()
	if nature.Nil || nature.Type == nil {
		return nil
	}
	switch nature.Kind {
	case reflect.String:
		return &exprType{kind: "string"}
	case reflect.Bool:
		return &exprType{kind: "boolean"}
	case reflect.Int, reflect.Int64:
		return &exprType{kind: "integer"}
	case reflect.Float64:
		return &exprType{kind: "number"}
	case reflect.Slice, reflect.Array:
		return &exprType{kind: "array"}
	case reflect.Map:
		return &exprType{kind: "object", open: true}
	}
	return nil
}

// eitherType is the type of a value that is one of two.
func eitherType(a, b *exprType) *exprType {
	if a == nil || b == nil {
		return nil
	}
	kind := oneKind([]machine.Value{a.kind, b.kind})
	if kind == "" {
		return nil
	}
	t := &exprType{kind: kind, open: true}
	if a.enum != nil && b.enum != nil {
		t.enum = append(append(t.enum, a.enum...), b.enum...)
	}
	return t
}

// typeOfTree gives what is known of the values of a compiled value; nil is nothing.
func typeOfTree(n treeNode) *exprType {
	switch n := n.(type) {
	case fixedNode:
		return typeOfValue(n.value)
	case *text:
		if len(n.parts) == 1 && n.parts[0].expr != nil {
			return n.parts[0].expr.gives
		}
		return &exprType{kind: "string"}
	case listNode:
		return &exprType{kind: "array"}
	case objectNode:
		t := &exprType{kind: "object", open: true, fields: map[string]*exprType{}}
		for _, f := range n {
			t.fields[f.name] = typeOfTree(f.node)
		}
		return t
	}
	return nil
}

func typeOfValue(v machine.Value) *exprType {
	switch v := v.(type) {
	case nil:
		return nil
	case machine.Values:
		t := &exprType{kind: "object", open: true, fields: map[string]*exprType{}}
		for name, one := range v {
			t.fields[name] = typeOfValue(one)
		}
		return t
	case []machine.Value:
		return &exprType{kind: "array"}
	}
	return &exprType{kind: machine.KindOf(v), enum: []machine.Value{v}}
}

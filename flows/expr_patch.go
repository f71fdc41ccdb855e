package flows

import "github.com/expr-lang/expr/ast"

// runPatch rewrites the tree of the program that runs, so that whole numbers stay exact and every failure can be told in
// words for people. It is visited from the leaves up.
type runPatch struct{}

// Visit rewrites one node.
func (runPatch) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		nullPatch{}.Visit(node)
	case *ast.IntegerNode:
		// int would differ from the int64 of variables inside lists and objects.
		ast.Patch(node, &ast.ConstantNode{Value: int64(n.Value)})
	case *ast.ArrayNode:
		patchArray(node, n)
	case *ast.UnaryNode:
		if n.Operator == "-" {
			patchNegate(node, n)
		}
	case *ast.BinaryNode:
		patchBinary(node, n)
	case *ast.BuiltinNode:
		patchBuiltin(node, n)
	case *ast.CallNode:
		patchCall(node, n)
	case *ast.MemberNode:
		patchMember(node, n)
	case *ast.SliceNode:
		patchInto(node, callSlice, n.Node, orNil(n.From), orNil(n.To))
	}
}

// nullPatch makes null a word for no value, as it is in YAML and JSON; the library knows nil only.
type nullPatch struct{}

// Visit rewrites one node.
func (nullPatch) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok && n.Value == "null" {
		ast.Patch(node, &ast.NilNode{})
	}
}

// patchInto puts a call of one of our functions in the place of a node.
func patchInto(node *ast.Node, name string, args ...ast.Node) {
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation((*node).Location())
	ast.Patch(node, &ast.CallNode{Callee: callee, Arguments: args})
}

func orNil(n ast.Node) ast.Node {
	if n == nil {
		return &ast.NilNode{}
	}
	return n
}

// patchArray makes a list of literals once, not at every look. Results are copied, so that nobody can change it.
func patchArray(node *ast.Node, n *ast.ArrayNode) {
	list := make([]any, len(n.Nodes))
	for i, item := range n.Nodes {
		switch item := item.(type) {
		case *ast.StringNode:
			list[i] = item.Value
		case *ast.BoolNode:
			list[i] = item.Value
		case *ast.FloatNode:
			list[i] = item.Value
		case *ast.ConstantNode:
			list[i] = item.Value
		case *ast.NilNode:
		default:
			return
		}
	}
	ast.Patch(node, &ast.ConstantNode{Value: list})
}

func patchNegate(node *ast.Node, n *ast.UnaryNode) {
	if c, ok := n.Node.(*ast.ConstantNode); ok {
		if i, ok := c.Value.(int64); ok {
			ast.Patch(node, &ast.ConstantNode{Value: -i}) // a literal is never the smallest integer
			return
		}
	}
	patchInto(node, callNegate, n.Node)
}

var checkedOperators = map[string]string{"+": callAdd, "-": callSubtract, "*": callMultiply}

func patchBinary(node *ast.Node, n *ast.BinaryNode) {
	if name, ok := checkedOperators[n.Operator]; ok {
		patchInto(node, name, n.Left, n.Right)
		return
	}
	if n.Operator != "==" && n.Operator != "!=" || isScalar(n.Left) || isScalar(n.Right) {
		return
	}
	patchInto(node, callEqual, n.Left, n.Right)
	if n.Operator == "!=" {
		ast.Patch(node, &ast.UnaryNode{Operator: "not", Node: *node})
	}
}

// isScalar says whether a node is a literal that the machine's own == compares rightly and faster.
func isScalar(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode, *ast.BoolNode, *ast.NilNode, *ast.FloatNode:
		return true
	case *ast.ConstantNode:
		_, list := n.Value.([]any)
		return !list
	}
	return false
}

func patchBuiltin(node *ast.Node, n *ast.BuiltinNode) {
	if !predicateFunctions[n.Name] {
		return
	}
	patchInto(&n.Arguments[0], callList, n.Arguments[0])
	switch {
	case n.Name == "sum" && len(n.Arguments) == 1:
		patchInto(node, callSum, n.Arguments[0])
	case n.Name == "sum":
		mapped := &ast.BuiltinNode{Name: "map", Arguments: n.Arguments}
		mapped.SetLocation(n.Location())
		patchInto(node, callSum, mapped)
	case n.Name == "groupBy":
		patchInto(node, callGroups, n)
	}
}

func patchCall(node *ast.Node, n *ast.CallNode) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return
	}
	switch callee.Value {
	case "visits":
		patchInto(node, callVisits, callee, n.Arguments[0])
	case "env":
		patchInto(node, callEnv, callee, n.Arguments[0])
	}
}

// patchMember joins last.error.kind and the like into one name, and turns x[i] into a call.
func patchMember(node *ast.Node, n *ast.MemberNode) {
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		if !n.Optional {
			patchInto(node, callItem, n.Node, n.Property)
		}
		return
	}
	base, ok := n.Node.(*ast.IdentifierNode)
	if !ok {
		return
	}
	if ref, ok := findFact(base.Value + "." + name.Value); ok {
		ast.Patch(node, &ast.IdentifierNode{Value: ref.name})
	}
}

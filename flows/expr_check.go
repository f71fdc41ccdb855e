package flows

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// exprCheck checks one expression before it is compiled to run.
type exprCheck struct {
	scope  *exprScope
	src    string
	at     spot
	offset int // of src in the scalar, in bytes

	known  map[string]*exprType // types of all names
	used   map[string]*exprType // those that the expression names
	lets   map[string]bool
	words  map[*ast.IdentifierNode]*exprType // those that are compared, with the type of the other side
	visits []string
	gives  *exprType // what is known of its values
	found  []Finding
}

// add reports a finding at a rune offset of the source.
func (c *exprCheck) add(rune int, f Finding) {
	f.Path = c.at.Path
	offset := len(c.src)
	for i := range c.src {
		if rune <= 0 {
			offset = i
			break
		}
		rune--
	}
	c.found = append(c.found, f.at(c.scope.pos(c.at, c.offset+offset)))
}

func (c *exprCheck) addAt(n ast.Node, f Finding) { c.add(n.Location().From, f) }

// library reports an error of the parser or the checker of types.
func (c *exprCheck) library(err error, rule string) {
	var where *file.Error
	if !errors.As(err, &where) {
		c.add(0, problem(rule, "%s", plainReason(err.Error())))
		return
	}
	if rule == ruleExprSyntax {
		f, from := c.syntax(where)
		c.add(from, f)
		return
	}
	c.add(where.From, problem(rule, "%s", plainReason(where.Message)))
}

// syntax says in words for people what the parser says, and where.
func (c *exprCheck) syntax(e *file.Error) (Finding, int) {
	switch m := e.Message; {
	case strings.Contains(m, "maximum allowed nodes"):
		return problem(ruleForbidden, "the expression has more than %d parts; split it, or let a tool decide", maxExprNodes), 0
	case strings.Contains(m, "literal not terminated"):
		return problem(ruleExprSyntax, "a text in quotes is not closed"), c.openQuote()
	case strings.Contains(m, "Operator(\"=\")"):
		f := problem(ruleExprSyntax, "= does not compare")
		f.Suggestion = c.comparison(e.From)
		return f, e.From
	case strings.HasPrefix(m, "unrecognized character"):
		return c.oddSign(e.From), e.From
	case strings.Contains(m, "unexpected token EOF"), strings.Contains(m, "unexpected end"):
		return problem(ruleExprSyntax, "the expression ends too early"), e.From + 1
	case strings.Contains(m, "unexpected token "):
		_, token, _ := strings.Cut(m, "unexpected token ")
		kind, word, quoted := strings.Cut(token, "(")
		if word, err := strconv.Unquote(strings.TrimSuffix(word, ")")); quoted && err == nil {
			f := problem(ruleExprSyntax, "%s is not expected here", quoteWord(kind, word))
			f.Suggestion = foreignWords[strings.ToLower(word)]
			if word == ">" && strings.HasSuffix(strings.TrimRight(string([]rune(c.src)[:e.From]), " "), "<") {
				f.Suggestion = "!="
			}
			return f, e.From
		}
		return problem(ruleExprSyntax, "%s is not expected here", token), e.From
	case strings.HasPrefix(m, "invalid integer literal"):
		return problem(ruleExprSyntax, "the number is too large to stay exact; use text in quotes"), c.numberBefore(e.From)
	case strings.HasPrefix(m, "invalid char escape"):
		return problem(ruleExprSyntax, `\ starts no known escape here; \\ is one backslash`), e.From
	}
	return problem(ruleExprSyntax, "%s", plainReason(e.Message)), e.From
}

// openQuote gives the rune offset of the quote that is not closed.
func (c *exprCheck) openQuote() int {
	for i := 0; i < len(c.src); i++ {
		if !strings.ContainsRune("\"'`", rune(c.src[i])) {
			continue
		}
		end := quoteEnd(c.src[i:])
		if end < 0 {
			return len([]rune(c.src[:i]))
		}
		i += end
	}
	return 0
}

// numberBefore gives the rune offset of the number that ends before one; the parser has passed it when it complains.
func (c *exprCheck) numberBefore(offset int) int {
	runes := []rune(c.src)
	i := min(offset, len(runes))
	for i > 0 && !('0' <= runes[i-1] && runes[i-1] <= '9') {
		i--
	}
	for i > 0 && (runes[i-1] == '_' || '0' <= runes[i-1] && runes[i-1] <= '9') {
		i--
	}
	return i
}

func quoteWord(kind, word string) string {
	if kind == "String" {
		return "the text " + strconv.Quote(word)
	}
	return word
}

// check finds all that is wrong: the names and forms first, and where these are in order, the types.
func (c *exprCheck) check(want wantType) {
	tree, config, err := c.scope.parse(c.src)
	if err != nil {
		c.library(err, ruleExprSyntax)
		return
	}
	c.known = builtinTypes(c.scope.Outcomes)
	c.used = map[string]*exprType{}
	c.lets = map[string]bool{}
	ast.Walk(&tree.Node, letNames(c.lets))
	c.words = map[*ast.IdentifierNode]*exprType{}
	c.node(tree.Node, place{})
	if hasErrors(c.found) {
		return
	}
	if err := typeCheck(tree, config, c.used); err != nil {
		c.library(err, ruleExprType)
		return
	}
	c.result(tree.Node, want)
	c.gives = c.typeGiven(tree.Node)
}

// result checks the type of the whole.
func (c *exprCheck) result(n ast.Node, want wantType) {
	nature := n.Nature()
	if want == wantAny || nature.Type == nil && !nature.Nil || nature.Kind == reflect.Interface {
		return
	}
	got := "null"
	if !nature.Nil {
		got = typeWord(nature.Type.String())
	}
	switch {
	case want == wantBool && (nature.Nil || nature.Kind != reflect.Bool):
		c.add(0, problem(ruleExprType, "a condition must be true or false; this gives %s", got))
	case want == wantList && (nature.Nil || nature.Kind != reflect.Slice && nature.Kind != reflect.Array):
		c.add(0, problem(ruleExprType, "a list must stand here; this gives %s", got))
	}
}

type letNames map[string]bool

func (w letNames) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.VariableDeclaratorNode); ok {
		w[n.Name] = true
	}
}

// place is where in the tree a node stands.
type place struct {
	predicate bool      // inside the condition of filter, map and the like
	item      *exprType // there, the type of #
}

// node walks the tree.
func (c *exprCheck) node(n ast.Node, p place) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		c.name(n)
	case *ast.CallNode:
		c.call(n, p)
	case *ast.BuiltinNode:
		c.builtin(n, p)
	case *ast.MemberNode:
		if !c.needlessBase(n) {
			c.node(n.Node, p)
			c.member(n, p)
		}
	case *ast.BinaryNode:
		first, second := n.Left, n.Right
		if name, ok := first.(*ast.IdentifierNode); ok && compares(n.Operator) && !c.lookup(name.Value) {
			first, second = second, first
		}
		c.node(first, p)
		c.compared(n.Operator, second, c.typeOf(first, p))
		c.node(second, p)
		c.operator(n, p)
	case *ast.BytesNode:
		c.addAt(n, problem(ruleForbidden, "bytes are no value of a flow; write text in quotes, without b"))
	case *ast.SequenceNode:
		c.addAt(n, problem(ruleForbidden, "an expression gives one value; a semicolon only ends a let"))
	default:
		c.nodes(p, children(n)...)
	}
}

func (c *exprCheck) nodes(p place, list ...ast.Node) {
	for _, n := range list {
		c.node(n, p)
	}
}

// children gives the parts of the nodes that need no check of their own.
func children(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []ast.Node{n.Node}
	case *ast.ChainNode:
		return []ast.Node{n.Node}
	case *ast.PredicateNode:
		return []ast.Node{n.Node}
	case *ast.SliceNode:
		out := []ast.Node{n.Node}
		for _, part := range []ast.Node{n.From, n.To} {
			if part != nil {
				out = append(out, part)
			}
		}
		return out
	case *ast.VariableDeclaratorNode:
		return []ast.Node{n.Value, n.Expr}
	case *ast.ConditionalNode:
		return []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.ArrayNode:
		return n.Nodes
	case *ast.MapNode:
		return n.Pairs
	case *ast.PairNode:
		return []ast.Node{n.Key, n.Value}
	}
	return nil
}

// lookup finds a name, and remembers that it is used.
func (c *exprCheck) lookup(name string) bool {
	if _, ok := c.used[name]; ok || c.lets[name] {
		return true
	}
	if s, ok := c.scope.Vars[name]; ok {
		c.used[name] = typeOfSchema(s)
		return true
	}
	if t, ok := c.known[name]; ok && !(c.scope.ArgsOnly && (name == "last" || !c.scope.HasArgs)) {
		c.used[name] = t
		return true
	}
	switch {
	case name == "result" && c.scope.HasResult:
		c.used[name] = typeOfSchema(c.scope.Result)
	case name == "args" && c.scope.HasArgs:
		c.used[name] = typeOfSchema(c.scope.Args)
	default:
		return false
	}
	return true
}

func (c *exprCheck) name(n *ast.IdentifierNode) {
	name := n.Value
	switch {
	case name == "$env":
		c.addAt(n, problem(ruleForbidden, "$env does not exist here; name the variable itself"))
	case c.lookup(name):
		if c.scope.Secret[name] && c.scope.NoSecret != "" {
			c.addAt(n, problem(ruleSecretShown, "%s is secret, and %s", name, c.scope.NoSecret))
		}
	case c.scope.ArgsOnly && name != "env":
		c.addAt(n, c.argsOnly(name))
	case name == "visits" || name == "env":
		c.addAt(n, problem(ruleUnknownName, "%s is a function: %s(\"name\")", name, name))
	case name == "result":
		c.addAt(n, problem(ruleUnknownName, "result exists only in expect, which looks at what a tool gave"))
	case name == "args":
		c.addAt(n, problem(ruleUnknownName, "args exists only in the texts of a tool and in its approval.when"))
	default:
		f := problem(ruleUnknownName, "there is no input or variable %s", name)
		f.Got, f.Suggestion = name, c.nearName(name)
		if c.meantAsText(n, f.Suggestion) {
			f.Message += ", and text stands in quotes"
			f.Suggestion = strconv.Quote(name)
		}
		c.addAt(n, f)
	}
}

// argsOnly says that the text of a tool or a server names something that only flows and states know.
func (c *exprCheck) argsOnly(name string) Finding {
	if !c.scope.HasArgs {
		f := problem(ruleUnknownName, "the texts of a server see env(\"NAME\") only, not %s: one server serves many calls and runs", name)
		f.Got = name
		return f
	}
	f := problem(ruleUnknownName, "a tool's texts see its arguments and run only, not %s; make it a parameter and write args.NAME", name)
	if args := typeOfSchema(c.scope.Args); args != nil && args.fields[name] != nil {
		f = problem(ruleUnknownName, "arguments are named with args here, not %s", name)
		f.Suggestion = "args." + name
	}
	f.Got = name
	return f
}

func (c *exprCheck) nearName(name string) string {
	switch strings.ToLower(name) {
	case "null", "nil", "none", "undefined":
		return "null"
	case "true", "false":
		return strings.ToLower(name)
	}
	known := append(machine.SortedNames(c.scope.Vars), "last", "run")
	return spell.Nearest(name, known)
}

// call checks f(x) where f is none of the library's own functions.
func (c *exprCheck) call(n *ast.CallNode, p place) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		c.addAt(n, problem(ruleExprType, "values have no functions; write function(value), such as len(x)"))
		return
	}
	name := callee.Value
	switch reason, disabled := disabledFunctions[name]; {
	case name == "visits":
		c.visitsCall(n)
		return
	case name == "env":
		c.envCall(n)
		return
	case name == "last":
		c.addAt(n, problem(ruleUnknownName, "last is how the step before ended; the last item of a list is list[-1]"))
	case c.lookup(name):
		c.addAt(n, problem(ruleExprType, "%s is no function", name))
	case disabled:
		c.addAt(n, problem(ruleForbidden, "%s does not exist here: %s", name, reason))
	case ownFunctions[name] == nil:
		f := problem(ruleUnknownName, "there is no function %s", name)
		f.Got, f.Suggestion = name, spell.Nearest(name, functionNames())
		c.addAt(n, f)
	}
	c.nodes(p, n.Arguments...)
}

func (c *exprCheck) visitsCall(n *ast.CallNode) {
	state, ok := literalText(n.Arguments)
	switch {
	case c.scope.ArgsOnly:
		c.addAt(n, c.argsOnly("visits"))
	case !ok:
		c.addAt(n, problem(ruleExprType, `visits takes the name of one state in quotes, such as visits("details")`))
	case !slices.Contains(c.scope.States, state):
		f := problem(ruleUnknownState, "there is no state %s", state)
		f.Got, f.Suggestion = state, spell.Nearest(state, c.scope.States)
		c.addAt(n.Arguments[0], f)
	default:
		c.visits = append(c.visits, state)
	}
}

func (c *exprCheck) envCall(n *ast.CallNode) {
	name, ok := literalText(n.Arguments)
	if !ok {
		c.addAt(n, problem(ruleExprType, `env takes the name of one environment variable in quotes, such as env("SHOP_KEY")`))
		return
	}
	if c.scope.Env == nil {
		c.addAt(n, problem(ruleEnvPlace, "env(\"NAME\") is allowed only in headers, and in env of a command or a server"))
		return
	}
	c.scope.Env(name)
}

// literalText gives the only argument when it is text in quotes.
func literalText(arguments []ast.Node) (string, bool) {
	if len(arguments) != 1 {
		return "", false
	}
	text, ok := arguments[0].(*ast.StringNode)
	if !ok {
		return "", false
	}
	return text.Value, true
}

// builtin checks a call of one of the library's functions.
func (c *exprCheck) builtin(n *ast.BuiltinNode, p place) {
	if len(n.Arguments) == 0 || !predicateFunctions[n.Name] {
		c.nodes(p, n.Arguments...)
		return
	}
	c.node(n.Arguments[0], p)
	inside := place{predicate: true}
	if list := c.typeOf(n.Arguments[0], p); list != nil && list.kind == "array" {
		inside.item = list.items
	}
	for _, argument := range n.Arguments[1:] {
		condition, ok := argument.(*ast.PredicateNode)
		switch {
		case !ok:
			c.node(argument, p)
		case p.predicate:
			c.addAt(n, problem(ruleForbidden, "%s stands inside the condition of another such function; let a tool do this", n.Name))
		default:
			c.node(condition.Node, inside)
		}
	}
}

// member checks x.name and x["name"].
func (c *exprCheck) member(n *ast.MemberNode, p place) {
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		c.node(n.Property, p)
		return
	}
	base := c.typeOf(n.Node, p)
	if base == nil {
		return
	}
	if base.kind != "object" && base.kind != "" {
		c.addAt(n.Property, problem(ruleExprType, "%s is %s and has no property %s", n.Node, kindWord(base.kind), name.Value))
		return
	}
	if _, has := base.field(name.Value); !has {
		known := machine.SortedNames(base.fields)
		f := problem(ruleUnknownName, "%s has no property %s; it has %s", n.Node, name.Value, or(strings.Join(known, ", "), "none"))
		f.Got, f.Suggestion = name.Value, spell.Nearest(name.Value, known)
		c.addAt(n.Property, f)
	}
}

// kindWord names a JSON type in a person's words.
func kindWord(kind string) string {
	switch kind {
	case "array":
		return "a list"
	case "integer", "object":
		return "an " + kind
	}
	return "a " + kind
}

// typeOf gives what is known of the type of a node: names and the way into them.
func (c *exprCheck) typeOf(n ast.Node, p place) *exprType {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if c.lets[n.Value] {
			return nil
		}
		return c.used[n.Value]
	case *ast.PointerNode:
		if n.Name == "" {
			return p.item
		}
	case *ast.ChainNode:
		return c.typeOf(n.Node, p)
	case *ast.MemberNode:
		base := c.typeOf(n.Node, p)
		if name, ok := n.Property.(*ast.StringNode); ok {
			t, _ := base.field(name.Value)
			return t
		}
		if base != nil && base.kind == "array" {
			return base.items
		}
	case *ast.BuiltinNode: // what keeps the items of a list
		switch n.Name {
		case "filter", "sortBy":
			return c.typeOf(n.Arguments[0], p)
		}
	}
	return nil
}

// operator checks what stands between two operands.
func (c *exprCheck) operator(n *ast.BinaryNode, p place) {
	if reason, ok := forbiddenOperators[n.Operator]; ok {
		c.addAt(n, problem(ruleForbidden, "%s does not exist here: %s", n.Operator, reason))
		return
	}
	switch n.Operator {
	case "<", ">", "<=", ">=", "+", "-", "*":
		for _, side := range []ast.Node{n.Left, n.Right} {
			if _, null := side.(*ast.NilNode); null {
				c.addAt(side, problem(ruleExprType, "null is no operand of %s; whether a value is there is asked by == null or != null", n.Operator))
			}
		}
	case "==", "!=":
		c.word(n.Left, n.Right, p)
		c.word(n.Right, n.Left, p)
	case "in":
		if list, ok := n.Right.(*ast.ArrayNode); ok {
			for _, item := range list.Nodes {
				c.word(n.Left, item, p)
			}
			return
		}
		if list := c.typeOf(n.Right, p); list != nil && list.kind == "array" {
			c.wordOf(list.items, "an item of "+n.Right.String(), n.Left)
		}
	}
}

// word checks a literal against the values that what it is compared with can have.
func (c *exprCheck) word(subject, literal ast.Node, p place) {
	c.wordOf(c.typeOf(subject, p), subject.String(), literal)
}

func (c *exprCheck) wordOf(t *exprType, subject string, literal ast.Node) {
	v, ok := literalValue(literal)
	if ok && t == errorKindType {
		c.errorKind(subject, v, literal)
	}
	if !ok || t == nil || t.enum == nil {
		return
	}
	if kind := machine.KindOf(v); kind != t.kind && !(kind == "integer" && t.kind == "number") {
		return // a literal of another type is for the check of types
	}
	words := make([]string, 0, len(t.enum))
	for _, known := range t.enum {
		if machine.EqualValues(known, v) {
			return
		}
		if word := machine.FormatValue(known); word != "" {
			words = append(words, word)
		}
	}
	f := problem(ruleEnumWord, "%s is never %s; it is one of %s", subject, literal, strings.Join(words, ", "))
	f.Got = machine.FormatValue(v)
	if near := spell.Nearest(f.Got, words); near != "" {
		f.Suggestion = near
	}
	c.addAt(literal, f)
}

func literalValue(n ast.Node) (machine.Value, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return int64(n.Value), true
	case *ast.BoolNode:
		return n.Value, true
	}
	return nil, false
}

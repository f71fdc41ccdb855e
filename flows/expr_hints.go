package flows

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// foreignWords are words and signs of other languages, and what they are called here.
var foreignWords = map[string]string{
	"&": "and", "|": "or", "is": "==", "eq": "==", "equals": "==", "ne": "!=", "neq": "!=", "and": "and", "or": "or", "not": "not",
	"gt": ">", "lt": "<", "gte": ">=", "ge": ">=", "lte": "<=", "le": "<=",
}

// comparison gives what the = at an offset was meant for: =>, =< or == alone.
func (c *exprCheck) comparison(offset int) string {
	switch rest := string([]rune(c.src)[offset:]); {
	case strings.HasPrefix(rest, "=>"):
		return ">="
	case strings.HasPrefix(rest, "=<"):
		return "<="
	}
	return "=="
}

// oddSign says what is wrong about a sign that the language does not know.
func (c *exprCheck) oddSign(offset int) Finding {
	runes := []rune(c.src)
	f := problem(ruleExprSyntax, "this sign has no meaning in an expression")
	if offset >= len(runes) {
		return f
	}
	switch r := runes[offset]; {
	case strings.ContainsRune("“”„‘’", r):
		f.Message = "curly quotes are no quotes in an expression; write straight ones"
	case r >= '！' && r <= '～': // the full-width forms of ASCII
		f.Message, f.Suggestion = "this is the full-width form of a sign", string(r-'！'+'!')
	case oddSpace(r) != "":
		f.Message = oddSpace(r) + " stands here; write a plain space"
	}
	return f
}

func compares(operator string) bool { return operator == "==" || operator == "!=" }

// compared remembers the words that are compared with something, so that one without quotes can be told from a misspelt
// variable.
func (c *exprCheck) compared(operator string, n ast.Node, with *exprType) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if compares(operator) {
			c.words[n] = with
		}
	case *ast.ArrayNode:
		for _, item := range n.Nodes {
			if name, ok := item.(*ast.IdentifierNode); ok && operator == "in" {
				c.words[name] = with
			}
		}
	}
}

// meantAsText says whether an unknown name is rather a text without its quotes: it is compared with text, and either it is
// one of the words that this can be, or there is no variable near it.
func (c *exprCheck) meantAsText(n *ast.IdentifierNode, near string) bool {
	t := c.words[n]
	if t == nil || t.kind != "string" {
		return false
	}
	return near == "" && t.enum == nil || slices.ContainsFunc(t.enum, func(v machine.Value) bool { return v == n.Value })
}

// needlessBase reports vars.color and the like, where color itself is a name.
func (c *exprCheck) needlessBase(n *ast.MemberNode) bool {
	base, ok := n.Node.(*ast.IdentifierNode)
	name, named := n.Property.(*ast.StringNode)
	if !ok || !named || base.Value == "$env" || c.lookup(base.Value) {
		return false
	}
	if _, known := c.scope.Vars[name.Value]; !known {
		return false
	}
	f := problem(ruleUnknownName, "there is no input or variable %s; inputs and variables are named as they are", base.Value)
	f.Got, f.Suggestion = base.Value+"."+name.Value, name.Value
	c.addAt(n.Node, f)
	return true
}

// errorKindType is the type of last.error.kind. It is open, since handlers and tools in Go name kinds of their own.
var errorKindType = &exprType{kind: "string"}

// ErrorKind is a kind of failure, as expressions see it in last.error.kind.
type ErrorKind struct {
	Name string
	Doc  string // one line
}

// ErrorKinds gives the kinds that flowctl itself knows, in the order of the reference. Limits of the run are not among them:
// they stop it.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{
		{"refused", "a tool was not allowed to do this, or would not"},
		{"failed", "a tool or a handler failed"},
		{"unavailable", "a tool or an endpoint is out of order"},
		{"unknown", "nobody knows whether a write happened"},
		{"invalid", "a value does not fit"},
		{"cut", "an answer of a model ended too early"},
		{"blocked", "the provider of a model refused"},
		{"turns", "the state's turns are used up"},
		{"expect", "a result is not as expect wants it"},
		{"none_found", "nothing fits: no row, no intent, no step"},
		{"several", "more than one thing fits"},
		{"denied", "a human did not approve a call"},
		{"expired", "nobody answered in time"},
		{"outage", "what a state cannot do without is out of order"},
		{"no_key", "a model's key is missing"},
		{"timeout", "the state's time, or that of a tool, is used up"},
		{"visits", "the state was entered too often"},
	}
}

// errorKind warns of a comparison with what looks like a misspelt kind.
func (c *exprCheck) errorKind(subject string, v machine.Value, literal ast.Node) {
	word, _ := v.(string)
	var known []string
	for _, k := range ErrorKinds() {
		if k.Name == word {
			return
		}
		known = append(known, k.Name)
	}
	if near := spell.Nearest(word, known); near != "" {
		f := advice(ruleUnknownKind, "%s is never %s, unless a handler or tool of your own says so", subject, literal)
		f.Got, f.Suggestion = word, near
		c.addAt(literal, f)
	}
}

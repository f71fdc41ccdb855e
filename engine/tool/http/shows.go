package http

import (
	"regexp"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// advice says where a value goes that must not be seen.
const advice = ", which servers and proxies write down; send it in headers or json"

// Shows says where an argument of the tool would be seen by others than the server, and what to do instead; "" where it
// would not.
func (c *Config) Shows(arg string) string {
	if c.URL != nil && mayRead(c.URL, arg) {
		return "in its url" + advice
	}
	for _, item := range c.Query {
		if mayRead(item.Value, arg) {
			return "in the query of its url" + advice
		}
	}
	return ""
}

// argument finds the places of an expression that read arguments. Where args is followed by a fixed name, that is in one of
// the groups.
var argument = regexp.MustCompile(`\bargs\b(?:\s*\??\.\s*([A-Za-z_][A-Za-z0-9_]*)|\s*(?:\?\.)?\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\])?`)

// mayRead says whether a tree reads an argument, or may: which one args[args.which] is cannot be known before a call.
func mayRead(t machine.Tree, arg string) bool {
	var expressions []string
	switch t := t.(type) {
	case machine.Template:
		for _, part := range t.Parts() {
			if part.Expr != nil {
				expressions = append(expressions, part.Expr.Source())
			}
		}
	case interface{ Expressions() []string }:
		expressions = t.Expressions()
	default:
		return true
	}
	return slices.ContainsFunc(argument.FindAllStringSubmatch(strings.Join(expressions, "\n"), -1), func(found []string) bool {
		name := found[1] + found[2] + found[3]
		return name == "" || name == arg
	})
}

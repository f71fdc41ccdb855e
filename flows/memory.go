package flows

import (
	"fmt"
	"strings"
	"unicode"

	"flowctl/flows/machine"
)

// memory compiles the namespace of the long-term memory. It comes before the tools, whose kinds may need to know whether
// there is a memory.
func (c *compiler) memory() {
	decl := c.file.Memory
	if decl == nil {
		return
	}
	c.resolve(c.scope, func(p pending) bool { return below(p.at.Path, "memory") })
	if c.m.Memory = decl.Namespace; c.m.Memory == nil {
		c.m.Memory = unread{} // it is missing: said already. What needs a memory shall not be called wrong too
	}
	if fixed, ok := textConst(c.m.Memory); ok && strings.TrimSpace(fixed) == "" {
		c.add(c.under("memory.namespace"), problem(ruleNoValue,
			"the namespace is empty; name whose memory it is, such as shop, or customer/{{ customer }}"))
	}
}

// defaultTop is how many hits of a search are shown where the flow does not say.
const defaultTop = 5

func memoryView(decl *memoryViewDecl) *machine.MemoryView {
	if decl == nil {
		return nil
	}
	return &machine.MemoryView{Keys: decl.Keys, Search: decl.Search, Top: or(decl.Top, defaultTop)}
}

// checkMemory: no-memory, missing-key and no-value. A state that is shown the memory says what of it, and the flow has one.
func checkMemory(c *compiler) {
	for i := range c.file.States {
		path := join(join("states", c.file.States[i].Name), "view")
		decl := c.file.States[i].Value.View.Memory
		if decl == nil {
			continue
		}
		at, broken := c.keyOf(path, "memory"), c.broken(decl.At.Path)
		if c.file.Memory == nil && !c.meant(c.root, "memory") && !c.broken("memory") {
			c.add(at, problem(ruleNoMemory,
				"the flow has no memory to be shown here; add memory: {namespace: …} at the top, or remove this key"))
		}
		for k, pattern := range decl.Keys {
			if strings.TrimSpace(pattern) == "" && !broken {
				c.add(c.under(fmt.Sprintf("%s.keys[%d]", decl.At.Path, k)), problem(ruleNoValue, "an empty pattern fits no key; * stands for any text"))
			}
		}
		if fixed, ok := textConst(decl.Search); ok && strings.TrimSpace(fixed) == "" {
			c.add(c.under(join(decl.At.Path, "search")), problem(ruleNoValue, "an empty search finds nothing; write what to look for, or remove it"))
		}
		switch {
		case broken:
		case len(decl.Keys) == 0 && decl.Search == nil:
			c.add(at, problem(ruleMissingKey, "view.memory needs keys (patterns of keys) or search (text to look for)"))
		case decl.Search == nil && decl.Top > 0:
			c.add(c.keyOf(decl.At.Path, "top"), problem(ruleMissingKey, "top counts the hits of search, and there is none; add search, or remove top"))
		}
	}
}

// bytesPerToken is more than any encoding makes of a token on average, so that what is said to be too long surely is.
const bytesPerToken = 8

// checkBudgets: small-budget. The fixed part of the system text must have room in its budget, since it is never cut.
func checkBudgets(c *compiler) {
	for _, item := range c.m.States {
		s := item.Value
		budget := s.View.Budget.System
		if budget == 0 || s.Model == machine.ModelNone || s.End() && c.asked(s.Name) {
			continue
		}
		least := int64(wordBytes(c.file.Instructions)+wordBytes(s.Instructions)) / bytesPerToken
		if least > budget {
			c.add(c.under("states."+s.Name+".view.budget.system"), problem(ruleSmallBudget,
				"the instructions for %s are at least %d tokens long, and the budget of the system text is %d; shorten them or raise the budget",
				s.Name, least, budget))
		}
	}
}

// wordBytes counts the bytes of a text's letters and digits outside of expressions. The rest does not count: one token may
// hold a long run of spaces or dashes.
func wordBytes(t machine.Text) int {
	own, ok := t.(*text)
	if !ok {
		return 0
	}
	n := 0
	for _, part := range own.parts {
		for _, r := range part.fixed {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				n += len(string(r))
			}
		}
	}
	return n
}

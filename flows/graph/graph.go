package graph

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// chart is a flow as boxes and arrows; both formats are written from it.
type chart struct {
	title  string
	start  string
	boxes  []box
	arrows []arrow
	// interrupts lead from one box that stands for any question.
	interrupts []arrow
}

type box struct {
	id, name, handler string
	end               bool
}

type arrow struct {
	from, to, label string
}

// chartOf reads a machine. Outcomes that lead along the same branch of the same state share an arrow.
func chartOf(m *machine.Machine) chart {
	c := chart{title: m.Name}
	ids := map[string]string{}
	for i, s := range m.States {
		ids[s.Name] = fmt.Sprintf("s%d", i+1)
		c.boxes = append(c.boxes, box{id: ids[s.Name], name: s.Name, handler: s.Value.Handler, end: s.Value.End()})
	}
	c.start = ids[m.Start]
	for _, s := range m.States {
		c.arrows = append(c.arrows, arrowsOf(s.Value, ids)...)
	}
	for _, in := range m.Interrupts {
		c.interrupts = append(c.interrupts, arrow{from: "any", to: ids[in.Value.Branch.To], label: in.Name})
	}
	return c
}

func arrowsOf(s *machine.State, ids map[string]string) []arrow {
	var out []arrow
	for _, o := range inOrder(s) {
		for i, b := range s.Transitions[o] {
			label := string(o)
			switch {
			case b.When != nil:
				label += " [" + oneLine(b.When.Source()) + "]"
			case i > 0:
				label += " [else]"
			}
			out = join(out, arrow{from: ids[s.Name], to: ids[b.To], label: label})
		}
	}
	return out
}

// join adds an arrow; to one between the same boxes it only adds the label.
func join(arrows []arrow, a arrow) []arrow {
	for i, other := range arrows {
		if other.from == a.from && other.to == a.to {
			arrows[i].label += "\n" + a.label
			return arrows
		}
	}
	return append(arrows, a)
}

// inOrder gives a state's outcomes in the order of their lines in the file; those that `else` and defaults cover come
// where that line stands, in alphabetical order.
func inOrder(s *machine.State) []machine.Outcome {
	var out []machine.Outcome
	for o := range s.Transitions {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b machine.Outcome) int {
		pa, pb := s.Transitions[a][0].Pos, s.Transitions[b][0].Pos
		if pa.Line != pb.Line {
			return pa.Line - pb.Line
		}
		if pa.Col != pb.Col {
			return pa.Col - pb.Col
		}
		return strings.Compare(string(a), string(b))
	})
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Mermaid draws the flow as a Mermaid flowchart.
func Mermaid(m *machine.Machine) string {
	c := chartOf(m)
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	fmt.Fprintf(&b, "  start((\"start\")) --> %s\n", c.start)
	for _, x := range c.boxes {
		open, shut := "[", "]"
		if x.end {
			open, shut = "([", "])"
		}
		fmt.Fprintf(&b, "  %s%s\"%s<br/><i>%s</i>\"%s\n", x.id, open, mermaidText(x.name), mermaidText(x.handler), shut)
	}
	for _, a := range c.arrows {
		fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", a.from, mermaidText(a.label), a.to)
	}
	if len(c.interrupts) > 0 {
		b.WriteString("  any{{\"any question\"}}\n")
	}
	for _, a := range c.interrupts {
		fmt.Fprintf(&b, "  %s -.->|\"%s\"| %s\n", a.from, mermaidText(a.label), a.to)
	}
	return b.String()
}

// mermaidText escapes a text for a quoted label. Mermaid reads #code; in it, HTML tags, and a backtick as Markdown.
func mermaidText(s string) string {
	return strings.NewReplacer("&", "#amp;", "#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;",
		"\\", "#92;", "\r", "", "\n", "<br/>").Replace(s)
}

// DOT draws the flow for Graphviz.
func DOT(m *machine.Machine) string {
	c := chartOf(m)
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(c.title))
	b.WriteString("  rankdir=TB;\n  node [shape=box, style=rounded];\n")
	b.WriteString("  start [shape=circle, label=\"start\"];\n")
	for _, x := range c.boxes {
		shape := ""
		if x.end {
			shape = ", peripheries=2"
		}
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", x.id, dotText(x.name+"\n"+x.handler), shape)
	}
	fmt.Fprintf(&b, "  start -> %s;\n", c.start)
	for _, a := range c.arrows {
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", a.from, a.to, dotText(a.label))
	}
	if len(c.interrupts) > 0 {
		b.WriteString("  any [shape=hexagon, style=solid, label=\"any question\"];\n")
	}
	for _, a := range c.interrupts {
		fmt.Fprintf(&b, "  %s -> %s [style=dashed, label=%s];\n", a.from, a.to, dotText(a.label))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText writes a DOT string. A backslash starts an escape there; \n breaks the line.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", `\n`).Replace(s) + `"`
}

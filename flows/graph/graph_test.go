package graph

import (
	"flag"
	"os"
	"strings"
	"testing"

	"flowctl/flows/machine"
)

var update = flag.Bool("update", false, "write the golden files anew")

// guard is an expression that only has a source.
type guard string

func (g guard) Source() string                            { return string(g) }
func (g guard) Eval(machine.Facts) (machine.Value, error) { return true, nil }
func (g guard) Reads() []string                           { return nil }

func line(at int, to string, when string) machine.Branch {
	b := machine.Branch{To: to, Pos: machine.Pos{Line: at, Col: 1}}
	if when != "" {
		b.When = guard(when)
	}
	return b
}

func add(m *machine.Machine, name, handler string, transitions map[machine.Outcome][]machine.Branch) {
	s := &machine.State{Name: name, Handler: handler, Transitions: transitions}
	for o := range transitions {
		s.Outcomes = append(s.Outcomes, o)
	}
	m.States = append(m.States, machine.Item[*machine.State]{Name: name, Value: s})
}

// shop has all that a graph can show: guards, a shared arrow, a self loop, else lines, interrupts, two ends.
func shop() *machine.Machine {
	m := &machine.Machine{Name: "shop", Start: "ask"}
	add(m, "ask", "collect", map[machine.Outcome][]machine.Branch{
		"complete":   {line(3, "pay", "")},
		"incomplete": {line(4, "ask", `visits("ask") < 3 and city in ["北京", "a|b"]`), line(5, "lost", "")},
		"expired":    {line(6, "lost", "")},
	})
	add(m, "pay", "call", map[machine.Outcome][]machine.Branch{
		"success": {line(9, "done", "")},
		"fail":    {line(10, "lost", "")},
		"error":   {line(10, "lost", "")},
	})
	add(m, "lost", "end", nil)
	add(m, "done", "end", nil)
	m.Interrupts = machine.Ordered[machine.Interrupt]{
		{Name: "human", Value: machine.Interrupt{Branch: line(14, "lost", "")}},
		{Name: "stop", Value: machine.Interrupt{Branch: line(15, "done", "")}},
	}
	m.Seal()
	return m
}

// nasty has names and guards that would break either format if they were not escaped.
func nasty() *machine.Machine {
	m := &machine.Machine{Name: `a"b\c`, Start: "end"}
	add(m, "end", "route", map[machine.Outcome][]machine.Branch{"next": {
		line(1, "退款", "wish == \"x\" && a\\b < 3 or note contains `#1; <b>`\n  and x"), line(2, "subgraph", ""),
	}})
	add(m, "退款", "end", nil)
	add(m, "subgraph", `we"ird[]{}|()`, nil)
	m.Seal()
	return m
}

func TestGolden(t *testing.T) {
	for name, m := range map[string]*machine.Machine{"shop": shop(), "nasty": nasty()} {
		for ext, draw := range map[string]func(*machine.Machine) string{"mmd": Mermaid, "dot": DOT} {
			file := "testdata/" + name + "." + ext
			got := draw(m)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (-update writes it anew)\ngot:\n%s\nwant:\n%s", file, got, want)
			}
		}
	}
}

// TestDeterministic draws machines that were built anew, so that the order of their maps differs.
func TestDeterministic(t *testing.T) {
	mermaid, dot := Mermaid(shop()), DOT(shop())
	for range 50 {
		if Mermaid(shop()) != mermaid || DOT(shop()) != dot {
			t.Fatal("equal machines give different graphs")
		}
	}
}

// TestQuotes: every label is one quoted string on one line, whatever it holds.
func TestQuotes(t *testing.T) {
	for _, text := range strings.Split(Mermaid(nasty()), "\n") {
		if strings.Count(text, `"`)%2 != 0 || strings.Count(text, `"`) > 2 {
			t.Errorf("a label of Mermaid is not one quoted string: %s", text)
		}
	}
	for _, text := range strings.Split(DOT(nasty()), "\n") {
		plain := strings.NewReplacer(`\\`, "", `\"`, "").Replace(text)
		if strings.Count(plain, `"`)%2 != 0 {
			t.Errorf("a label of DOT is not one quoted string: %s", text)
		}
	}
}

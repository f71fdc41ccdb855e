package view

import (
	"slices"
	"sort"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
)

// Headings are the words that stand above the parts of a task, in the flow's language.
type Headings struct {
	Values   string // above the variables
	Memory   string // above what is remembered
	Attempts string // above what was tried before
	Summary  string // above a summary
	GoOn     string // what the user says where nobody else said something last
}

// Task is the task layer of a request: what is to be done, and what is known.
type Task struct {
	Text     string
	Data     []Var // what the text is about, such as what a human wrote; below it
	Vars     []Var
	Memory   []Var // the best first
	Attempts []history.Attempt
}

// Render gives the text of the layer. What never changes stands first, for the sake of endpoints that keep the beginning of
// a request in a cache. Values are JSON, so that none can be taken for something else.
func (t Task) Render(h Headings) string {
	return t.render(h, valueTexts(t.Data), valueTexts(t.Vars), valueTexts(t.Memory))
}

func (t Task) render(h Headings, data, vars, memory []string) string {
	parts := []string{strings.TrimSpace(t.Text)}
	section := func(heading string, lines []string) {
		if len(lines) > 0 {
			parts = append(parts, heading+"\n"+strings.Join(lines, "\n"))
		}
	}
	if len(data) > 0 {
		parts = append(parts, strings.Join(named("", t.Data, data), "\n"))
	}
	section(h.Values, named("- ", t.Vars, vars))
	section(h.Memory, named("- ", t.Memory, memory))
	var attempts []string
	for _, a := range t.Attempts {
		attempts = append(attempts, attemptLines(a)...)
	}
	section(h.Attempts, attempts)
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

func named(mark string, vars []Var, texts []string) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = mark + vars[i].Name + ": " + text
	}
	return lines
}

func valueTexts(vars []Var) []string {
	texts := make([]string, len(vars))
	for i, v := range vars {
		texts[i] = jsonText(v.Value)
	}
	return texts
}

func attemptLines(a history.Attempt) []string {
	line := "- " + string(a.Outcome)
	if !a.Problem.None() {
		line += " (" + a.Problem.Kind + ")"
		if a.Problem.Message != "" {
			line += ": " + jsonText(a.Problem.Message)
		}
	}
	lines := []string{line}
	for _, note := range a.Notes {
		lines = append(lines, "  - "+jsonText(note))
	}
	return lines
}

func jsonText(v machine.Value) string {
	data, err := machine.EncodeValue(v)
	if err != nil {
		return machine.FormatValue(v)
	}
	return string(data)
}

// Fit gives the text of the layer within a limit of tokens. What goes first is what was remembered, the worst hit first, and
// the oldest attempts; then the longest values are cut inside. What is to be done, and the names of what is known, stay: a
// *BudgetError says that there is no room for them.
func (t Task) Fit(h Headings, c tokens.Counter, limit int64) (string, error) {
	if text := t.Render(h); c.Count(text) <= limit {
		return text, nil
	}
	all := t
	fits := func() bool { return c.Count(t.Render(h)) <= limit }
	// What is left of a list is found by halving: with every further item it takes more.
	kept := sort.Search(len(all.Memory), func(n int) bool {
		t.Memory = all.Memory[:n+1]
		return !fits()
	})
	t.Memory = all.Memory[:kept]
	if kept > 0 || fits() {
		return t.Render(h), nil
	}
	kept = sort.Search(len(all.Attempts), func(n int) bool {
		t.Attempts = all.Attempts[len(all.Attempts)-n-1:]
		return !fits()
	})
	t.Attempts = all.Attempts[len(all.Attempts)-kept:]
	if kept > 0 || fits() {
		return t.Render(h), nil
	}
	return t.cut(h, c, limit)
}

// cut cuts the values to the largest share that all of them can have.
func (t Task) cut(h Headings, c tokens.Counter, limit int64) (string, error) {
	data, vars := valueTexts(t.Data), valueTexts(t.Vars)
	with := func(share int64) string {
		return t.render(h, shortTexts(data, c, share), shortTexts(vars, c, share), nil)
	}
	frame := with(0)
	need := c.Count(frame)
	if need > limit {
		return "", &BudgetError{Layer: "task", Need: need, Limit: limit}
	}
	var sizes []int64
	mark, marks := c.Count(cutMark), int64(0)
	for _, text := range slices.Concat(data, vars) {
		size := c.Count(text)
		sizes, marks = append(sizes, size), marks+min(size, mark)
	}
	for share := fairShare(sizes, limit-need+marks); share > 0; share -= share/8 + 1 {
		if text := with(share); c.Count(text) <= limit {
			return text, nil
		}
	}
	return frame, nil
}

func shortTexts(texts []string, c tokens.Counter, share int64) []string {
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = shortText(text, c, share)
	}
	return short
}

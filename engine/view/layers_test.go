package view_test

import (
	"fmt"
	"strings"
	"testing"

	"flowctl/engine/history"
	"flowctl/engine/model/tokens"
	"flowctl/engine/view"
	"flowctl/flows/machine"
)

// measured is a counter that counts how often it is asked for a text of some length.
type measured struct {
	tokens.Counter
	from  int // bytes
	asked int
}

func (m *measured) Count(text string) int64 {
	if len(text) >= m.from {
		m.asked++
	}
	return m.Counter.Count(text)
}

var headings = view.Headings{Values: "Known:", Memory: "Remembered:", Attempts: "Tried:"}

// wantFit wants a task to fit into a limit with some looks at it as a whole.
func wantFit(t *testing.T, task view.Task, limit int64, looks int) string {
	t.Helper()
	c := &measured{Counter: tokens.For("test"), from: len(task.Text)}
	text, err := task.Fit(headings, c, limit)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Counter.Count(text); n > limit {
		t.Errorf("%d tokens for a limit of %d", n, limit)
	}
	if c.asked > looks {
		t.Errorf("it was looked at %d times, at most %d are needed", c.asked, looks)
	}
	if !strings.HasPrefix(text, task.Text) {
		t.Errorf("what is to be done is cut: %.80s", text)
	}
	return text
}

// Of very many entries of memory the best ones stay, as many as there is room for, and they are found by few looks.
func TestFitWithVeryManyEntries(t *testing.T) {
	const entries, looks = 2000, 16 // the logarithm of 2,000 is 11
	task := view.Task{Text: "Do it."}
	for i := range entries {
		task.Memory = append(task.Memory, view.Var{Name: fmt.Sprintf("entry.%04d", i), Value: strings.Repeat("so it was ", i%7)})
	}
	c := tokens.For("test")
	full := c.Count(task.Render(headings))
	for _, limit := range []int64{full, full - 1, full / 2, full / 50, 60} {
		text := wantFit(t, task, limit, looks)
		kept := strings.Count(text, "entry.")
		best := task
		best.Memory = task.Memory[:kept]
		if text != best.Render(headings) {
			t.Errorf("limit %d: what stays are not the %d best entries", limit, kept)
		}
		if kept == entries {
			continue
		}
		best.Memory = task.Memory[:kept+1]
		if c.Count(best.Render(headings)) <= limit {
			t.Errorf("limit %d: there is room for more than %d entries", limit, kept)
		}
	}
}

// Memory goes before attempts, of which the newest stay.
func TestFitWithVeryManyAttempts(t *testing.T) {
	const attempts, looks = 2000, 2 * 16
	task := view.Task{Text: "Do it.", Vars: []view.Var{{Name: "order", Value: "A1001"}}, Memory: []view.Var{{Name: "likes", Value: "tea"}}}
	for i := range attempts {
		task.Attempts = append(task.Attempts, history.Attempt{Outcome: "fail", Problem: machine.Problem{Kind: "failed", Message: fmt.Sprintf("try %04d", i)},
			Notes: []string{"noted"}})
	}
	c := tokens.For("test")
	for _, limit := range []int64{c.Count(task.Render(headings)) / 3, 80} {
		text := wantFit(t, task, limit, looks)
		kept := strings.Count(text, "try ")
		newest := task
		newest.Memory, newest.Attempts = nil, task.Attempts[attempts-kept:]
		if kept == 0 || text != newest.Render(headings) {
			t.Errorf("limit %d: what stays is not the %d newest attempts:\n%.300s", limit, kept, text)
		}
		newest.Attempts = task.Attempts[attempts-kept-1:]
		if c.Count(newest.Render(headings)) <= limit {
			t.Errorf("limit %d: there is room for more than %d attempts", limit, kept)
		}
	}
}

// Data is cut in its middle, the text above it never; the names of what is known stay.
func TestFitCutsData(t *testing.T) {
	task := view.Task{Text: "Find out what is wanted. " + strings.Repeat("Be exact. ", 20),
		Data: []view.Var{{Name: "The text", Value: "FIRST " + strings.Repeat("word ", 50_000) + "LAST"}, {Name: "A note", Value: "short"}},
		Vars: []view.Var{{Name: "order", Value: "A1001"}}, Memory: []view.Var{{Name: "likes", Value: "tea"}}}
	task.Text = strings.TrimSpace(task.Text)
	text := wantFit(t, task, 1000, 20)
	for _, want := range []string{"\n\nThe text: \"FIRST word", "tokens left out", "word LAST\"\nA note: \"short\"\n\nKnown:\n- order: \"A1001\""} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if n := tokens.For("test").Count(text); n < 900 {
		t.Errorf("%d of 1,000 tokens are used", n)
	}
	if strings.Contains(text, "likes") {
		t.Error("the memory stays where values are cut")
	}
}

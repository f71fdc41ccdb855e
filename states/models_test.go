package states

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"flowctl/engine/model"
	"flowctl/engine/model/script"
	"flowctl/flows/machine"
)

// fakeModels gives every declared model one that answers from a script.
type fakeModels struct {
	ready  func() machine.ModelCase
	answer *script.Script // nil: nothing is answered
	model  model.Model    // answers instead, if it is there

	mu   sync.Mutex
	sent []model.Request // in order
}

func (m *fakeModels) Case(*machine.Machine, string) (machine.ModelCase, string) {
	return m.ready(), "fake-1"
}

func (m *fakeModels) KeyNames(*machine.Machine, string) []string { return []string{"LLM_API_KEY"} }

func (m *fakeModels) Open(*machine.Machine, model.Use) (model.Opened, error) {
	out := model.Opened{Model: m}
	if m.answer != nil {
		out.Leftovers = m.answer.Leftovers
	}
	return out, nil
}

// Generate implements model.Model. An answer that is cut or blocked is written in the script as such a text.
func (m *fakeModels) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	m.mu.Lock()
	m.sent = append(m.sent, req)
	m.mu.Unlock()
	if m.model != nil {
		return m.model.Generate(ctx, req)
	}
	if m.answer == nil {
		return model.Response{}, &model.Error{Class: model.Script, Err: errors.New("the test expects no question to a model")}
	}
	resp, err := m.answer.Generate(ctx, req)
	if resp.Message.Text == "(cut)" {
		resp.Finish = model.Length
	}
	return resp, err
}

// scripted makes a world's models ready. The answers are items of a script, such as `{state: understand, text: hi}`.
func (w *world) scripted(answers ...string) *world {
	w.t.Helper()
	w.model = machine.ModelReady
	w.models.answer = parseScript(w.t, answers...)
	return w
}

func parseScript(t testing.TB, answers ...string) *script.Script {
	t.Helper()
	s, err := script.Parse("test.yaml", []byte("answers:\n  - "+strings.Join(answers, "\n  - ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asked checks how many requests the model got.
func (w *world) asked(n int) *world {
	w.t.Helper()
	if got := len(w.models.sent); got != n {
		w.t.Errorf("the model was asked %d times, want %d", got, n)
	}
	return w
}

// task gives the task text of request n, counted from 0: the part that the handler wrote.
func (w *world) task(n int) string {
	w.t.Helper()
	if n >= len(w.models.sent) {
		w.t.Fatalf("the model got %d requests, and number %d is looked at", len(w.models.sent), n)
	}
	for _, msg := range w.models.sent[n].Messages {
		if msg.Role == model.User {
			text, _, _ := strings.Cut(msg.Text, "\n\nWhat is known:")
			return text
		}
	}
	return ""
}

// newest gives the newest message of request n.
func (w *world) newest(n int) string {
	w.t.Helper()
	messages := w.models.sent[n].Messages
	return messages[len(messages)-1].Text
}

// offered checks which tools request n offers.
func (w *world) offered(n int, names string) *world {
	w.t.Helper()
	var got []string
	for _, tool := range w.models.sent[n].Tools {
		got = append(got, tool.Name)
	}
	if strings.Join(got, " ") != names {
		w.t.Errorf("request %d offers the tools %q, want %q", n, strings.Join(got, " "), names)
	}
	return w
}

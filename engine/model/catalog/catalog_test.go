package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/script"
	"flowctl/flows/machine"
)

// flow makes a machine with models, in a folder.
func flow(hash, dir string, models ...machine.ModelSpec) *machine.Machine {
	m := &machine.Machine{Name: "f", Hash: hash, Dir: dir}
	for _, spec := range models {
		m.Models = append(m.Models, machine.Item[machine.ModelSpec]{Name: spec.Name, Value: spec})
	}
	return m
}

func endpoint(name string, cfg openai.Config) machine.ModelSpec {
	return machine.ModelSpec{Name: name, Provider: "openai", Config: &cfg}
}

func scripted(name, file string) machine.ModelSpec {
	return machine.ModelSpec{Name: name, Provider: "script", Config: &script.Config{File: file}}
}

func env(pairs ...string) openai.Getenv {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// write puts a file into a folder and gives its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, c *Catalog, m *machine.Machine, use model.Use) model.Opened {
	t.Helper()
	opened, err := c.Open(m, use)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func ask(t *testing.T, m model.Model, req model.Request) model.Response {
	t.Helper()
	if req.Messages == nil {
		req.Messages = []model.Message{{Role: model.User, Text: "hello"}}
	}
	resp, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// noWaits is a clock whose waits are over at once, and are counted.
func noWaits(waits *int) model.Clock {
	return model.Clock{Random: func() float64 { return 0.5 }, Sleep: func(ctx context.Context, d time.Duration) error {
		if d > 0 {
			*waits++
		}
		return ctx.Err()
	}}
}

func TestCase(t *testing.T) {
	m := flow("h", "/d", endpoint("general", openai.Config{}), endpoint("own", openai.Config{Model: "m", APIKeyEnv: "MINE"}),
		endpoint("local", openai.Config{Model: "l", BaseURL: "http://localhost:1/v1"}), scripted("played", "s.yaml"))
	for _, test := range []struct {
		env  openai.Getenv
		name string
		want machine.ModelCase
		id   string
		keys string
	}{
		{nil, "general", machine.ModelMissing, "", "LLM_API_KEY OPENAI_API_KEY"},
		{env("OPENAI_API_KEY", "k", "LLM_MODEL", "gpt"), "general", machine.ModelReady, "gpt", "LLM_API_KEY OPENAI_API_KEY"},
		{env("OPENAI_API_KEY", "k"), "general", machine.ModelReady, "", "LLM_API_KEY OPENAI_API_KEY"},
		{env("LLM_API_KEY", "k"), "own", machine.ModelMissing, "", "MINE"},
		{env("MINE", "k", "LLM_MODEL", "gpt"), "own", machine.ModelReady, "m", "MINE"},
		{nil, "local", machine.ModelReady, "l", "LLM_API_KEY OPENAI_API_KEY"},
		{nil, "played", machine.ModelReady, "script", ""},
		{nil, "nothing", machine.ModelMissing, "", ""},
	} {
		c := New(Options{Getenv: test.env})
		if ready, id := c.Case(m, test.name); ready != test.want || id != test.id {
			t.Errorf("%s: %s %q, want %s %q", test.name, ready, id, test.want, test.id)
		}
		if keys := strings.Join(c.KeyNames(m, test.name), " "); keys != test.keys {
			t.Errorf("%s takes its key from %q, want %q", test.name, keys, test.keys)
		}
	}
}

func TestRecordedNameCounts(t *testing.T) {
	s := modeltest.New(modeltest.Options{Answer: func(r modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: r.Chat.Model} }})
	defer s.Close()
	m := flow("h", "/d", endpoint("a", openai.Config{BaseURL: s.URL}), endpoint("b", openai.Config{BaseURL: s.URL, Model: "fixed"}))
	c := New(Options{Getenv: env("LLM_MODEL", "now")})
	for _, test := range []struct {
		use  model.Use
		want string
	}{
		{model.Use{Name: "a"}, "now"}, {model.Use{Name: "a", ID: "then"}, "then"},
		{model.Use{Name: "b"}, "fixed"}, {model.Use{Name: "b", ID: "then"}, "then"}, {model.Use{Name: "a"}, "now"},
	} {
		if got := ask(t, open(t, c, m, test.use), model.Request{}).Message.Text; got != test.want {
			t.Errorf("%+v asks %s, want %s", test.use, got, test.want)
		}
	}
}

func TestWrappers(t *testing.T) {
	s := modeltest.New(modeltest.Options{})
	defer s.Close()
	m := flow("h", "/d", endpoint("a", openai.Config{BaseURL: s.URL, Model: "x", Protocol: openai.ProtocolJSON, Prices: &model.Prices{Prompt: 1, Completion: 2}}),
		endpoint("b", openai.Config{BaseURL: s.URL, Model: "x"}))
	var waits int
	c := New(Options{Clock: noWaits(&waits)})
	opened := open(t, c, m, model.Use{Name: "a"})
	s.Push(modeltest.Reply{Status: http.StatusBadGateway},
		modeltest.Reply{Text: `{"thought": "why", "action": "use_tool", "tool_name": "look", "tool_args": {}}`, Prompt: 1000, Output: 500})
	req := model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}, Tools: []model.Tool{{Name: "look", Description: "Look."}}}
	resp := ask(t, opened, req)
	if len(resp.Message.Calls) != 1 || resp.Message.Calls[0].Name != "look" || resp.Cost == nil || *resp.Cost != 0.002 || waits != 1 {
		t.Errorf("gave %+v after %d waits", resp, waits)
	}
	if body := string(s.Requests()[1].Body); !strings.Contains(body, "To use a tool, one at a time") || !resp.InText || len(req.Messages) != 1 {
		t.Errorf("it is sent as %s", body)
	}
	if plain := open(t, c, m, model.Use{Name: "b"}); plain.Leftovers != nil {
		t.Error("a plain model has more than itself")
	}
}

// The list of the first model is the whole chain. What cannot be called counts as failed, and is told.
func TestFallbacks(t *testing.T) {
	s := modeltest.New(modeltest.Options{Answer: func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Status: http.StatusServiceUnavailable} }})
	defer s.Close()
	dir := t.TempDir()
	write(t, dir, "s.yaml", "answers: [{state: a, text: from the script}]")
	down := openai.Config{BaseURL: s.URL, Model: "x"}
	with := func(names ...string) openai.Config { cfg := down; cfg.Fallback = names; return cfg }
	m := flow("h", dir, endpoint("first", with("keyless", "second", "last")), endpoint("keyless", openai.Config{Model: "m", APIKeyEnv: "MINE"}),
		endpoint("second", with("first", "other")), scripted("last", "s.yaml"), scripted("other", "none.yaml"), endpoint("lost", with("nowhere", "other")))
	var waits int
	c := New(Options{Clock: noWaits(&waits)})
	var told []string
	hello := []model.Message{{Role: model.User, Text: "hello"}}
	req := model.Request{Messages: hello, Origin: model.Origin{State: "a", Visit: 1, Turn: 1}, Failed: func(a model.Attempt) {
		if a.Next != "" {
			told = append(told, a.Next+" after "+string(a.Err.Class))
		}
	}}
	resp := ask(t, open(t, c, m, model.Use{Name: "first"}), req)
	want := []string{"keyless after server", "second after authentication", "last after server"}
	if resp.Message.Text != "from the script" || !slices.Equal(told, want) {
		t.Errorf("gave %+v; told %q, want %q", resp, told, want)
	}
	if note := strings.Join(resp.Notes, ";"); note != "first (server), keyless (authentication), second (server) did not answer; last did" {
		t.Errorf("the note is %q", note)
	}
	if n := len(s.Requests()); n != 2*model.DefaultAttempts {
		t.Errorf("%d requests", n)
	}
	_, err := open(t, c, m, model.Use{Name: "lost"}).Generate(t.Context(), req)
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Class != model.BadRequest || !strings.Contains(err.Error(), "has no model nowhere") {
		t.Errorf("gave %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := (failing{failed}).Generate(ctx, req); err == nil || err.Error() != "enough" {
		t.Errorf("gave %v", err)
	}
}

func TestScripts(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s.yaml", "answers:\n- {state: a, error: {class: rate, retry_after: 50s}}\n- {state: a, text: so}\n- {state: b, text: never}\n")
	other := write(t, t.TempDir(), "other.yaml", "answers: [{state: a, text: other}]")
	m := flow("h", dir, scripted("played", "s.yaml"), scripted("absolute", other),
		endpoint("real", openai.Config{APIKeyEnv: "NONE", Fallback: []string{"played"}, Protocol: openai.ProtocolJSON}))
	waits := 0
	c := New(Options{Clock: noWaits(&waits)})
	at := model.Origin{State: "a", Visit: 1, Turn: 1}
	var attempts []model.Attempt
	played := open(t, c, m, model.Use{Name: "played", ID: "script"})
	resp := ask(t, played, model.Request{Origin: at, Failed: func(a model.Attempt) { attempts = append(attempts, a) }})
	if resp.Message.Text != "so" || waits != 0 || len(attempts) != 1 || attempts[0].Wait != 0 {
		t.Errorf("gave %+v after %d waits, %+v", resp, waits, attempts)
	}
	if left := played.Leftovers([]model.Origin{at}); len(left) != 1 || !strings.Contains(left[0], "s.yaml:4:3: nobody asked for this answer: state b") {
		t.Errorf("left over are %q", left)
	}
	if text := ask(t, open(t, c, m, model.Use{Name: "absolute"}), model.Request{Origin: at}).Message.Text; text != "other" {
		t.Errorf("gave %q", text)
	}
	instead := open(t, c, m, model.Use{Name: "real", ID: "x", Script: other})
	if text := ask(t, instead, model.Request{Origin: at}).Message.Text; text != "other" {
		t.Errorf("gave %q", text)
	}
	_, err := instead.Generate(t.Context(), model.Request{Origin: model.Origin{State: "z", Visit: 1, Turn: 1}})
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Class != model.Script {
		t.Errorf("what the script does not answer gave %v", err)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.yaml", "answers:\n- {state: a, txt: x}\n- {state: a, text: 1}\n")
	m := flow("h", dir, scripted("gone", "gone.yaml"), scripted("folder", "."), scripted("bad", "bad.yaml"),
		endpoint("spoilt", openai.Config{Model: "m"}), endpoint("unnamed", openai.Config{APIKeyEnv: "MINE"}),
		machine.ModelSpec{Name: "odd", Provider: "odd"})
	c := New(Options{Getenv: env("LLM_API_KEY", "sk-test-AAAA1111\n", "MINE", "sk-test-BBBB2222")})
	for _, test := range []struct {
		use   model.Use
		class model.Class
		want  []string
	}{
		{model.Use{Name: "gone"}, model.Script, []string{filepath.Join(dir, "gone.yaml") + " cannot be read: no such file"}},
		{model.Use{Name: "folder"}, model.Script, []string{"it is a folder"}},
		{model.Use{Name: "bad"}, model.Script, []string{"bad.yaml:2:14: ", "bad.yaml:3:20: "}},
		{model.Use{Name: "spoilt", Script: filepath.Join(dir, "no.yaml")}, model.Script, []string{"no.yaml cannot be read"}},
		{model.Use{Name: "spoilt"}, model.Authentication, []string{"LLM_API_KEY ends in a line break"}},
		{model.Use{Name: "unnamed"}, model.BadRequest, []string{"set LLM_MODEL"}},
		{model.Use{Name: "odd"}, model.BadRequest, []string{"provider odd"}},
		{model.Use{Name: "no"}, model.BadRequest, []string{"the flow f has no model no"}},
	} {
		_, err := c.Open(m, test.use)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != test.class {
			t.Errorf("%+v gave %v", test.use, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-test") {
				t.Errorf("%+v: %q does not say %q", test.use, err, want)
			}
		}
	}
	// What could not be opened is tried anew.
	write(t, dir, "gone.yaml", "answers: []")
	open(t, c, m, model.Use{Name: "gone"})
}

func TestModelsAreKept(t *testing.T) {
	m, there := flow("h", "/d", endpoint("a", openai.Config{BaseURL: "http://h/v1"})), flow("h", "/e", endpoint("a", openai.Config{BaseURL: "http://h/v1"}))
	c := New(Options{})
	use := func(n int) model.Use { return model.Use{Name: "a", ID: fmt.Sprint("m", n)} }
	first := open(t, c, m, use(0)).Model
	if open(t, c, m, use(0)).Model != first {
		t.Error("the same choice gave another model")
	}
	if open(t, c, there, use(0)).Model == first {
		t.Error("another folder gave the same model")
	}
	for n := 1; n < 2*maxKept; n++ {
		open(t, c, m, use(n))
		if open(t, c, m, use(0)).Model != first {
			t.Fatalf("what was used last was dropped after %d models", n)
		}
		if len(c.kept) > maxKept {
			t.Fatalf("%d models are kept", len(c.kept))
		}
	}
}

// roundTrips is a transport whose requests are under way until they are let go.
type roundTrips struct {
	mu       sync.Mutex
	underWay int
	most     int
	let      chan struct{}
}

func (r *roundTrips) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.underWay++
	r.most = max(r.most, r.underWay)
	r.mu.Unlock()
	<-r.let
	r.mu.Lock()
	r.underWay--
	r.mu.Unlock()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}`))}, nil
}

// All runs of a process share one limit, whatever flow they are of. Another model has its own.
func TestLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &roundTrips{let: make(chan struct{})}
		cfg := openai.Config{BaseURL: "http://h/v1", Model: "x", Concurrency: 1}
		m, later := flow("h", "/d", endpoint("a", cfg)), flow("i", "/d", endpoint("b", cfg))
		c := New(Options{Transport: transport})
		var all sync.WaitGroup
		start := func(m *machine.Machine, use model.Use) {
			opened := open(t, c, m, use)
			all.Go(func() {
				if _, err := opened.Generate(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}}); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			start(m, model.Use{Name: "a"})
			start(later, model.Use{Name: "b"})
		}
		synctest.Wait()
		if transport.underWay != 1 {
			t.Errorf("%d requests are under way", transport.underWay)
		}
		start(m, model.Use{Name: "a", ID: "y"})
		synctest.Wait()
		if transport.underWay != 2 {
			t.Errorf("%d requests are under way, to two models", transport.underWay)
		}
		close(transport.let)
		all.Wait()
		if transport.most != 2 {
			t.Errorf("at most %d requests were under way", transport.most)
		}
	})
}

func TestSecretsStayOut(t *testing.T) {
	s := modeltest.New(modeltest.Options{Answer: func(r modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Status: http.StatusBadRequest, Body: `{"error": {"message": "hush and ` + r.Header.Get("Authorization") + `"}}`}
	}})
	defer s.Close()
	c := New(Options{Getenv: env("LLM_API_KEY", "sk-test-AAAA1111"), Redact: func(text string) string { return strings.ReplaceAll(text, "hush", "***") }})
	opened := open(t, c, flow("h", "/d", endpoint("a", openai.Config{BaseURL: s.URL, Model: "x"})), model.Use{Name: "a"})
	_, err := opened.Generate(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}})
	if err == nil || strings.Contains(err.Error(), "AAAA1111") || strings.Contains(err.Error(), "hush") {
		t.Errorf("gave %v", err)
	}
}

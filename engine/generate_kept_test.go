package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/catalog"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// startAs starts a run of another id and advances it.
func (x *dialog) startAs(e *engine.Engine, id string) *history.Snapshot {
	x.t.Helper()
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: id}); err != nil {
		x.t.Fatal(err)
	}
	snap, err := e.Advance(context.Background(), id)
	if err != nil {
		x.t.Fatal(err)
	}
	return snap
}

// called gives the answers of a run.
func called(t testing.TB, e *engine.Engine, run string) []*history.ModelCalled {
	t.Helper()
	evs, err := e.History(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	var out []*history.ModelCalled
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ModelCalled); ok {
			out = append(out, d)
		}
	}
	return out
}

// The same requests in a second run are answered from the store, and cost nothing.
func TestCacheAnswersTheSameRequest(t *testing.T) {
	for _, w := range []wire{native, inText} {
		t.Run(string(w), func(t *testing.T) {
			f := talkFlow()
			f.at("start").Cache = true
			f.m.Limits.Tokens = 40
			x := newDialog(t, f, modelSetup{wire: w, prices: &model.Prices{Prompt: 1, Completion: 1}})
			look := calls("I look.", modeltest.Call{ID: "a", Name: "look", Args: arg("a")})
			look.Prompt, look.Output = 10, 3
			x.push(look, modeltest.Reply{Text: "Done.", Prompt: 20, Output: 5})
			got := x.act(doIt)
			e := x.engine("w")
			wantStatus(t, x.startAs(e, "one"), store.Succeeded)
			first := *got
			*got = engine.Generation{}
			snap := x.startAs(x.engine("other"), "two")
			wantStatus(t, snap, store.Succeeded)
			if u := snap.Spent.Usage; u.ModelCalls != 0 || u.PromptTokens != 0 || u.CompletionTokens != 0 || u.Cost != nil || u.ToolCalls != 1 {
				t.Errorf("usage %+v", u)
			}
			if got.Text != first.Text || got.Text != "Done." || len(x.server.Requests()) != 2 {
				t.Errorf("the answer is %+v after %d requests", got, len(x.server.Requests()))
			}
			for i, d := range called(t, e, "two") {
				if !d.Cached || d.PromptTokens == 0 || called(t, e, "one")[i].Cached {
					t.Errorf("answer %d is stored as %+v", i+1, d)
				}
			}
			x.clock.advance(25 * time.Hour)
			x.push(look, modeltest.Reply{Text: "New."})
			wantStatus(t, x.startAs(e, "late"), store.Succeeded)
			if got.Text != "New." {
				t.Errorf("a day later the answer is %+v", got)
			}
		})
	}
}

// An answer from the store is no call: it is given also to a run that may make none.
func TestCacheAnswersARunAtItsLimit(t *testing.T) {
	f := talkFlow()
	f.at("start").Cache = true
	f.m.Limits.ModelCalls = 1
	x := newDialog(t, f, modelSetup{})
	x.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for range 3 {
			if _, err := step.Generate(engine.Task{Label: "say", Text: "Say.", Aside: true}); err != nil {
				return "", err
			}
		}
		return "next", nil
	})
	x.push(modeltest.Reply{Text: "Done."})
	wantStatus(t, x.run(x.engine("w")), store.Succeeded)
	if len(x.server.Requests()) != 1 {
		t.Errorf("%d requests", len(x.server.Requests()))
	}
}

// What differs in anything that decides the answer is another request; without `cache: true` nothing is kept.
func TestCacheTellsRequestsApart(t *testing.T) {
	for name, change := range map[string]func(x *dialog, f *flow){
		"no cache":      func(_ *dialog, f *flow) { f.at("start").Cache = false },
		"another text":  func(x *dialog, _ *flow) { x.act(engine.Task{Label: "act", Text: "Do that.", Tools: true}) },
		"no tools":      func(x *dialog, _ *flow) { x.act(engine.Task{Label: "act", Text: "Do it."}) },
		"other tools":   func(_ *dialog, f *flow) { f.at("start").Tools = []string{"look"} },
		"instructions":  func(_ *dialog, f *flow) { f.at("start").Instructions = value("Be brief.") },
		"another model": func(x *dialog, _ *flow) { x.opened.id = "test-2" },
		"another config": func(_ *dialog, f *flow) {
			f.m.Models[0].Value.Config = &openai.Config{Model: "test-1", MaxTokens: 7}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := talkFlow()
			f.at("start").Cache = true
			x := newDialog(t, f, modelSetup{})
			x.push(modeltest.Reply{Text: "one"}, modeltest.Reply{Text: "two"})
			x.act(doIt)
			wantStatus(t, x.startAs(x.engine("w"), "one"), store.Succeeded)
			change(x, f)
			wantStatus(t, x.startAs(x.engine("v"), "two"), store.Succeeded)
			if x.left() > 0 {
				t.Error("the answer is of another request")
			}
		})
	}
}

// Answers that will not do are not kept, nor is a refusal.
func TestCacheKeepsNoWrongAnswer(t *testing.T) {
	blocked := whole(`{"role":"assistant","content":"no"}`, `"content_filter"`)
	cut := modeltest.Reply{Text: `{"outcome":"confirm"}`, Finish: "length"}
	for name, bad := range map[string][]modeltest.Reply{
		"misfit":  {{Text: `{"outcome":"perhaps"}`}, {Text: "perhaps"}, {Text: ""}},
		"cut":     {cut, cut, cut},
		"blocked": {blocked},
	} {
		t.Run(name, func(t *testing.T) {
			f := talkFlow()
			f.at("start").Cache = true
			x := newDialog(t, f, modelSetup{})
			x.act(choosing(""))
			for _, run := range []string{"one", "two"} {
				x.push(bad...)
				wantStatus(t, x.startAs(x.engine(run), run), store.Succeeded)
				if x.left() > 0 {
					t.Errorf("run %s left %d replies", run, x.left())
				}
			}
			if n := len(x.server.Requests()); n != 2*len(bad) {
				t.Errorf("%d requests, want %d", n, 2*len(bad))
			}
		})
	}
}

// uncached is a store that keeps no answers.
type uncached struct{ store.Store }

// full is a store whose cache is out of order.
type full struct{ store.Store }

func (full) Cached(context.Context, string, time.Time) ([]byte, error) {
	return nil, fmt.Errorf("the disk is full")
}

func (full) PutCached(context.Context, string, []byte, time.Time, time.Time) error {
	return fmt.Errorf("the disk is full")
}

// spoilt is a store whose cache gives what is no answer.
type spoilt struct{ full }

func (spoilt) Cached(context.Context, string, time.Time) ([]byte, error) {
	return []byte("no answer"), nil
}

// A store without the ability, or whose cache fails, only costs calls.
func TestCacheThatIsNone(t *testing.T) {
	for name, wrap := range map[string]func(store.Store) store.Store{
		"no ability": func(s store.Store) store.Store { return uncached{s} },
		"full":       func(s store.Store) store.Store { return full{s} },
		"spoilt":     func(s store.Store) store.Store { return spoilt{full{s}} },
	} {
		t.Run(name, func(t *testing.T) {
			f := talkFlow()
			f.at("start").Cache = true
			x := newDialog(t, f, modelSetup{})
			x.store = wrap(x.store)
			x.push(modeltest.Reply{Text: "one"}, modeltest.Reply{Text: "two"})
			x.act(doIt)
			wantStatus(t, x.startAs(x.engine("w"), "one"), store.Succeeded)
			wantStatus(t, x.startAs(x.engine("v"), "two"), store.Succeeded)
			if x.left() > 0 {
				t.Error("an answer came from nowhere")
			}
		})
	}
}

// scriptedDialog is a run whose model is an endpoint without key, and the file of a script that stands for it.
func scriptedDialog(t *testing.T, source string) (x *dialog, file string) {
	t.Helper()
	x = newDialog(t, talkFlow(), modelSetup{})
	x.flow.Models[0].Value.Config = &openai.Config{Model: "test-1", APIKeyEnv: "NO_SUCH_KEY"}
	file = filepath.Join(t.TempDir(), "script.yaml")
	write(t, file, source)
	x.config = func(cfg *engine.Config) { cfg.Models = catalog.New(catalog.Options{}) }
	x.act(doIt)
	return x, file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const looksOnce = `answers:
  - {state: start, turn: 1, text: I look., calls: [{tool: look, args: {text: a}}]}
`

// A script stands for a model in the whole run, whatever the processes that go on with it think of its models.
func TestScriptStandsForAModel(t *testing.T) {
	x, file := scriptedDialog(t, looksOnce+"  - {state: start, turn: 2, text: Done.}\n")
	think := thinking(doIt, nil)
	x.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
		if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"}); err != nil {
			return "", err
		}
		return think(ctx, step)
	})
	e := x.engine("w")
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: "run", Scripts: map[string]string{"default": file}}); err != nil {
		t.Fatal(err)
	}
	snap := advance(t, e)
	wantStatus(t, snap, store.Waiting)
	answer(t, e, engine.Reply{Ask: ids(snap), Text: "x"})
	other := x.heir("other")
	wantStatus(t, advance(t, other), store.Succeeded)
	x.wantRan("look a")
	if got := all[*history.RunStarted](t, e)[0].Scripts["default"]; got != file {
		t.Errorf("the script of the run is stored as %q", got)
	}
	if env := all[*history.StateEntered](t, e)[0].Env; env.Script != file || env.Model != machine.ModelReady {
		t.Errorf("the environment is stored as %+v", env)
	}
	if made := all[*history.ModelCalled](t, e); len(made) != 2 || made[0].Model != "script" {
		t.Errorf("stored as %+v", made)
	}
	if len(x.server.Requests()) > 0 {
		t.Error("the endpoint was asked")
	}
}

// Answers that nobody asked for stop the run before its end, and it ends when they are gone.
func TestScriptWithAnswersLeft(t *testing.T) {
	x, file := scriptedDialog(t, looksOnce+"  - {state: start, turn: 2, text: Done.}\n  - {state: start, turn: 3, text: More.}\n")
	e := x.engine("w")
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: "run", Scripts: map[string]string{"default": file}}); err != nil {
		t.Fatal(err)
	}
	wantStop(t, advance(t, e), history.CodeOutage, file+":4:5", "turn 3", "take them out of the script")
	if got := trace(t, e, "run"); strings.Contains(got, "run_finished") {
		t.Errorf("history %s", got)
	}
	write(t, file, looksOnce+"  - {state: start, turn: 2, text: Done.}\n")
	wantStatus(t, advance(t, x.heir("other")), store.Succeeded)
	x.wantRan("look a")
}

// A request that the script has no answer for stops the run, and it goes on when there is one.
func TestScriptWithoutAnAnswer(t *testing.T) {
	x, file := scriptedDialog(t, looksOnce)
	e := x.engine("w")
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: "run", Scripts: map[string]string{"default": file}}); err != nil {
		t.Fatal(err)
	}
	wantStop(t, advance(t, e), history.CodeOutage, "no answer for state start, visit 1, turn 2", "mend the script")
	write(t, file, looksOnce+"  - {state: start, turn: 2, text: Done.}\n")
	wantStatus(t, advance(t, x.heir("other")), store.Succeeded)
	x.wantRan("look a")
	if failed := all[*history.AttemptFailed](t, e); len(failed) != 1 || failed[0].Problem.Kind != "script" {
		t.Errorf("recorded %+v", failed)
	}
}

// answering is a model without an endpoint.
type answering func(model.Request) model.Response

// Generate implements model.Model.
func (a answering) Generate(_ context.Context, req model.Request) (model.Response, error) {
	return a(req), nil
}

// What a run has stored grows with its turns, not with their square.
func TestStorageGrowsWithTheTurns(t *testing.T) {
	size := func(turns int) int {
		f := talkFlow()
		f.at("start").Limits.Turns = 1000
		f.m.Limits = machine.Limits{}
		x := newDialog(t, f, modelSetup{})
		asked := 0
		x.opened.model = answering(func(model.Request) model.Response {
			asked++
			if asked > turns {
				return model.Response{Message: model.Message{Text: "Done."}}
			}
			text := fmt.Sprint(asked, strings.Repeat("x", 1000))
			return model.Response{Message: model.Message{Text: "I look.", Calls: []model.Call{{Name: "look", Args: arg(text)}}}}
		})
		x.act(doIt)
		counted := &counting{Store: x.store}
		x.store = counted
		wantStatus(t, x.run(x.engine("w")), store.Succeeded)
		return counted.bytes
	}
	a, b, c := size(50), size(100), size(200)
	if float64(b) > 2.2*float64(a) || float64(c) > 2.2*float64(b) {
		t.Errorf("50, 100, 200 turns take %d, %d, %d bytes", a, b, c)
	}
}

// counting counts the bytes of all that is committed, and remembers the blobs.
type counting struct {
	store.Store
	bytes int
	blobs strings.Builder
}

func (s *counting) Commit(ctx context.Context, c store.Commit) error {
	for _, ev := range c.Events {
		s.bytes += len(ev.Data)
	}
	for _, b := range c.Blobs {
		s.bytes += len(b.Data)
		s.blobs.Write(b.Data)
	}
	s.bytes += len(c.Checkpoint)
	return s.Store.Commit(ctx, c)
}

// A key goes nowhere: not into what is stored, not to the model, not to who watches, whichever way it came in.
func TestSecretsGoNowhere(t *testing.T) {
	const key = `sk-test"AAAA<1111`
	secrets, err := secret.New(map[string]string{"KEY": key})
	if err != nil {
		t.Fatal(err)
	}
	overBoth(t, modelSetup{redact: secrets.Text}, func(t *testing.T, x *dialog) {
		f := &flow{x.flow}
		f.variable("note", `{"type":"string"}`)
		f.at("start").Shows = []string{"note"}
		f.at("start").Instructions = value("My key is " + key)
		f.at("start").Examples = []machine.Example{{User: value("Is it " + key + "?"), Assistant: value(machine.Value("No, " + key))}}
		x.does("look", func(context.Context, tool.Call) (machine.Value, error) {
			return machine.Values{"key": key, "list": []machine.Value{"a " + key}}, nil
		})
		x.does("add", func(context.Context, tool.Call) (machine.Value, error) { return nil, fmt.Errorf("refused %s", key) })
		say := func(text, name string) modeltest.Reply {
			r := calls(text, modeltest.Call{ID: "a", Name: name, Args: arg(key)})
			r.Reasoning = "I think of " + key
			return r
		}
		x.push(modeltest.Reply{Status: 503, Body: `{"error":{"message":` + quoted("bad key "+key) + `}}`}, say("I use "+key, "look"), say("", "add"),
			say("", "tool_"+key), modeltest.Reply{Text: "It is " + key + "."}, modeltest.Reply{Status: 401, Body: quoted("wrong " + key)})
		think := thinking(engine.Task{Label: "act", Text: "Look for " + key, Tools: true}, nil)
		x.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
			if err := step.Set("note", "noted: "+key); err != nil {
				return "", err
			}
			if o, err := think(ctx, step); o != "next" {
				return o, err
			}
			_, err := step.Generate(doIt)
			return "next", err
		})
		var shown, observed strings.Builder
		before := x.config
		x.config = func(cfg *engine.Config) {
			before(cfg)
			cfg.Secrets = secrets
			cfg.Stream = func(_, _, text string) { shown.WriteString(text) }
			cfg.Observe = func(_ string, ev history.Event) { fmt.Fprintf(&observed, "%+v\n", ev.Data) }
		}
		counted := &counting{Store: x.store}
		x.store = counted
		e := x.engine("w")
		wantStop(t, x.run(e), history.CodeOutage, "[secret:KEY]")
		all := map[string]string{"events": stored(t, x.rig, "run"), "blobs": counted.blobs.String(), "the stream": shown.String(), "the observer": observed.String()}
		for i, r := range x.server.Requests() {
			all[fmt.Sprint("request ", i)] = string(r.Body)
		}
		sent, err := e.Sent(context.Background(), "run", 0)
		if err != nil {
			t.Fatal(err)
		}
		all["what was sent"] = fmt.Sprintf("%+v", sent.Request)
		for place, text := range all {
			for _, form := range []string{key, `sk-test\"AAAA<1111`, `AAAA<1111`, `AAAA\u003c1111`, `sk-test`} {
				if strings.Contains(text, form) {
					t.Errorf("%s stands in %s: %s", form, place, text)
				}
			}
			if !strings.Contains(text, "[secret:KEY]") {
				t.Errorf("nothing was taken out of %s: %s", place, text)
			}
		}
	})
}

// What a watcher sees is the answer; what is stored of it is the same without one.
func TestStreaming(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		run := func(id string, watch func(run, state, text string)) string {
			look := calls("I look äöü.", modeltest.Call{ID: "a", Name: "look", Args: arg("a")}, modeltest.Call{ID: "b", Name: "add", Args: arg("b")})
			look.Prompt, look.Output, look.Reasoning = 10, 3, "so"
			x.push(look, modeltest.Reply{Text: "All is done.", Prompt: 20, Output: 5})
			x.act(doIt)
			before := x.config
			defer func() { x.config = before }()
			x.config = func(cfg *engine.Config) {
				before(cfg)
				cfg.Stream = watch
			}
			e := x.engine(id)
			wantStatus(t, x.startAs(e, id), store.Succeeded)
			var out strings.Builder
			for _, d := range called(t, e, id) {
				same := *d
				same.MS = 0
				text, err := machine.EncodeValue(same)
				if err != nil {
					t.Fatal(err)
				}
				out.Write(text)
			}
			return out.String()
		}
		shown := ""
		with := run("one", func(run, state, text string) {
			if run != "one" || state != "start" || text == "" {
				t.Errorf("%q was shown of %s, %s", text, run, state)
			}
			shown += text
		})
		if without := run("two", nil); with != without {
			t.Errorf("stored with a watcher:\n%s\nand without:\n%s", with, without)
		}
		if shown != "I look äöü.All is done." {
			t.Errorf("shown: %s", shown)
		}
	})
}

// A stream that is cut is tried again, and its secrets are taken out also where they lie across pieces.
func TestAStreamThatIsCut(t *testing.T) {
	const key = "sk-test-AAAA1111"
	secrets, err := secret.New(map[string]string{"KEY": key})
	if err != nil {
		t.Fatal(err)
	}
	half := modeltest.Reply{Cut: true, Header: header("Content-Type", "text/event-stream"), Lines: []string{
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Half of sk-test"}}]}`, ``}}
	x := newDialog(t, talkFlow(), modelSetup{})
	x.push(half, modeltest.Reply{Text: "It is " + key + ", or sk-te"})
	got := x.act(doIt)
	var shown []string
	before := x.config
	x.config = func(cfg *engine.Config) {
		before(cfg)
		cfg.Secrets = secrets
		cfg.Stream = func(_, _, text string) { shown = append(shown, text) }
		cfg.Observe = func(_ string, ev history.Event) {
			if _, ok := ev.Data.(*history.AttemptFailed); ok {
				shown = append(shown, "|")
			}
		}
	}
	e := x.engine("w")
	wantStatus(t, x.run(e), store.Succeeded)
	if all := strings.Join(shown, ""); all != "Half of |It is [secret:KEY], or sk-te" {
		t.Errorf("shown: %s", all)
	}
	if got.Text != "It is [secret:KEY], or sk-te" {
		t.Errorf("the answer is %q", got.Text)
	}
}

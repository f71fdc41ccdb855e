package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/tokens"
	"flowctl/engine/secret"
	"flowctl/flows/machine"
	"flowctl/store"
)

// narrow opens the model of a dialog as what it is: with its window, and whether it makes its calls in text.
type narrow struct {
	models
	window int64
	inText bool
}

func (n narrow) Open(m *machine.Machine, use model.Use) (model.Opened, error) {
	open, err := n.models.Open(m, use)
	open.Window, open.InText = n.window, n.inText
	return open, err
}

// narrowed gives a dialog's model a window.
func (x *dialog) narrowed(window int64) *dialog {
	x.config = func(cfg *engine.Config) {
		cfg.Models = narrow{models: x.opened, window: window, inText: x.setup.wire == inText}
	}
	return x
}

// Long answers that will not do are shown to the model cut, so that what is sent always fits.
func TestWrongAnswersThatAreLong(t *testing.T) {
	const window, reply = 4096, 1024
	counter := tokens.For("test-1")
	long := "on and on "
	for counter.Count(long) < 2300 {
		long += "on and on "
	}
	for _, name := range []string{"object", "finish", "text"} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				task, wrong, right := choosing(""), modeltest.Reply{Text: `{"outcome":` + quoted(long) + `}`}, modeltest.Reply{Text: `{"outcome":"confirm"}`}
				switch name {
				case "finish":
					task.Tools = true
					wrong, right = calls("", modeltest.Call{ID: "f", Name: "finish", Args: wrong.Text}), calls("", modeltest.Call{ID: "f", Name: "finish", Args: right.Text})
				case "text":
					task = engine.Task{Label: "say", Text: "Say ok.", Check: func(answer machine.Value) string {
						if answer != "ok" {
							return "say ok"
						}
						return ""
					}}
					wrong, right = modeltest.Reply{Text: long}, modeltest.Reply{Text: "ok"}
				}
				x.narrowed(window)
				x.push(wrong, wrong, right)
				got := x.act(task)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				if !got.Problem.None() || got.Text != strings.TrimSpace(right.Text) && got.Text != `{"outcome":"confirm"}` {
					t.Errorf("the answer is %+v", got)
				}
				made := all[*history.ModelCalled](t, e)
				for i, d := range made {
					if d.Counted > window-reply {
						t.Errorf("request %d has %d tokens, there is room for %d", i+1, d.Counted, window-reply)
					}
				}
				if len(made) != 3 || !strings.Contains(made[0].Text, "tokens left out") || counter.Count(made[0].Text) > window/4 {
					t.Errorf("%d answers, the first stored with %d tokens", len(made), counter.Count(made[0].Text))
				}
				wantTold(t, x.request(-1), "on and on", "tokens left out", "Answer again.", "on and on", "tokens left out", "Answer again.")
				x.wantSame(e, "run")
			})
		})
	}
}

// What a model is told to be wrong it is shown, whatever form it came in, and the event has it.
func TestARefusedAnswerIsShown(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply modeltest.Reply
		shown string // in the next request, as a native model is sent it
		only  wire
	}{
		{"finish", calls("I know.", modeltest.Call{ID: "f", Name: "finish", Args: `{"answr":"forty-two"}`}), `{"answr":"forty-two"}`, ""},
		{"finish that is no JSON", calls("I know.", modeltest.Call{ID: "f", Name: "finish", Args: `{"answer":"forty-two`}), `{"answer":"forty-two`, native},
		{"envelope", modeltest.Reply{Text: `{"thought":"so","action":"dance","final_answer":"forty-two"}`}, `"action":"dance","final_answer":"forty-two"`, inText},
		{"no answer in it", modeltest.Reply{Text: `{"thought":"forty-two","action":"finish"}`}, `{"thought":"forty-two","action":"finish"}`, inText},
		{"no object", modeltest.Reply{Text: "It is forty-two."}, "It is forty-two.", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				if test.only != "" && x.setup.wire != test.only {
					t.Skip("its protocol has no such answer")
				}
				right := calls("", modeltest.Call{ID: "f", Name: "finish", Args: `{"answer":"42"}`})
				replies := []modeltest.Reply{test.reply, right}
				x.reply = func(req modeltest.Request) modeltest.Reply {
					reply := replies[0]
					if replies = replies[1:]; reply.Text != "" && len(reply.Calls) == 0 {
						return reply // as it is, without an envelope of the test's
					}
					return spoken(req, reply)
				}
				got := x.act(finishing)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				if got.Text != `{"answer":"42"}` {
					t.Errorf("the answer is %+v", got)
				}
				first := all[*history.ModelCalled](t, e)[0]
				if first.Wrong == "" || !strings.Contains(first.Text, test.shown) || len(first.Calls) > 0 {
					t.Errorf("stored as %+v, want %s in it", first, test.shown)
				}
				again := x.request(-1).Chat.Messages
				if said := again[len(again)-2]; said.Role != "assistant" || !strings.Contains(said.Text(), "forty-two") {
					t.Errorf("the model is shown %s: %s", said.Role, said.Text())
				}
				wantTold(t, x.request(-1), "forty-two", "user: Your answer")
				x.wantSame(e, "run")
			})
		})
	}
}

// A script answers by the turn, so that nothing of it is kept for others, nor does it get what others have been told.
func TestCacheIsNotForScripts(t *testing.T) {
	x, file := scriptedDialog(t, looksOnce+"  - {state: start, turn: 2, text: As written.}\n")
	x.flow.States[0].Value.Cache = true
	for _, id := range []string{"one", "two"} {
		e := x.engine(id)
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: id, Scripts: map[string]string{"default": file}}); err != nil {
			t.Fatal(err)
		}
		snap, err := e.Advance(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, snap, store.Succeeded)
		for i, d := range called(t, e, id) {
			if d.Cached {
				t.Errorf("%s: answer %d came from the cache", id, i+1)
			}
		}
		write(t, file, looksOnce+"  - {state: start, turn: 2, text: As written anew.}\n")
		if id == "two" {
			if made := called(t, e, id); made[1].Text != "As written anew." {
				t.Errorf("the answer is %q", made[1].Text)
			}
		}
	}
}

// The same model at another address is another model, also where the environment says the address.
func TestCacheTellsEndpointsApart(t *testing.T) {
	f := talkFlow()
	f.at("start").Cache = true
	here, there := serve(t, modeltest.Options{}, modeltest.Reply{Text: "here"}), serve(t, modeltest.Options{}, modeltest.Reply{Text: "there"})
	env := map[string]string{"LLM_API_KEY": "sk-test-AAAA1111"}
	r := catalogRig(t, f, env, behind("default", openai.Config{Model: "test-1"}))
	for _, test := range []struct{ id, url, want string }{{"one", here.URL, "here"}, {"two", there.URL, "there"}, {"three", here.URL, "here"}} {
		env["LLM_BASE_URL"] = test.url
		e := r.engine(test.id)
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: test.id}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Advance(context.Background(), test.id); err != nil {
			t.Fatal(err)
		}
		made := called(t, e, test.id)
		if len(made) != 1 || made[0].Text != test.want || made[0].Cached != (test.id == "three") {
			t.Errorf("%s: %s, want %s", test.id, texts(made), test.want)
		}
	}
}

// texts gives answers as they are stored, for messages.
func texts(made []*history.ModelCalled) string {
	var out []string
	for _, d := range made {
		out = append(out, fmt.Sprintf("%q (cached %v, estimated %v, %d and %d tokens)", d.Text, d.Cached, d.Estimated, d.PromptTokens, d.CompletionTokens))
	}
	return strings.Join(out, ", ")
}

// In requests to a model that makes its calls in text, nothing says another form of answer than the protocol's: neither the
// system text, nor the examples, nor what was answered before.
func TestTextModelsAreToldOneForm(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		start := x.flow.States[0].Value
		start.Instructions = value("Be exact.")
		start.Examples = []machine.Example{
			{User: value("Is it one?"), Assistant: value(machine.Values{"answer": "one"})},
			{User: value("Is it two?"), Calls: []machine.ExampleCall{{Tool: "look", Args: machine.Ordered[machine.Tree]{{Name: "text", Value: value("two")}}, Result: value("2")}},
				Assistant: value(machine.Values{"answer": "two"})},
		}
		x.push(calls("", modeltest.Call{ID: "f", Name: "finish", Args: `{"answr":"no"}`}), calls("", modeltest.Call{ID: "f", Name: "finish", Args: `{"answer":"yes"}`}))
		x.act(finishing)
		e := x.engine("w")
		wantStatus(t, x.run(e), store.Succeeded)
		messages := x.request(-1).Chat.Messages
		system := messages[0].Text()
		said := 0
		for _, m := range messages {
			if m.Role != "assistant" {
				continue
			}
			said++
			if object := strings.HasPrefix(m.Text(), `{"thought": `); object != (x.setup.wire == inText) {
				t.Errorf("an earlier answer is sent as %s", m.Text())
			}
		}
		if said != 4 {
			t.Errorf("%d earlier answers are sent", said)
		}
		for _, text := range []string{"call the tool finish", "before you call a tool"} {
			if strings.Contains(system, text) != (x.setup.wire == native) {
				t.Errorf("%q in the system text of %s:\n%s", text, x.setup.wire, system)
			}
		}
		if inText := x.setup.wire == inText; strings.Contains(system, "exactly one JSON object") != inText || !strings.HasPrefix(system, "Be exact.\n\n") {
			t.Errorf("the system text is\n%s", system)
		}
		x.wantSame(e, "run")
	})
}

// Words on how to answer, and tools that are told as text, count for the system layer.
func TestInstructionsCountForTheSystemLayer(t *testing.T) {
	for name, task := range map[string]engine.Task{"tools": doIt, "object": choosing(""), "text": {Label: "say", Text: "Say."}} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				x.narrowed(8000)
				x.flow.States[0].Value.Instructions = value("Be exact.")
				x.act(task)
				run := func(id string, budget int64) *history.Snapshot {
					x.flow.States[0].Value.View.Budget.System = budget
					x.queue = []modeltest.Reply{{Text: `{"outcome":"confirm"}`}}
					return x.startAs(x.engine(id), id)
				}
				wantStatus(t, run("free", 0), store.Succeeded)
				system := model.Message{Role: model.System, Text: x.request(0).Chat.Messages[0].Text()}
				told := tokens.Request(tokens.For("test-1"), model.Request{Messages: []model.Message{system}}, false)
				snap := run("none", 1)
				wantStop(t, snap, history.CodeLimit, "the system layer", "view.budget.system")
				_, after, _ := strings.Cut(snap.Stop.Message, "takes at least ")
				var need int64
				if _, err := fmt.Sscan(after, &need); err != nil || need < told {
					t.Fatalf("%s, with a system text of %d tokens", snap.Stop.Message, told)
				}
				wantStop(t, run("less", need-1), history.CodeLimit, "the system layer")
				wantStatus(t, run("enough", need), store.Succeeded)
			})
		})
	}
}

// Where an endpoint does not say what was used, the limits hold all the same.
func TestLimitsHoldWithoutReports(t *testing.T) {
	silent := whole(`{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"text\":\"a\"}"}}]}`, `"tool_calls"`)
	for limit, set := range map[string]func(*machine.Limits){
		"tokens": func(l *machine.Limits) { l.Tokens = 50 },
		"cost":   func(l *machine.Limits) { l.Cost = 0.05 },
	} {
		t.Run(limit, func(t *testing.T) {
			f := talkFlow()
			set(&f.m.Limits)
			server := serve(t, modeltest.Options{}, silent, silent, silent)
			r := catalogRig(t, f, nil, behind("default", openai.Config{Model: "test-1", BaseURL: server.URL, Prices: &model.Prices{Prompt: 1000, Completion: 1000}}))
			long := doIt
			long.Text = strings.Repeat("Look at it. ", 100) // enough for a correction
			r.on("start", thinking(long, nil))
			e := r.engine("w")
			snap := r.run(e)
			wantStop(t, snap, history.CodeLimit, limit)
			made := all[*history.ModelCalled](t, e)
			if len(made) != 1 || len(server.Requests()) != 1 || !made[0].Estimated || made[0].PromptTokens < 200 || made[0].CompletionTokens <= 0 || made[0].Cost == nil {
				t.Errorf("%d requests, stored as %s", len(server.Requests()), texts(made))
			}
			if len(snap.Corrections) > 0 || len(snap.Warned) > 0 {
				t.Errorf("an estimate is taken for a report: %v, %v", snap.Corrections, snap.Warned)
			}
		})
	}
}

// An answer that was refused has cost something all the same.
func TestBlockedAnswersCountWhatTheyUsed(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		reply := modeltest.Reply{Body: `{"model":"test-1","usage":{"prompt_tokens":70,"completion_tokens":5},"choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"no"},"finish_reason":"content_filter"}]}`}
		x.push(reply)
		x.act(finishing)
		e := x.engine("w")
		snap := x.run(e)
		x.wantFail(e, snap, "blocked")
		if u := snap.Spent.Usage; u.ModelCalls != 1 || u.PromptTokens != 70 || u.CompletionTokens != 5 {
			t.Errorf("usage %+v", u)
		}
		if d := all[*history.ModelCalled](t, e)[0]; d.Model != "test-1" {
			t.Errorf("answered by %q", d.Model)
		}
		x.wantSame(e, "run")
	})
}

// A summary that the provider refused to make has cost something all the same.
func TestABlockedSummaryCountsWhatItUsed(t *testing.T) {
	m := &talker{}
	work := working(8, nil)
	m.answer = func(req model.Request) (model.Response, error) {
		if asksForSummary(req) {
			cost := 0.5
			return model.Response{}, &model.Error{Class: model.Blocked, ID: "m", Usage: model.Usage{PromptTokens: 70, CompletionTokens: 5}, Cost: &cost,
				Err: errors.New("it refused to answer this")}
		}
		return work(req)
	}
	r := bigResults(t, m)
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	sums := all[*history.Summarised](t, e)
	n := int64(len(sums))
	if u := snap.Spent.Usage; n == 0 || u.PromptTokens != 70*n || u.CompletionTokens != 5*n || u.Cost == nil || *u.Cost != 0.5*float64(n) {
		t.Errorf("%d summaries, usage %+v", n, snap.Spent.Usage)
	}
	for _, d := range sums {
		if d.Model != "m" || !strings.Contains(d.Refused, "refused to answer") {
			t.Errorf("stored as %+v", *d)
		}
	}
}

// No half of a secret is left where a summary is cut, be it a key of the environment or the value of a secret variable.
func TestASecretAcrossTheCutOfASummary(t *testing.T) {
	key := "sk-test-"
	for i := range 40 {
		key += fmt.Sprintf("%03d", 137*i%1000)
	}
	secrets, err := secret.New(map[string]string{"KEY": key})
	if err != nil {
		t.Fatal(err)
	}
	for mark, hide := range map[string]func(*rig, *engine.Config){
		"[secret:KEY]": func(_ *rig, cfg *engine.Config) { cfg.Secrets = secrets },
		"***": func(r *rig, _ *engine.Config) {
			r.flow.Vars = machine.Ordered[machine.Variable]{{Name: "code", Value: machine.Variable{Secret: true, HasDefault: true, Default: key}}}
		},
	} {
		t.Run(mark, func(t *testing.T) {
			m := &talker{}
			m.answer = working(12, func(model.Request) model.Response { return saying(strings.Repeat(key+" ", 5)) })
			r := bigResults(t, m)
			before := r.config
			r.config = func(cfg *engine.Config) {
				before(cfg)
				hide(r, cfg)
			}
			counted := &counting{Store: r.store}
			r.store = counted
			e := r.engine("w")
			wantStatus(t, r.run(e), store.Succeeded)
			sums := ""
			for _, d := range all[*history.Summarised](t, e) {
				sums += d.Text
			}
			if !strings.Contains(sums, mark) {
				t.Fatalf("nothing was taken out of the summaries: %s", sums)
			}
			for place, text := range map[string]string{"summaries": sums, "blobs": counted.blobs.String(), "requests": strings.Join(m.sent, "\n")} {
				for i := 0; i+12 <= len(key); i++ {
					if strings.Contains(text, key[i:i+12]) {
						t.Errorf("%q of the secret stands in %s", key[i:i+12], place)
						break
					}
				}
			}
		})
	}
}

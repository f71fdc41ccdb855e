package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

const vault = `
version: 1
name: vault
vars:
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: the order number}
  pin: {type: string, pattern: '^[0-9]{4,9}$', secret: true, description: the pin}
  token: {type: string, secret: true}
  copy: {type: string, secret: true}
tools:
  open: {description: Open, effect: write, approval: required, parameters: {pin: {type: string, minLength: 5}}, fake: {result: {type: string}}}
  close: {description: Close, effect: write, parameters: {token: {type: string}}, fake: {result: {type: string}}}
start: who
states:
  who:
    handler: collect
    limits: {turns: 9}
    with: {fields: [order_id, pin]}
    transitions: {complete: unlock, incomplete: lost}
  unlock:
    handler: call
    with: {tool: open, args: {pin: "{{ pin }}"}, into: token, expect: 'result != "odd1"'}
    transitions: {success: {to: lock, set: {copy: "{{ token }}"}}, fail: lost}
  lock:
    handler: call
    with: {tool: close, args: {token: "{{ copy }}"}}
    transitions: {success: done, fail: lost}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  done: {handler: end, with: {output: done}}
`

// masked gives all that is shown of a run: its document, and its events.
func (w *world) masked() string {
	w.t.Helper()
	doc, err := w.e.Report(context.Background(), "run")
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := w.store.Events(context.Background(), "run", 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := machine.EncodeValue(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	out := string(data)
	mask := (*history.Mask)(nil).AfterRows(rows)
	for _, row := range rows {
		row = mask.Row(row)
		out += "\n" + row.Type + " " + string(row.Data)
		if _, err := history.Decode(row); err != nil {
			w.t.Errorf("a masked event cannot be read: %v: %s", err, row.Data)
		}
	}
	return out
}

// hides checks that some texts stand nowhere in what is shown.
func (w *world) hides(texts ...string) *world {
	w.t.Helper()
	shown := w.masked()
	for _, text := range texts {
		for _, line := range strings.Split(shown, "\n") {
			if strings.Contains(line, text) {
				w.t.Errorf("%s is shown in %s", text, line)
			}
		}
	}
	return w
}

func TestSecretIsCollectedApprovedAndPassedOn(t *testing.T) {
	w := newWorld(t, vault)
	w.tools.run["open"] = func(args machine.Values) (machine.Value, error) { return "tk" + args["pin"].(string)[:2], nil }
	w.tools.run["close"] = func(machine.Values) (machine.Value, error) { return "ok", nil }
	w.start(`{}`).asks("Please tell me:\n- the order number\n- the pin")
	w.say("order A1001 and pin 471").asks("Please tell me the pin.")
	w.say("471").asks("That is no pin.\nPlease tell me the pin.")
	w.say("47112 or 47113").asks("There is more than one pin in your answer. Which one is it?\nPlease tell me the pin.")
	w.say("47112").has("pin", `"47112"`).asks("Approve open (pin = ***)?").hides("471")
	w.yes().path("who unlock lock done").called(`open{"pin":"47112"}`, `close{"token":"tk47"}`).
		has("token", `"tk47"`).has("copy", `"tk47"`).hides("471", "tk47")
	if !strings.Contains(w.masked(), `"pin":"***"`) || !strings.Contains(w.masked(), `"order_id":"A1001"`) {
		t.Errorf("what is shown has no masked pin, or no order number beside it:\n%s", w.masked())
	}
}

// What is wrong with a secret is told without it, however short it is.
func TestSecretThatWillNotDo(t *testing.T) {
	w := newWorld(t, vault)
	w.tools.run["open"] = func(machine.Values) (machine.Value, error) { return "odd1", nil }
	w.start(`{}`).say("A1001, pin 4711").path("who unlock lost").hides("4711")
	if out := w.snap.Finish.Output; out != "open was not run: pin: expected at least 5 characters, got the string \"***\"" {
		t.Errorf("the refusal says %q", out)
	}
	w = newWorld(t, vault)
	w.tools.run["open"] = func(machine.Values) (machine.Value, error) { return "odd1", nil }
	w.start(`{}`).say("A1001, pin 47113").yes().path("who unlock lost").hides("47113", `odd1\"}`, `"odd1"`).last("fail expect")
	w = newWorld(t, vault)
	w.tools.run["open"] = func(machine.Values) (machine.Value, error) { return machine.Values{"a": "tk471"}, nil }
	w.start(`{}`).say("A1001, pin 47113").yes().path("who unlock lost").hides("47113", "tk471").last("fail invalid")
}

// Changing what stands shows what is no secret.
func TestSecretIsChanged(t *testing.T) {
	w := newWorld(t, strings.Replace(vault, "fail: lost}\n  lock", "fail: who}\n  lock", 1))
	w.tools.run["open"] = func(machine.Values) (machine.Value, error) { return nil, tool.Failf("shut", "47113 is shut") }
	w.start(`{}`).say("A1001, pin 47113").no("not now").
		asks("What should change? At the moment: order number: A1001; pin: ***.")
	w.say("pin 47114").asks("Approve open (pin = ***)?").hides("47113", "47114")
}

const asking = `
version: 1
name: asking
inputs: {key: {type: string, secret: true, minLength: 3}}
vars: {code: {type: string, secret: true, minLength: 4}, next: {type: string, enum: [keep, renew]}}
start: first
states:
  first:
    handler: ask
    with: {question: "Your code?", into: code}
    transitions: {answered: second}
  second:
    handler: ask
    with: {question: "And now?", into: next, choices: {keep: Keep it, renew: {label: A new one, into: code}}}
    transitions: {keep: done, renew: done}
  done: {handler: end, with: {output: done}}
`

func TestSecretIsAskedFor(t *testing.T) {
	w := newWorld(t, asking)
	ctx := context.Background()
	_, _, err := w.e.Start(ctx, engine.StartRequest{Machine: w.m, ID: "other", Inputs: machine.Values{"key": "k9"}})
	if err == nil || strings.Contains(err.Error(), "k9") || !strings.Contains(err.Error(), "input key: expected at least 3") {
		t.Errorf("an input that will not do: %v", err)
	}
	w.start(`{"key": "k9x"}`)
	err = w.e.Answer(ctx, "run", engine.Reply{Ask: "1.0", Text: "zzz"})
	if err == nil || err.Error() != "the answer will not do; it takes at least 4 characters" {
		t.Errorf("an answer that will not do: %v", err)
	}
	w.say("zzz1").asks("And now?").hides("zzz1", "k9x")
	err = w.e.Answer(ctx, "run", engine.Reply{Ask: "2.0", Text: "new yyy1"})
	if err == nil || strings.Contains(err.Error(), "yyy1") || !strings.Contains(err.Error(), "choose one of: keep") {
		t.Errorf("an answer that is no choice: %v", err)
	}
	w.say("renew yyy1").has("code", `"yyy1"`).hides("zzz1", "yyy1", "k9x")
	if shown := w.masked(); !strings.Contains(shown, `"choice":"renew"`) {
		t.Errorf("the choice is hidden:\n%s", shown)
	}
}

// secretWorld is a world of vault.
type secretWorld struct{ *crashWorld }

func (w *secretWorld) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	return tool.Tool{Spec: spec, Run: func(_ context.Context, call tool.Call) (machine.Value, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runs[spec.Name+" "+call.Key+" "+machine.FormatValue(call.Args)]++
		return "token-1234", nil
	}}, nil
}

func (w *secretWorld) Engine(life int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	cfg.Observe = func(_ string, ev history.Event) {
		if data, _ := machine.EncodeValue(ev.Data); strings.Contains(string(data), "471147") || strings.Contains(string(data), "token-1234") {
			panic("an observer is shown " + string(data))
		}
	}
	w.kind = w
	return w.crashWorld.Engine(life, s, cfg)
}

func (w *secretWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.m})
	return id, err
}

func TestSecretSurvivesEveryCrash(t *testing.T) {
	m := compile(t, vault)
	res, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			return &secretWorld{&crashWorld{store: memory.New(memory.Options{}), m: m, runs: map[string]int{},
				model: func(int) machine.ModelCase { return machine.ModelNone }}}, nil
		},
		Answer: func(cw crash.World, q history.Question) engine.Reply {
			w := cw.(*secretWorld)
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case strings.Contains(q.Question, "471147") || strings.Contains(q.Question, "token-1234"):
				return engine.Reply{Text: "the question shows a secret: " + q.Question}
			case q.Kind == history.KindInDoubt:
				return engine.Reply{Verdict: history.Done, HasValue: true, Value: "token-1234"}
			case q.State == "who":
				return engine.Reply{Text: "A1001, 471147"}
			}
			return engine.Reply{Text: "yes"}
		},
		Check: func(cw crash.World) error {
			w := cw.(*secretWorld)
			rows, err := w.store.Events(context.Background(), "run", 0, 0)
			if err != nil {
				return err
			}
			evs, err := history.DecodeAll(rows, 0)
			if err != nil {
				return err
			}
			snap, err := history.Fold(history.New("run"), evs)
			if err != nil {
				return err
			}
			if snap.Status != store.Succeeded || snap.Vars["pin"] != "471147" || snap.Vars["copy"] != "token-1234" {
				return fmt.Errorf("the run ended as %s with %v", snap.Status, snap.Vars)
			}
			for _, call := range []string{`open run/2.0 {"pin":"471147"}`, `close run/3.0 {"token":"token-1234"}`} {
				if w.runs[call] > 1 {
					return fmt.Errorf("%s ran %d times", call, w.runs[call])
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Commits < 8 {
		t.Errorf("the run made only %d commits", res.Commits)
	}
}

// secretStates are the states of which the flows below are made; # is the number of the state, and of the variable that it
// fills.
var secretStates = []string{
	`{handler: ask, with: {question: "Your code?", into: code_#}, transitions: {answered: NEXT}}`,
	`{handler: ask, with: {question: "Which?", choices: {old: Old, new: {label: New, into: code_#}}}, transitions: {old: NEXT, new: NEXT}}`,
	`{handler: collect, limits: {turns: 4}, with: {fields: [order_#, code_#]}, transitions: {complete: NEXT, incomplete: NEXT}}`,
	`{handler: call, with: {tool: echo, args: {text: "{{ held }}"}, into: seen}, transitions: {success: {to: NEXT, set: {code_#: "{{ held }}"}}, fail: NEXT}}`,
	`{handler: call, with: {tool: echo, args: {text: "<{{ held }}>"}, into: seen, expect: 'result.other == 1'}, transitions: {success: NEXT, fail: {to: NEXT, set: {why: "{{ last.error.message }}"}}}}`,
	`{handler: call, with: {tool: find, args: {}, into: code_#}, transitions: {success: {to: NEXT, set: {held: "{{ code_# }}"}}, fail: NEXT}}`,
	`{handler: collect, limits: {turns: 3}, with: {fields: [order_#]}, transitions: {complete: NEXT, incomplete: NEXT}}`,
	`{handler: intent, with: {intents: {a: {description: Says a}, b: {description: Says b}}}, transitions: {success: NEXT, fail: NEXT}}`,
	`{handler: agent, limits: {turns: 3}, view: {vars: [seen, why], messages: all, attempts: true}, tools: [find, broken], with: {goal: "Say it.", into: why}, transitions: {success: NEXT, fail: NEXT}}`,
	`{handler: agent, view: {vars: [seen], attempts: true}, tools: [find], with: {goal: "Say: {{ why }}", outcomes: {left: L, right: R}}, transitions: {left: {to: NEXT, say: "{{ why }}"}, right: NEXT, fail: NEXT}}`,
	`{handler: ask, with: {question: "What of {{ why }}?", into: why}, transitions: {answered: NEXT}}`,
}

// collectsSecret is the state among them that collects a secret; private is what a human may say to it beside a value.
const (
	collectsSecret = 2
	private        = "private-77"
)

// secretFlow puts states together.
func secretFlow(kinds []int) string {
	vars, states := "  seen: {type: object}\n  why: {type: string}\n  held: {type: string, secret: true}\n", ""
	for i, kind := range kinds {
		text := strings.NewReplacer("#", fmt.Sprint(i), "NEXT", fmt.Sprintf("s%d", i+1)).Replace(secretStates[kind])
		states += fmt.Sprintf("  s%d: %s\n", i, text)
		vars += fmt.Sprintf("  code_%d: {type: string, secret: true, minLength: 6}\n  order_%d: {type: string, pattern: '^A[0-9]{4}$'}\n", i, i)
	}
	return "version: 1\nname: random\nvars:\n" + vars + `models: {default: {provider: fake}}
tools:
  echo: {description: Echo, effect: write, parameters: {text: {type: string}}, fake: {result: {type: object}}}
  find: {description: Find, effect: read, parameters: {}, fake: {}}
  broken: {description: Fails, effect: read, parameters: {}, fake: {}}
start: begin
states:
  begin: {handler: ask, with: {question: "The first code?", into: held}, transitions: {answered: s0}}
` + states + fmt.Sprintf("  s%d: {handler: end, with: {output: \"{{ why }}\"}}\n", len(kinds))
}

// chatty is a model that calls what it can, once for each request, and then answers.
type chatty struct {
	mu   sync.Mutex
	sent []model.Request
}

func (c *chatty) Generate(_ context.Context, req model.Request) (model.Response, error) {
	c.mu.Lock()
	c.sent = append(c.sent, req)
	n := len(c.sent)
	c.mu.Unlock()
	say := func(text string, calls ...model.Call) (model.Response, error) {
		return model.Response{Message: model.Message{Role: model.Assistant, Text: text, Calls: calls}, Finish: model.Stop}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	switch {
	case len(req.Tools) > 0 && n%2 == 1:
		return say("", model.Call{ID: fmt.Sprint(n), Name: req.Tools[n/2%len(req.Tools)].Name, Args: "{}"})
	case len(req.Tools) > 0 || req.Answer != nil:
		return say([]string{`{"outcome":"left"}`, `{"intent":"a"}`, `{}`}[n%3])
	}
	return say("You said: " + last.Text)
}

// Whatever a flow does with secrets, no model is sent one, and nothing that is shown of the run holds one.
func TestNoModelIsSentASecret(t *testing.T) {
	ever := 0
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SliceOfN(rapid.IntRange(0, len(secretStates)-1), 1, 9).Draw(rt, "states")
		value := rapid.SampledFrom([]string{"hunter-22", "123456", `q"uo\te`, "密码是一二三四", "a b c d e f", "<&>+/=%"}).Draw(rt, "secret")
		w := newWorld(t, secretFlow(kinds))
		m := &chatty{}
		w.model, w.models.model = machine.ModelReady, m
		w.tools.run["echo"] = func(args machine.Values) (machine.Value, error) {
			if args["text"] == nil {
				return nil, errors.New("nothing to echo")
			}
			return machine.Values{"said": args["text"], value: true}, nil
		}
		w.tools.run["find"] = func(machine.Values) (machine.Value, error) { return value, nil }
		w.tools.run["broken"] = func(machine.Values) (machine.Value, error) { return nil, fmt.Errorf("no access for %s", value) }
		w.start(`{}`)
		for range 60 {
			if w.snap.Status != store.Waiting {
				break
			}
			q := w.snap.Pending[0]
			text := rapid.SampledFrom([]string{"A1001", "good day", "old"}).Draw(rt, "answer")
			if q.Secret {
				text = rapid.SampledFrom([]string{value, value + " A1002", "new " + value}).Draw(rt, "secret answer")
			}
			switch {
			case q.ID == "1.0":
				text = value
			case q.Secret && kinds[int(q.State[1]-'0')] == collectsSecret:
				text = rapid.SampledFrom([]string{private, value + " " + private, "A1003 " + private}).Draw(rt, "private answer")
			}
			if err := w.e.Answer(context.Background(), "run", engine.Reply{Ask: q.ID, Text: text}); err != nil {
				if strings.Contains(err.Error(), value) {
					rt.Fatalf("the answer is refused with %v", err)
				}
				if err := w.e.Answer(context.Background(), "run", engine.Reply{Ask: q.ID, Text: "old"}); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.Bool().Draw(rt, "another process") {
				w.restart()
			}
			w.advance()
		}
		if w.snap.Stop != nil {
			rt.Fatalf("the run stopped: %+v", w.snap.Stop)
		}
		for i, req := range m.sent {
			ever++
			data, err := machine.EncodeValue(req.Messages)
			if err != nil {
				rt.Fatal(err)
			}
			quoted, _ := machine.EncodeValue(value)
			for _, msg := range req.Messages {
				if strings.Contains(msg.Text, value) || strings.Contains(msg.Text, private) || strings.Contains(string(data), strings.Trim(string(quoted), `"`)) {
					rt.Fatalf("request %d to the model holds the secret: %s\n%s", i, data, secretFlow(kinds))
				}
			}
		}
		for _, line := range strings.Split(w.masked(), "\n") {
			quoted, _ := machine.EncodeValue(value)
			if strings.Contains(line, strings.Trim(string(quoted), `"`)) {
				rt.Fatalf("the secret is shown in %s", line)
			}
		}
	})
	if ever == 0 {
		t.Error("no model was asked")
	}
}

// A question about a write in doubt, and the list of what would be done again, show no secret.
func TestSecretInDoubt(t *testing.T) {
	w := newWorld(t, vault)
	w.tools.run["open"] = func(machine.Values) (machine.Value, error) {
		return nil, &tool.Error{Status: tool.Unknown, Err: errors.New("the line went dead at 471147")}
	}
	w.start(`{}`).say("A1001, 471147").yes()
	if q := w.snap.Pending[0]; q.Kind != history.KindInDoubt || !strings.HasPrefix(q.Question, "open (pin = ***) was started") ||
		!strings.HasSuffix(q.Question, "the line went dead at ***") {
		t.Errorf("asks %q", q.Question)
	}
	w.hides("471147")
	err := w.e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true})
	var redo *engine.RedoError
	if !errors.As(err, &redo) || strings.Contains(err.Error(), "471147") || !strings.Contains(err.Error(), `open {"pin":"***"}`) {
		t.Errorf("starting anew: %v", err)
	}
	w.answer(engine.Reply{Verdict: history.Done, HasValue: true, Value: "tk-47"}).hides("tk-47").has("token", `"tk-47"`)
}

// A variable that becomes secret with another version of the flow is hidden from then on, and in what was before; one that
// was secret stays so.
func TestSecretInAnotherVersion(t *testing.T) {
	const flow = `
version: 1
name: change
vars: {a: {type: string, OLD}, b: {type: string, NEW}}
tools: {look: {description: Look, effect: read, parameters: {}, fake: {}}}
start: first
states:
  first: {handler: ask, with: {question: A, into: a}, transitions: {answered: second}}
  second: {handler: ask, with: {question: B, into: b}, transitions: {answered: third}}
  third: {handler: call, with: {tool: look, args: {}}, transitions: {success: done, fail: done}}
  done: {handler: end}
`
	w := newWorld(t, strings.NewReplacer("OLD", "secret: true", "NEW", "minLength: 1").Replace(flow))
	w.tools.run["look"] = func(machine.Values) (machine.Value, error) { return nil, tool.Unavailablef("it is down") }
	w.start(`{}`).say("qwertz1").say("b-17").status("stopped outage").hides("qwertz1")
	if !strings.Contains(w.masked(), "b-17") {
		t.Error("what is no secret is hidden")
	}
	w.m = compile(t, strings.NewReplacer("OLD", "minLength: 1", "NEW", "secret: true, minLength: 9").Replace(flow))
	err := w.e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: w.m})
	if err == nil || strings.Contains(err.Error(), "b-17") || !strings.Contains(err.Error(), "variable b: expected at least 9") {
		t.Errorf("a switch to a flow that does not take the value: %v", err)
	}
	w.m = compile(t, strings.NewReplacer("OLD", "minLength: 1", "NEW", "secret: true").Replace(flow))
	if err := w.e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: w.m}); err != nil {
		t.Fatal(err)
	}
	w.tools.run["look"] = func(machine.Values) (machine.Value, error) { return "fine", nil }
	w.advance().status("succeeded").has("b", `"b-17"`).hides("qwertz1", `"value":"b-17","secret"`, `"b":"b-17"`)
}

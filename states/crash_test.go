package states

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model/script"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// everyHandler is a flow in which each handler does its work by rules, with questions, reads and writes. collect would ask
// a model that is ready, and must not care in the lives that differ in their keys.
const everyHandler = `
version: 1
name: every
inputs: {message: {type: string}}
vars:
  wish: {type: string, enum: [refund, exchange]}
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: the order number}
  pieces: {type: integer, minimum: 1, maximum: 9}
  colour: {type: string}
  size: {type: integer}
  row: {type: object}
  todo: {type: object}
  remark: {type: string}
  answer: {type: string}
  n: {type: integer, default: 0}
models: {default: {provider: fake}}
tools:
  look: {description: Look, effect: read, parameters: {id: {type: string}}, fake: {result: {type: object}}}
  pay: {description: Pay, effect: write, parameters: {id: {type: string}}, fake: {result: {type: object}}}
  note: {description: Note, effect: idempotent, parameters: {id: {type: string}}, fake: {result: {type: object}}}
interrupts:
  person: {keywords: [operator], to: nobody}
start: understand
states:
  understand:
    handler: intent
    with: {from: message, into: wish, intents: {refund: {description: R, keywords: [refund]}, exchange: {description: E, keywords: [exchange]}}}
    transitions: {success: details, fail: nobody}
  details:
    handler: collect
    model: none
    with: {from: message, fields: [order_id, pieces]}
    transitions: {complete: pick, incomplete: nobody}
  pick:
    handler: ask
    with: {question: "Which colour?", into: colour, choices: {red: Red, blue: {label: Blue, into: size}}}
    transitions: {red: sure, blue: sure}
  sure:
    handler: confirm
    with: {question: "Sure?", comment: remark}
    transitions:
      confirmed: first
      rejected: {to: sure, say: "You said {{ remark }}."}
  first:
    handler: call
    with: {tool: pay, args: {id: "{{ order_id }}"}, expect: 'result.ok == true', into: row}
    transitions: {success: propose, fail: nobody}
  propose:
    handler: plan
    with:
      into: todo
      for: carry_out
      confirm: true
      goal: "{{ wish }} {{ order_id }}"
      steps:
        - {id: look, tool: look, args: {id: "{{ order_id }}"}}
        - {id: pay, tool: pay, args: {id: "{{ order_id }}-2"}}
        - {id: note, tool: note, args: {id: "{{ order_id }}"}}
    transitions: {confirmed: carry_out, rejected: details, fail: nobody}
  carry_out:
    handler: execute
    tools: [look, pay, note]
    with: {from: todo, into: answer, stop_after: 2}
    transitions: {success: count_up, more: carry_out, fail: nobody}
  count_up:
    handler: route
    with: {set: {n: '{{ n + 1 }}'}}
    transitions: {next: [{when: 'n < 3', to: count_up}, {to: done}]}
  done: {handler: end, with: {output: {answer: "{{ answer }}", n: "{{ n }}"}}}
  nobody: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
`

// crashWorld is a world of the flow above. Its calls are counted by their idempotency key.
type crashWorld struct {
	store *memory.Store
	m     *machine.Machine
	model func(life int) machine.ModelCase

	answers *script.Script // nil: no model is asked
	message string
	kind    tool.Kind // of the tools; nil: the world itself

	mu   sync.Mutex
	runs map[string]int
}

func (w *crashWorld) Spec() machine.ToolKind { return (&fakeKind{}).Spec() }

func (w *crashWorld) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	return tool.Tool{Spec: spec, Run: func(_ context.Context, call tool.Call) (machine.Value, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runs[spec.Name+" "+call.Key]++
		return machine.Values{"ok": true}, nil
	}}, nil
}

func (w *crashWorld) Close() error       { return nil }
func (w *crashWorld) Store() store.Store { return w.store }

func (w *crashWorld) Engine(life int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg.Store, cfg.Handlers, cfg.Tools = s, Builtin(), map[string]tool.Kind{"fake": w}
	if w.kind != nil {
		cfg.Tools["fake"] = w.kind
	}
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.m, nil }
	cfg.Now = func() time.Time { return now }
	cfg.NewID = func() string { return "run" }
	cfg.Models = &fakeModels{ready: func() machine.ModelCase { return w.model(life) }, answer: w.answers}
	return engine.New(cfg)
}

func (w *crashWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.m, Inputs: machine.Values{"message": w.message}})
	return id, err
}

// answerAll answers each question of the flow; a write in doubt is settled by what the world has seen of it.
func answerAll(cw crash.World, q history.Question) engine.Reply {
	w := cw.(*crashWorld)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case q.Kind == history.KindInDoubt && w.runs[q.Tool+" run/"+strings.TrimSuffix(q.ID, "/in_doubt")] > 0:
		return engine.Reply{Verdict: history.Done, HasValue: true, Value: machine.Values{"ok": true}}
	case q.Kind == history.KindInDoubt:
		return engine.Reply{Verdict: history.NotDone}
	case q.State == "details" && w.answers != nil:
		return engine.Reply{Text: "the thousand and first of A"}
	case q.State == "details" && strings.Contains(q.Question, "order"):
		return engine.Reply{Text: "it is A1001"}
	case q.State == "details":
		return engine.Reply{Text: "3"}
	case len(q.Choices) > 0:
		return engine.Reply{Text: "blue"}
	case q.State == "pick":
		return engine.Reply{Text: "42"}
	case q.State == "sure" && q.ID == "4.0":
		return engine.Reply{Text: "no, not yet"}
	}
	return engine.Reply{Text: "yes"}
}

// Every handler survives the loss of its process anywhere, also when a key is set or lost between the two halves: same
// end, same history, and each write done once.
func TestEveryHandlerSurvivesEveryCrash(t *testing.T) {
	m := compile(t, everyHandler)
	for name, model := range map[string]func(life int) machine.ModelCase{
		"the same environment": func(int) machine.ModelCase { return machine.ModelMissing },
		"a key is set": func(life int) machine.ModelCase {
			return []machine.ModelCase{machine.ModelMissing, machine.ModelReady}[life]
		},
		"a key is lost": func(life int) machine.ModelCase {
			return []machine.ModelCase{machine.ModelReady, machine.ModelMissing}[life]
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := crash.Run(context.Background(), crash.Scenario{
				World: func() (crash.World, error) {
					return &crashWorld{store: memory.New(memory.Options{}), m: m, model: model, message: "a refund, please", runs: map[string]int{}}, nil
				},
				Answer:   answerAll,
				Changing: true,
				Check:    succeeded,
			})
			if err != nil {
				t.Fatal(err)
			}
			if res.Commits < 30 {
				t.Errorf("the run made only %d commits: not every handler did its work", res.Commits)
			}
		})
	}
}

// everyModel is a flow in which a model has a part in each handler that can have one.
const everyModel = `
version: 1
name: models
inputs: {message: {type: string}}
vars:
  wish: {type: string, enum: [refund, exchange]}
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: the order number}
  pieces: {type: integer, minimum: 1, maximum: 9}
  paid: {type: boolean}
  todo: {type: object}
  answer: {type: string}
models: {default: {provider: fake}}
tools:
  look: {description: Look, effect: read, parameters: {id: {type: string}}, fake: {}}
  pay: {description: Pay, effect: write, parameters: {id: {type: string}}, fake: {}}
start: understand
states:
  understand:
    handler: intent
    with: {into: wish, intents: {refund: {description: R, keywords: [refund]}, exchange: {description: E, keywords: [exchange]}}}
    transitions: {success: details, fail: nobody}
  details:
    handler: collect
    with: {from: message, fields: [order_id, pieces]}
    transitions: {complete: first, incomplete: nobody}
  first:
    handler: agent
    tools: [look, pay]
    limits: {turns: 2}
    with: {goal: "Pay {{ order_id }}", into: paid, outcomes: {ok: It is paid, bad: It is not}}
    transitions: {ok: propose, bad: nobody, fail: nobody}
  propose:
    handler: plan
    with: {into: todo, for: carry_out, confirm: true, goal: "{{ wish }} {{ order_id }}"}
    transitions: {confirmed: carry_out, rejected: details, fail: nobody}
  carry_out:
    handler: execute
    tools: [look, pay]
    limits: {turns: 2}
    with: {from: todo, into: answer}
    transitions: {success: done, fail: nobody}
  done: {handler: end, with: {output: "{{ answer }}"}}
  nobody: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
`

// modelAnswers make the run of everyModel: with answers that are asked for again, calls beside each other, turns that are
// used up.
var modelAnswers = []string{
	`{state: understand, answer: {intent: money}}`,
	`{state: understand, answer: {intent: refund}}`,
	`{state: details, answer: {order_id: null, pieces: 2}}`,
	`{state: details, answer: {order_id: A1001}}`,
	`{state: first, text: I look and pay., calls: [{tool: look, args: {id: A1001}}, {tool: pay, args: {id: A1001}}]}`,
	`{state: first, calls: [{tool: look, args: {id: A1001}}, {tool: finish, args: {outcome: ok, answer: true}}]}`,
	`{state: first, answer: {outcome: ok, answer: true}}`,
	`{state: propose, answer: {steps: [{tool: pay}]}}`,
	`{state: propose, answer: {goal: All, steps: [{tool: look, args: {id: A1001}}, {description: Pay the rest}, {description: Say so}]}}`,
	`{state: carry_out, calls: [{tool: pay, args: {id: the rest}}, {tool: nothing, args: {}}]}`,
	`{state: carry_out, text: The rest is paid.}`,
	`{state: carry_out, text: I said so.}`,
}

// What a model has answered it is not asked again after a crash, and what it called is not called again.
func TestEveryModelAnswerSurvivesEveryCrash(t *testing.T) {
	m := compile(t, everyModel)
	answers := parseScript(t, modelAnswers...)
	res, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			return &crashWorld{store: memory.New(memory.Options{}), m: m, answers: answers, message: "it is broken", runs: map[string]int{},
				model: func(int) machine.ModelCase { return machine.ModelReady }}, nil
		},
		Answer: answerAll,
		Check:  succeeded,
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Commits < 25 {
		t.Errorf("the run made only %d commits: not every handler did its work", res.Commits)
	}
}

// succeeded says whether the run came to its good end and wrote twice.
func succeeded(cw crash.World) error {
	w := cw.(*crashWorld)
	rows, err := w.store.Runs(context.Background(), store.Filter{Status: []store.Status{store.Succeeded}})
	if err != nil || len(rows) != 1 || rows[0].State != "done" {
		return fmt.Errorf("the run did not succeed: %v %v", rows, err)
	}
	return doneOnce(w.runs)
}

// doneOnce says whether the two writes ran once each.
func doneOnce(runs map[string]int) error {
	writes := 0
	for key, n := range runs {
		if strings.HasPrefix(key, "pay ") {
			writes++
			if n != 1 {
				return fmt.Errorf("%s ran %d times", key, n)
			}
		}
	}
	if writes != 2 {
		return fmt.Errorf("%d writes ran, want 2", writes)
	}
	return nil
}

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
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// everyHandler is a flow in which each handler does its work by rules, with questions, reads and writes.
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
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.m, nil }
	cfg.Now = func() time.Time { return now }
	cfg.NewID = func() string { return "run" }
	cfg.Model = func(*machine.Machine, *machine.State) machine.ModelCase { return w.model(life) }
	return engine.New(cfg)
}

func (w *crashWorld) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.m, Inputs: machine.Values{"message": "a refund, please"}})
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
					return &crashWorld{store: memory.New(memory.Options{}), m: m, model: model, runs: map[string]int{}}, nil
				},
				Answer:   answerAll,
				Changing: true,
				Check: func(cw crash.World) error {
					w := cw.(*crashWorld)
					rows, err := w.store.Runs(context.Background(), store.Filter{Status: []store.Status{store.Succeeded}})
					if err != nil || len(rows) != 1 || rows[0].State != "done" {
						return fmt.Errorf("the run did not succeed: %v %v", rows, err)
					}
					return doneOnce(w.runs)
				},
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

package states

import (
	"fmt"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const draftFlow = `
version: 1
name: draft
vars:
  order_id: {type: string, default: A1001}
  todo: {type: object}
  remark: {type: string, default: ""}
  answer: {type: string}
models: {default: {provider: fake}}
tools:
  lookup: {description: Look up an order., effect: read, parameters: {id: {type: string}, limit: {type: integer, minimum: 1, default: 5}}, fake: {}}
  refund: {description: Refund an order., effect: write, parameters: {id: {type: string}}, fake: {}}
  other: {description: Of no use., effect: read, fake: {}}
start: propose
states:
  propose:
    handler: plan
    view: {vars: [remark]}
    with: {into: todo, for: carry_out, confirm: true, comment: remark, goal: "Refund {{ order_id }}"}
    transitions: {confirmed: carry_out, rejected: propose, fail: lost}
  carry_out:
    handler: execute
    MODEL
    tools: [lookup, refund]
    limits: {turns: 2}
    with: {from: todo, into: answer}
    transitions: {success: done, fail: [{when: 'visits("carry_out") < 3', to: propose}, {to: lost}]}
  waste: {handler: call, with: {tool: other}, transitions: {else: done}}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  done: {handler: end}
`

func draftWorld(t testing.TB, answers ...string) *world {
	return draftWorldWith(t, "", answers...)
}

// draftWorldWith gives the state that carries the plan out a line more.
func draftWorldWith(t testing.TB, line string, answers ...string) *world {
	flow := strings.Replace(draftFlow, "    MODEL\n", line, 1)
	flow = strings.Replace(flow, "fail: lost}", "fail: [{when: 'order_id == \"waste\"', to: waste}, {to: lost}]}", 1)
	w := newWorld(t, flow)
	w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) { return "paid", nil }
	w.tools.run["refund"] = func(machine.Values) (machine.Value, error) { return "refunded", nil }
	return w.scripted(answers...)
}

// draft writes the answer of a model that plans.
func draft(goal string, steps ...string) string {
	return fmt.Sprintf(`{state: propose, answer: {goal: %q, steps: [%s]}}`, goal, strings.Join(steps, ", "))
}

// onVisit binds an answer to a visit of its state.
func onVisit(visit int, answer string) string {
	return fmt.Sprintf("{visit: %d, ", visit) + strings.TrimPrefix(answer, "{")
}

func TestPlanIsMadeByAModel(t *testing.T) {
	w := draftWorld(t, draft("Give the money back",
		`{id: look, description: Look it up, tool: lookup, args: {id: A1001, limit: "7"}}`,
		`{tool: refund, args: {id: A1001}, description: null}`,
		`{description: " Tell the customer ", tool: null, args: null}`),
		`{state: carry_out, text: I told them.}`)
	w.start(`{}`).asks("The plan: Give the money back\n1. Look it up (lookup: id = A1001, limit = 7)\n2. refund: id = A1001\n3. Tell the customer\nShall I go ahead?")
	w.has("todo", todo("Give the money back",
		`{"args":{"id":"A1001","limit":7},"description":"Look it up","id":"look","result":null,"status":"pending","tool":"lookup"}`,
		`{"args":{"id":"A1001"},"description":"","id":"step_2","result":null,"status":"pending","tool":"refund"}`,
		`{"description":"Tell the customer","id":"step_3","result":null,"status":"pending"}`)).called()
	w.yes().path("propose carry_out done").called(`lookup{"id":"A1001","limit":7}`, `refund{"id":"A1001"}`).
		has("answer", `"Look it up: paid\nrefund: refunded\nTell the customer: I told them."`).asked(2).offered(0, "")
}

// A plan that does not check is asked for again with all that is wrong, and then fails.
func TestPlanOfAModelThatDoesNotCheck(t *testing.T) {
	bad := draft("x", `{tool: lookpu, args: {id: A1}}`, `{tool: other}`, `{tool: lookup, args: {limit: 0}}`, `{id: a, description: D}`, `{id: a, description: D}`,
		`{id: b, description: " "}`, `{args: {id: A1}, description: D}`)
	good := draft("", `{tool: lookup, args: {id: A1}}`)
	w := draftWorld(t, bad, good).start(`{}`).asks("The plan: Refund A1001\n1. lookup: id = A1, limit = 5\nShall I go ahead?")
	told := w.newest(1)
	for _, want := range []string{
		`step 1: there is no tool "lookpu" here (did you mean lookup?)`, `step 2: there is no tool "other" here`, "step 3: lookup was not run: ",
		"step 5: the id a stands there twice", "step 6: it names no tool, so its description must say what is to be done", "step 7: it has args and names no tool",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the model is told\n%s\nwithout %q", told, want)
		}
	}
	if strings.Contains(told, "step 4") {
		t.Errorf("the model is told of a step that is right: %s", told)
	}
	draftWorld(t, bad, bad, bad).start(`{}`).path("propose lost").last("fail invalid").has("todo", "").asked(3)
	draftWorld(t, draft("x"), draft("x"), draft("x")).start(`{}`).path("propose lost").last("fail invalid")
	many := draft("x", strings.TrimSuffix(strings.Repeat(`{tool: lookup, args: {id: A1}}, `, 21), ", "))
	if w := draftWorld(t, many, good).start(`{}`); !strings.Contains(w.newest(1), "the plan has 21 steps; give at most 20") {
		t.Errorf("the model is told %q", w.newest(1))
	}
	draftWorld(t, draft("x", strings.TrimSuffix(strings.Repeat(`{tool: lookup, args: {id: A1}}, `, 20), ", "))).start(`{}`).asked(1).status("waiting")
	draftWorld(t, `{state: propose, error: blocked}`).start(`{}`).path("propose lost").last("fail blocked").has("todo", "")
	draftWorld(t, `{state: propose, text: (cut)}`, `{state: propose, text: (cut)}`, `{state: propose, text: (cut)}`).start(`{}`).last("fail cut")
}

// Where nobody carries out what names no tool, each step must name one.
func TestPlanOfAModelForAStateWithoutOne(t *testing.T) {
	w := draftWorldWith(t, "    model: none\n", draft("x", `{description: Do it}`), draft("x", `{tool: lookup, args: {id: A1}}`)).start(`{}`).status("waiting").asked(2)
	if got := w.newest(1); !strings.Contains(got, "step 1: it must name a tool: lookup, refund") {
		t.Errorf("the model is told %q", got)
	}
	if got := w.task(0); !strings.Contains(got, "Each step names one of these tools, with args that fit it:\n- lookup: ") || strings.Contains(got, "description of what") {
		t.Errorf("the task is %q", got)
	}
}

func TestPlanOfAModelIsMadeAgain(t *testing.T) {
	w := draftWorld(t,
		draft("x", `{tool: lookup, args: {id: A1}}`, `{description: Write a letter}`, `{tool: refund, args: {id: A1}}`),
		`{state: carry_out, text: It is written.}`,
		// Without ids what is done is known by what it does. A new step does not take over the result of another.
		onVisit(2, draft("y", `{description: Write another letter}`, `{tool: lookup, args: {id: A1}}`, `{description: Write a letter}`, `{tool: refund, args: {id: A1}}`)),
		`{state: carry_out, visit: 2, text: That one too.}`)
	tries := 0
	w.tools.run["refund"] = func(machine.Values) (machine.Value, error) {
		if tries++; tries == 1 {
			return nil, tool.Failf("locked", "the order is locked")
		}
		return "refunded", nil
	}
	w.start(`{}`).yes().path("propose carry_out propose").last("fail locked")
	w.asks("The plan: y\n1. Write another letter\n2. lookup: id = A1, limit = 5 - done already\n3. Write a letter - done already\n4. refund: id = A1\nShall I go ahead?")
	if got := w.task(2); !strings.Contains(got, `The plan so far: {"goal":"x","steps":[{`) || !strings.Contains(got, `"status":"done"`) {
		t.Errorf("the second task is %q", got)
	}
	w.yes().status("succeeded").called(`lookup{"id":"A1","limit":5}`, `refund{"id":"A1"}`, `refund{"id":"A1"}`).asked(4)
	var ids []string
	steps, _ := readSteps(w.snap.Vars["todo"])
	for _, s := range steps {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "step_3 step_1 step_2 step_4" {
		t.Errorf("ids %s", got)
	}
}

// A no is told to the model by the view.
func TestPlanOfAModelIsRejected(t *testing.T) {
	w := draftWorld(t, draft("x", `{tool: refund, args: {id: A1}}`), onVisit(2, draft("y", `{tool: lookup, args: {id: A1}}`))).start(`{}`).no("only look it up")
	w.asks("The plan: y\n1. lookup: id = A1, limit = 5\nShall I go ahead?")
	if text := w.models.sent[1].Messages[0].Text; !strings.Contains(text, `remark: "only look it up"`) {
		t.Errorf("the model is sent %q", text)
	}
	if text := w.task(1); !strings.Contains(text, `The human rejected a plan and said: "only look it up"`) {
		t.Errorf("the second task is %q", text)
	}
	w.yes().status("succeeded").called(`lookup{"id":"A1","limit":5}`)
}

func TestExecuteThinks(t *testing.T) {
	plan := draft("Help", `{id: a, tool: lookup, args: {id: A1}}`, `{id: b, description: See to it}`, `{id: c, description: Say goodbye}`)
	look := `{state: carry_out, calls: [{tool: lookup, args: {id: A2}}]}`
	w := draftWorld(t, plan, look, `{state: carry_out, text: Seen to.}`, `{state: carry_out, text: Bye.}`).start(`{}`).yes().path("propose carry_out done")
	w.called(`lookup{"id":"A1","limit":5}`, `lookup{"id":"A2","limit":5}`).has("answer", `"lookup: paid\nSee to it: Seen to.\nSay goodbye: Bye."`)
	w.offered(1, "lookup refund").offered(3, "lookup refund")
	// What came of the steps before is shown.
	text := w.models.sent[3].Messages[0].Text
	if !strings.Contains(text, "The step (c): Say goodbye") || !strings.Contains(text, `"result":"Seen to.","status":"done"`) {
		t.Errorf("the model is sent %q", text)
	}
	// Turns are counted for each step.
	w = draftWorld(t, plan, look, look, `{state: carry_out, text: Seen to.}`, look, look, `{state: carry_out, text: Bye.}`).start(`{}`).yes().status("succeeded").asked(7)
	w.offered(3, "").offered(6, "")
}

func TestExecuteThatComesToNothing(t *testing.T) {
	plan := draft("Help", `{id: a, tool: lookup, args: {id: A1}}`, `{id: b, description: See to it}`, `{id: c, description: Say goodbye}`)
	look := `{state: carry_out, calls: [{tool: lookup, args: {id: A2}}]}`
	w := draftWorld(t, plan, look, look, look, look, look).start(`{}`).yes().path("propose carry_out propose").last("fail turns").has("answer", "")
	if notes := w.snap.Attempts["carry_out"][0].Notes; len(notes) != 1 || notes[0] != "step b failed: the model gave no answer in 2 turns, nor when it was asked to conclude" {
		t.Errorf("notes %q", notes)
	}
	steps, _ := readSteps(w.snap.Vars["todo"])
	if steps[0].Status != statusDone || steps[1].Status != statusPending {
		t.Errorf("made again, the plan is %v", w.snap.Vars["todo"])
	}
	w = draftWorld(t, plan, `{state: carry_out, error: blocked}`).start(`{}`).yes().path("propose carry_out propose").last("fail blocked")
	// An outage is no failure of the step: the run stops, and goes on where it was.
	w = draftWorld(t, plan, `{state: carry_out, error: server}`).start(`{}`).yes().path("propose carry_out").status("stopped outage")
	w.scripted(`{state: carry_out, text: Seen to.}`, `{state: carry_out, text: Bye.}`)
	w.takeUp().path("propose carry_out done").called(`lookup{"id":"A1","limit":5}`)
}

// Only a step that a model has to do needs one.
func TestExecuteNeedsAModelLate(t *testing.T) {
	w := draftWorld(t, draft("Help", `{id: a, tool: lookup, args: {id: A1}}`, `{id: b, description: See to it}`)).start(`{}`)
	w.model = machine.ModelMissing
	w.yes().status("stopped no_key").called(`lookup{"id":"A1","limit":5}`)
	w.model = machine.ModelReady
	w.scripted(`{state: carry_out, text: Seen to.}`)
	w.takeUp().status("succeeded").called(`lookup{"id":"A1","limit":5}`)
}

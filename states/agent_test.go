package states

import (
	"slices"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const agentFlow = `
version: 1
name: help
inputs: {message: {type: string, default: "Where is A1001?"}}
vars:
  answer: {type: string}
  colour: {type: string, enum: [red, dark blue]}
  size: {type: integer, minimum: 1, default: 3}
  code: {type: string, maxLength: 9}
  form: {type: object, properties: {city: {type: string}}, required: [city], additionalProperties: false}
models: {default: {provider: fake}}
tools:
  look: {description: Look up an order, effect: read, parameters: {id: {type: string}}, fake: {}}
  pay: {description: Pay, effect: write, parameters: {id: {type: string}}, fake: {}}
  hidden: {description: Of another state, effect: read, parameters: {id: {type: string}}, fake: {}}
start: work
states:
  work:
    handler: agent
    TOOLS
    limits: {turns: 2}
    with: {goal: "Answer: {{ message }}", WITH}
    transitions: {ROUTES, fail: [{when: 'size == 100', to: other}, {to: lost}]}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  done: {handler: end}
  other: {handler: end}
`

func agentWorld(t testing.TB, with, routes, tools string) *world {
	toolsLine := ""
	if tools != "" {
		toolsLine = "tools: [" + tools + "]"
	}
	w := newWorld(t, strings.NewReplacer("WITH", with, "ROUTES", routes, "TOOLS", toolsLine).Replace(agentFlow))
	w.tools.run["look"] = func(args machine.Values) (machine.Value, error) {
		if args["id"] == machine.Value("A9") {
			return nil, tool.Failf("none_found", "no such order")
		}
		return machine.Values{"status": "sent"}, nil
	}
	w.tools.run["pay"] = func(machine.Values) (machine.Value, error) { return "paid", nil }
	return w
}

func TestAgentAnswersInText(t *testing.T) {
	w := agentWorld(t, "into: answer", "success: done", "look, pay").scripted(
		`{state: work, text: I look., calls: [{tool: look, args: {id: A1001}}, {tool: look, args: {id: A9}}]}`,
		`{state: work, text: "<think>so</think>It was sent."}`)
	w.start(`{}`).path("work done").has("answer", `"It was sent."`).asked(2)
	if got := slices.Sorted(slices.Values(w.tools.calls)); !slices.Equal(got, []string{`look{"id":"A1001"}`, `look{"id":"A9"}`}) { // reads run beside each other
		t.Errorf("calls %q", got)
	}
	w.offered(0, "look pay").offered(1, "look pay")
	if got := w.newest(1); got != "The call was not successful (failed): no such order" {
		t.Errorf("the model reads %q", got)
	}
	if want := "Reach the goal below. When it is reached, give your answer.\n\nGoal: Answer: Where is A1001?"; w.task(0) != want || w.task(1) != want {
		t.Errorf("tasks %q and %q", w.task(0), w.task(1))
	}
	// Without into it is only said.
	w = agentWorld(t, "", "success: done", "").scripted(`{state: work, text: Hello.}`).start(`{}`).path("work done").offered(0, "")
	if said := w.snap.Talk.Messages[len(w.snap.Talk.Messages)-1]; said.Role != history.RoleAssistant || said.Text != "Hello." {
		t.Errorf("the conversation ends with %+v", said)
	}
}

func TestAgentReadsTextAsTheVariableHoldsIt(t *testing.T) {
	agentWorld(t, "into: colour", "success: done", "").scripted(`{state: work, text: " Dark Blue. "}`).start(`{}`).path("work done").has("colour", `"dark blue"`)
	agentWorld(t, "into: colour", "success: done", "").scripted(`{state: work, text: green}`, `{state: work, text: green}`, `{state: work, text: green}`).
		start(`{}`).path("work lost").last("fail invalid").has("colour", "")
}

func TestAgentAnswersWithAnObject(t *testing.T) {
	outcomes := "outcomes: {solved: The question is answered, unclear: It cannot be answered}"
	tests := []struct {
		name, with, routes, tools string
		answers                   []string
		path, last, vars          string
	}{
		{"a number", "into: size", "success: done", "", []string{`{state: work, answer: {answer: "5"}}`}, "work done", "success", "size=5"},
		{"a start value is not filled in", "into: size", "success: done", "",
			[]string{`{state: work, answer: {}}`, `{state: work, answer: {answer: null}}`, `{state: work, answer: {answer: 0}}`}, "work lost", "fail invalid", "size=3"},
		{"an object", "into: form", "success: done", "", []string{`{state: work, answer: {answer: {city: Rome}}}`}, "work done", "success", `form={"city":"Rome"} size=3`},
		{"several variables", "into: [answer, size]", "success: done", "", []string{`{state: work, answer: {answer: {answer: "yes", size: 7}}}`},
			"work done", "success", "answer=yes size=7"},
		{"one of them is missing", "into: [answer, size]", "success: done", "",
			[]string{`{state: work, answer: {answer: {answer: "yes"}}}`, `{state: work, answer: {answer: {answer: "yes", size: 1}}}`}, "work done", "success", "answer=yes size=1"},
		{"an outcome", outcomes, "solved: done, unclear: other", "", []string{`{state: work, answer: {outcome: " Unclear "}}`}, "work other", "unclear", "size=3"},
		{"an outcome that there is not", outcomes, "solved: done, unclear: other", "",
			[]string{`{state: work, answer: {outcome: success}}`, `{state: work, answer: {outcome: [solved]}}`, `{state: work, answer: {}}`}, "work lost", "fail invalid", "size=3"},
		{"outcome and answer", outcomes + ", into: answer", "solved: done, unclear: other", "",
			[]string{`{state: work, answer: {outcome: solved, answer: It was sent}}`}, "work done", "solved", "answer=It was sent size=3"},
		{"outcome without answer", outcomes + ", into: answer", "solved: done, unclear: other", "",
			[]string{`{state: work, answer: {outcome: solved}}`, `{state: work, answer: {outcome: unclear, answer: "Which one?"}}`}, "work other", "unclear", "answer=Which one? size=3"},
		{"finish", outcomes + ", into: answer", "solved: done, unclear: other", "look",
			[]string{`{state: work, text: I look., calls: [{tool: look, args: {id: A1}}]}`, `{state: work, text: I know., calls: [{tool: finish, args: {outcome: solved, answer: sent}}]}`},
			"work done", "solved", "answer=sent size=3"},
		{"text that is the object", outcomes, "solved: done, unclear: other", "look",
			[]string{"{state: work, text: '```json\n\n    {\"outcome\": \"solved\"}\n\n    ```'}"}, "work done", "solved", "size=3"},
		{"blocked", outcomes, "solved: done, unclear: other", "look", []string{`{state: work, error: blocked}`}, "work lost", "fail blocked", "size=3"},
		{"cut", outcomes, "solved: done, unclear: other", "look", []string{`{state: work, text: (cut)}`, `{state: work, text: (cut)}`, `{state: work, text: (cut)}`},
			"work lost", "fail cut", "size=3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := agentWorld(t, test.with, test.routes, test.tools).scripted(test.answers...).start(`{}`).path(test.path).last(test.last).asked(len(test.answers))
			var vars []string
			for _, name := range machine.SortedNames(w.snap.Vars) {
				if name != "message" {
					vars = append(vars, name+"="+machine.FormatValue(w.snap.Vars[name]))
				}
			}
			if got := strings.Join(vars, " "); got != test.vars {
				t.Errorf("variables %s, want %s", got, test.vars)
			}
		})
	}
}

// Whatever a call comes to, the model reads it and goes on.
func TestAgentReadsWhatItsCallsCameTo(t *testing.T) {
	w := agentWorld(t, "into: answer", "success: done", "look, pay").scripted(
		`{state: work, calls: [{tool: nothing, args: {}}, {tool: hidden, args: {id: A1}}, {tool: look, args: {}}, {tool: pay, args: {id: A1}}]}`,
		`{state: work, text: Done.}`)
	w.tools.run["pay"] = func(machine.Values) (machine.Value, error) { return nil, tool.Unavailablef("the bank is closed") }
	w.start(`{}`).path("work done").called(`pay{"id":"A1"}`)
	var results []string
	for _, msg := range w.models.sent[1].Messages {
		if msg.Role == "tool" {
			results = append(results, msg.Text)
		}
	}
	if len(results) != 4 {
		t.Fatalf("%d results: %q", len(results), results)
	}
	for i, want := range []string{`there is no tool "nothing" here`, `there is no tool "hidden" here`, "id", "the bank is closed"} {
		if !strings.Contains(results[i], want) {
			t.Errorf("result %d is %q, want something of %q", i, results[i], want)
		}
	}
}

func TestAgentWhoseTurnsAreUsedUp(t *testing.T) {
	call := `{state: work, calls: [{tool: look, args: {id: A1}}]}`
	w := agentWorld(t, "into: answer", "success: done", "look").scripted(call, call, `{state: work, text: It was sent.}`)
	w.start(`{}`).path("work done").has("answer", `"It was sent."`).asked(3).offered(1, "look").offered(2, "").called(`look{"id":"A1"}`, `look{"id":"A1"}`)
	if got := w.task(2); got != w.task(1)+"\n\nNo tool can be called any more. Give your answer now, from what you know." {
		t.Errorf("the last task is %q", got)
	}
	// One that goes on calling has no answer, and nothing of it runs.
	w = agentWorld(t, "into: answer", "success: done", "look").scripted(call, call, call, call, call)
	w.start(`{}`).path("work lost").last("fail turns").has("answer", "").asked(5).called(`look{"id":"A1"}`, `look{"id":"A1"}`)
	if got := w.snap.Finish.Output; got != machine.Value("the model gave no answer in 2 turns, nor when it was asked to conclude") {
		t.Errorf("output %q", got)
	}
	// A block is told as what it is.
	agentWorld(t, "into: answer", "success: done", "look").scripted(call, call, `{state: work, error: blocked}`).start(`{}`).last("fail blocked")
	// The last answer is checked like any other.
	agentWorld(t, "into: size", "success: done", "look").scripted(call, call, `{state: work, answer: {answer: many}}`, `{state: work, answer: {answer: 4}}`).
		start(`{}`).path("work done").has("size", "4")
}

func TestAgentAsksForApproval(t *testing.T) {
	flow := strings.NewReplacer("WITH", "into: answer", "ROUTES", "success: done", "TOOLS", "tools: [pay]",
		"description: Pay,", "description: Pay, approval: required,").Replace(agentFlow)
	for _, yes := range []bool{true, false} {
		w := newWorld(t, flow).scripted(`{state: work, calls: [{tool: pay, args: {id: A1}}]}`, `{state: work, text: Done.}`)
		w.tools.run["pay"] = func(machine.Values) (machine.Value, error) { return "paid", nil }
		w.start(`{}`).asks("Approve pay (id = A1)?").restart()
		w.advance().answer(engine.Reply{Yes: &yes}).path("work done").has("answer", `"Done."`).asked(2)
		if got := len(w.tools.calls) == 1; got != yes {
			t.Errorf("approved: %v, the calls are %q", yes, w.tools.calls)
		}
	}
}

func TestAgentNeedsAModel(t *testing.T) {
	agentWorld(t, "into: answer", "success: done", "look").start(`{}`).status("stopped no_key").path("work")
	flow := func(with string) string {
		return strings.NewReplacer("WITH", with, "ROUTES", "success: done", "    TOOLS\n", "").Replace(agentFlow)
	}
	wrong(t, "no model", strings.Replace(flow("into: answer"), "models: {default: {provider: fake}}\n", "", 1),
		"states.work.with.goal: an agent needs a model, and this state has none; declare one under models, or use a handler that decides by rules")
	wrong(t, "a variable twice", flow("into: [answer, size, answer]"), "states.work.with.into[2]: answer stands in into twice")
}

// What one of the variables does not take after all, here because a secret is taken out of it, leaves all of them as they
// were.
func TestAgentWritesAllOrNothing(t *testing.T) {
	w := agentWorld(t, "into: [size, code]", "success: done", "").scripted(`{state: work, answer: {answer: {size: 9, code: hunter22}}}`)
	secrets, err := secret.New(map[string]string{"KEY": "hunter22"})
	if err != nil {
		t.Fatal(err)
	}
	w.secrets = secrets
	w.restart()
	w.start(`{}`).path("work lost").last("fail invalid").has("size", "3").has("code", "")
}

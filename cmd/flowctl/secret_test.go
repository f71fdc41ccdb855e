package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const safeFlow = `
version: 1
name: safe
inputs: {key: {type: string, secret: true}}
vars:
  pin: {type: string, secret: true, pattern: '^[0-9]+$'}
  row: {type: object}
  answer: {type: string}
models: {default: {provider: script, file: answers.yaml}}
databases: {shop: {path: shop.db, init: shop.sql}}
tools:
  open:
    description: Open the safe.
    effect: write
    approval: required
    parameters: {pin: {type: string}, key: {type: string}}
    sql: {database: shop, query: "UPDATE safe SET pin = :pin || '/' || :key"}
  look:
    description: Look into the safe.
    effect: read
    parameters: {}
    sql: {database: shop, query: SELECT pin FROM safe, rows: one}
start: ask
states:
  ask:
    handler: ask
    with: {question: "Your pin?", into: pin}
    transitions: {answered: open}
  open:
    handler: call
    with: {tool: open, args: {pin: "{{ pin }}", key: "{{ key }}"}, expect: 'result.affected == 1'}
    transitions: {success: look, fail: lost}
  look:
    handler: call
    with: {tool: look, args: {}, into: row}
    transitions: {success: {to: talk, say: "It holds {{ row.pin }}."}, fail: lost}
  talk:
    handler: agent
    tools: [look]
    view: {vars: [row], messages: all}
    with: {goal: "Say what is in {{ row.pin }}", into: answer}
    transitions: {success: more, fail: lost}
  more:
    handler: confirm
    with: {question: "{{ row.pin }}: go on?"}
    transitions: {confirmed: done, rejected: lost}
  done: {handler: end, with: {output: "{{ row.pin }} {{ answer }}"}}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
`

// A secret stands in the database of the run, and nowhere else: in no output of any command, no log, no other file. What is
// shown around it is still there.
func TestSecretVariablesAreShownNowhere(t *testing.T) {
	const pin, key = "471147114711", "k9"
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", safeFlow)
	writeFile(t, dir, "shop.sql", "CREATE TABLE safe (pin TEXT); INSERT INTO safe VALUES ('');")
	writeFile(t, dir, "answers.yaml", `answers:
  - {state: talk, calls: [{tool: look, args: {}}]}
  - {state: talk, text: "I see 471147114711."}
`)
	p := testProgram(dir)
	all := map[string]string{}
	do := func(code exitCode, args ...string) string {
		t.Helper()
		p.Stdin = strings.NewReader("")
		got, stdout, stderr := flowctl(p, args...)
		call := strings.Join(args, " ")
		if got != int(code) {
			t.Fatalf("%s: exit code %d, want %d\n%s%s", call, got, code, stdout, stderr)
		}
		all[call] = stdout + stderr
		return stdout + stderr
	}
	do(exitUsage, "run", "flow.yaml", "--id", "r", "-i", "key=@nothing")
	do(exitWaiting, "run", "flow.yaml", "--id", "r", "-i", "key="+key, "--log", "run.log", "-v")
	wrong := do(exitUsage, "answer", "r", "x"+pin)
	if !strings.Contains(wrong, "the answer will not do") {
		t.Errorf("a wrong answer is told of as %s", wrong)
	}
	do(exitUsage, "answer", "r", "--json", `"x`+pin+`"`, "-o", "json")
	asked := do(exitWaiting, "answer", "r", pin, "--log", "run.log", "-v")
	if !strings.Contains(asked, "Approve open (key = ***, pin = ***)?") {
		t.Errorf("the approval is asked for as %s", asked)
	}
	inspect := func() {
		for _, form := range [][]string{nil, {"-o", "json"}, {"-o", "jsonl"}} {
			for _, call := range [][]string{{"show", "r"}, {"ls"}, {"events", "r"}, {"events", "r", "--log", "state"},
				{"events", "r", "--log", "execution"}, {"events", "r", "--log", "decision"}} {
				if len(form) == 0 || form[1] == "json" || call[0] == "events" {
					do(exitOK, append(append([]string{}, call...), form...)...)
				}
			}
		}
	}
	inspect()
	do(exitWaiting, "answer", "r", "--yes", "-v", "--stream")
	inspect()
	do(exitOK, "view", "r")
	do(exitOK, "view", "r", "-o", "json")
	do(exitOK, "answer", "r", "--yes", "--log", "run.log", "-v")
	do(exitOK, "resume", "r")
	do(exitOK, "resume", "r", "-o", "json")
	inspect()
	if out := all["show r"]; !strings.Contains(out, "It holds ***/k9.") || !strings.Contains(out, "pin = ***") {
		t.Errorf("the run is shown as\n%s", out)
	}
	if out := all["view r"]; !strings.Contains(out, "***/k9") {
		t.Errorf("the model is shown to have been sent\n%s", out)
	}
	if out := all["events r -o jsonl"]; !strings.Contains(out, `"inputs":{"key":"***"}`) || !strings.Contains(out, `"args":{"key":"***","pin":"***"}`) {
		t.Errorf("the events are shown as\n%s", out)
	}
	for call, out := range all {
		if call, out = strings.ReplaceAll(call, pin, "PIN"), strings.ReplaceAll(out, "\n", " ⏎ "); strings.Contains(out, pin) {
			t.Errorf("%s writes the secret: %s", call, out)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(d.Name(), ".db") || d.Name() == "answers.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), pin) {
			t.Errorf("%s holds the secret", d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "run.log")); err != nil || !strings.Contains(string(log), `"name":"pin","value":"***"`) {
		t.Errorf("the log does not tell of the variable: %v\n%s", err, log)
	}
}

// At a terminal, too, nobody is shown a secret, and progress tells of the rest.
func TestSecretAtATerminal(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", strings.Replace(safeFlow, "with: {tool: look, args: {}, into: row}", "with: {tool: look, args: {}, into: row, expect: 'result.pin == \"no\"'}", 1))
	writeFile(t, dir, "shop.sql", "CREATE TABLE safe (pin TEXT); INSERT INTO safe VALUES ('');")
	writeFile(t, dir, "answers.yaml", "answers: []\n")
	p := testProgram(dir)
	p.Terminal = terminals{In: true, Out: true, Err: true}
	p.Stdin = strings.NewReader("x471147114711\n471147114711\ny\n")
	code, stdout, stderr := flowctl(p, "run", "flow.yaml", "-i", "key=k9")
	if code != int(exitFailed) || strings.Contains(stdout+stderr, "471147114711") || !strings.Contains(stdout, "***/k9") ||
		!strings.Contains(stderr, "the answer will not do") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

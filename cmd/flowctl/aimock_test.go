package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// aimockFixtures are what the mock answers: a call after a 429 and a 500, then the answer; and a stream that is cut once.
const aimockFixtures = `{"fixtures": [
  {"match": {"userMessage": "six times seven", "hasToolResult": false, "sequenceIndex": 0},
   "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}},
  {"match": {"userMessage": "six times seven", "hasToolResult": false, "sequenceIndex": 1},
   "response": {"error": {"message": "oh", "type": "server_error"}, "status": 500}},
  {"match": {"userMessage": "six times seven", "hasToolResult": false, "sequenceIndex": 2},
   "response": {"content": "I calculate it.", "toolCalls": [{"name": "add", "arguments": {"expression": "6*7"}}]}},
  {"match": {"userMessage": "six times seven", "hasToolResult": true},
   "response": {"content": "It is 42."}},
  {"match": {"userMessage": "tell me a story", "sequenceIndex": 0},
   "response": {"content": "Once upon a time there was a state machine that never lost its way."},
   "latency": 30, "chunkSize": 8, "truncateAfterChunks": 3},
  {"match": {"userMessage": "tell me a story", "sequenceIndex": 1},
   "response": {"content": "Once upon a time there was a state machine that never lost its way."}, "chunkSize": 8}
]}`

const aimockFlow = `
version: 1
name: mocked
inputs: {message: {type: string}}
vars: {answer: {type: string}}
models: {default: {provider: openai, model: gpt-4o-mini}}
tools:
  add: {description: Calculate., builtin: {name: calculator}}
start: work
states:
  work:
    handler: agent
    tools: [add]
    view: {messages: none}
    with: {goal: "{{ message }}", into: answer}
    transitions: {success: done, fail: lost}
  done: {handler: end, with: {output: "{{ answer }}"}}
  lost: {handler: end, with: {status: failed}}
`

// startAimock starts the mock of an OpenAI endpoint that others publish, and gives its base URL. FLOWCTL_TEST_AIMOCK names a
// folder node_modules with @copilotkit/aimock in it; without it there is no test.
func startAimock(t *testing.T, dir string) string {
	t.Helper()
	folder := os.Getenv("FLOWCTL_TEST_AIMOCK")
	if folder == "" {
		t.Skip("FLOWCTL_TEST_AIMOCK names no folder node_modules with the mock in it (npm install @copilotkit/aimock@1.43.0)")
	}
	fixtures := filepath.Join(dir, "fixtures.json")
	if err := os.WriteFile(fixtures, []byte(aimockFixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "node", filepath.Join(folder, "@copilotkit", "aimock", "dist", "cli.js"),
		"-p", "0", "-f", fixtures, "--strict", "--log-level", "info")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		address := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if at := address.FindString(lines.Text()); at != "" {
				select {
				case found <- at:
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		_ = cmd.Wait() // it was killed
	})
	select {
	case at := <-found:
		return at + "/v1"
	case <-done:
		t.Fatal("the mock ended before it listened")
	case <-time.After(30 * time.Second):
		t.Fatal("the mock does not listen")
	}
	return ""
}

// A run against an endpoint that is not ours: a call of a tool after 429 and 500, and a stream that is cut once.
func TestAgainstAPublishedMock(t *testing.T) {
	dir := t.TempDir()
	address := startAimock(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(aimockFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"LLM_BASE_URL": address, "LLM_API_KEY": "sk-test-AAAA11112222"}
	var waits []time.Duration
	run := func(id, message string, more ...string) (stdout, stderr string) {
		p := systemProgram()
		p.Dir = dir
		p.Getenv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		p.Sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
		code, stdout, stderr := flowctl(p, append([]string{"run", "flow.yaml", "--id", id, "-i", "message=" + message}, more...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
		}
		return stdout, stderr
	}
	if stdout, _ := run("sum", "What is six times seven?"); strings.TrimSpace(stdout) != "It is 42." {
		t.Errorf("the answer is %q", stdout)
	}
	if len(waits) != 2 || waits[0] < time.Second {
		t.Errorf("waited %v, want at least the second that the endpoint asked for, then once more", waits)
	}
	stdout, stderr := run("story", "Please tell me a story", "--stream")
	if !strings.Contains(stdout, "never lost its way") || !strings.Contains(stderr, "broken off") {
		t.Errorf("the story is %q, and it was shown as %q", stdout, stderr)
	}
	p := systemProgram()
	p.Dir = dir
	_, events, _ := flowctl(p, "events", "sum")
	for _, want := range []string{"slow down", "42"} {
		if !strings.Contains(events, want) {
			t.Errorf("the events say nothing of %s:\n%s", want, events)
		}
	}
	if got := fmt.Sprint(strings.Count(events, "attempt_failed")); got != "2" {
		t.Errorf("%s failed attempts are told of", got)
	}
}

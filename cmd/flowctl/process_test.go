package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// process is flowctl as a process of its own, in a folder.
func process(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FLOWCTL_TEST_PROCESS=1", "FLOWCTL_DB=", "NO_COLOR=1")
	return cmd
}

func exitOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const oneQuestion = `
version: 1
name: one
vars: {name: {type: string}}
start: who
states:
  who: {handler: ask, with: {question: "Who?", into: name}, transitions: {answered: bye}}
  bye: {handler: end, with: {output: "{{ name }}"}}
`

// Ten processes answer one question at once: one of them is heard, the others are told so, and the history has no gap.
func TestTenAnswersAtOnce(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", oneQuestion)
	if out, err := process(t, dir, "run", "flow.yaml", "--id", "r").CombinedOutput(); exitOf(err) != int(exitWaiting) {
		t.Fatalf("run: %v\n%s", err, out)
	}
	var mu sync.Mutex
	codes := map[int]int{}
	winner := ""
	var wg sync.WaitGroup
	for _, name := range strings.Split("abcdefghij", "") {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var stdout, stderr bytes.Buffer
			cmd := process(t, dir, "answer", "r", name)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := exitOf(cmd.Run())
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
			if code == int(exitOK) {
				winner = name
				if got := strings.TrimSpace(stdout.String()); got != name {
					t.Errorf("the winner answered %q, and the output is %q", name, got)
				}
			} else if stderr.Len() == 0 {
				t.Errorf("exit code %d without a word", code)
			}
		}()
	}
	wg.Wait()
	if codes[int(exitOK)] != 1 || codes[int(exitBusy)] != 9 {
		t.Fatalf("exit codes %v, want one 0 and nine 8", codes)
	}
	out, err := process(t, dir, "events", "r", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var events []eventDocument
	if err := json.Unmarshal(out, &events); err != nil {
		t.Fatal(err)
	}
	answered := 0
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			t.Fatalf("event %d has seq %d", i+1, ev.Seq)
		}
		if ev.Type == "answered" {
			answered++
			var d history.Answered
			if err := json.Unmarshal(ev.Data, &d); err != nil || d.Value != winner {
				t.Errorf("the recorded answer is %s, the winner's is %q", ev.Data, winner)
			}
		}
	}
	if answered != 1 {
		t.Errorf("%d answers are recorded", answered)
	}
}

const slowFlow = `
version: 1
name: slow
databases: {db: {path: slow.db, init: slow.sql}}
tools:
  count:
    description: Count for ever.
    effect: read
    timeout: 10m
    sql: {database: db, query: "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c"}
start: count
states:
  count: {handler: call, with: {tool: count}, transitions: {success: bye, fail: bye}}
  bye: {handler: end}
`

// An interrupted run stops in order, its document is printed, and it can be resumed.
func TestInterruptStopsTheRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "flow.yaml", slowFlow)
			writeFile(t, dir, "slow.sql", "CREATE TABLE t(x);")
			cmd := process(t, dir, "run", "flow.yaml", "--id", "r", "-o", "json", "-v")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stderr)
			for lines.Scan() && !strings.Contains(lines.Text(), `"type":"state_entered"`) {
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
			}
			if code := exitOf(cmd.Wait()); code != int(exitInterrupted) {
				t.Fatalf("exit code %d, want 130\n%s", code, stdout.String())
			}
			var doc engine.Report
			if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
				t.Fatalf("%v\n%s", err, stdout.String())
			}
			if doc.Status != "stopped" || doc.Error == nil || doc.Error.Code != "interrupted" {
				t.Errorf("the document says %s, %+v", doc.Status, doc.Error)
			}
		})
	}
}

// blocking is a handler that works until it is told to stop.
type blocking struct{ entered chan struct{} }

type blockingWith struct{}

func (*blockingWith) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.NextState}}}
}

func (b blocking) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Works until it is told to stop.", With: &blockingWith{}}
}

func (b blocking) Handle(ctx context.Context, _ *engine.Step) (machine.Outcome, error) {
	close(b.entered)
	<-ctx.Done()
	return "", ctx.Err()
}

// testProgram is flowctl in a folder, in this process.
func testProgram(dir string) program {
	p := systemProgram()
	p.Stdin, p.Terminal = strings.NewReader(""), terminals{}
	p.Dir = dir
	p.Getenv = func(string) (string, bool) { return "", false }
	p.Version = "v1.2.3"
	return p
}

// A cancelled context stops the run of a handler of one's own, in text mode.
func TestInterruptInProcess(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", `
version: 1
name: b
start: a
states:
  a: {handler: block, transitions: {next: z}}
  z: {handler: end}
`)
	p := testProgram(dir)
	b := blocking{entered: make(chan struct{})}
	p.Handlers["block"] = b
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-b.entered
		cancel()
	}()
	var out, errs bytes.Buffer
	p.Stdout, p.Stderr = &out, &errs
	if code := p.Run(ctx, []string{"run", "flow.yaml", "--id", "r"}); code != int(exitInterrupted) {
		t.Fatalf("exit code %d, want 130\n%s", code, errs.String())
	}
	if !strings.Contains(errs.String(), "run r stopped in state a") || !strings.Contains(errs.String(), "flowctl resume r") {
		t.Errorf("stderr does not say how to go on:\n%s", errs.String())
	}
}

// A follower prints what comes until it is interrupted.
func TestFollowUntilInterrupted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", oneQuestion)
	p := testProgram(dir)
	if code, _, stderr := flowctl(p, "run", "flow.yaml", "--id", "r"); code != int(exitWaiting) {
		t.Fatal(stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := &writerFunc{do: func(line []byte) {
		if bytes.Contains(line, []byte(`"run_waiting"`)) {
			cancel()
		}
	}}
	p.Stdout, p.Stderr = stop, &bytes.Buffer{}
	if code := p.Run(ctx, []string{"events", "r", "-f", "-o", "jsonl"}); code != int(exitInterrupted) {
		t.Errorf("exit code %d, want 130", code)
	}
}

type writerFunc struct{ do func([]byte) }

func (w *writerFunc) Write(p []byte) (int, error) {
	w.do(p)
	return len(p), nil
}

// Output that cannot be written is not success.
func TestFailingOutput(t *testing.T) {
	p := testProgram(t.TempDir())
	p.Stdout, p.Stderr = failing{}, &bytes.Buffer{}
	if code := p.Run(context.Background(), []string{"version"}); code != int(exitMachine) {
		t.Errorf("exit code %d, want 9", code)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Fifty runs by eight processes at a time on one database: none of them ever hears of a lock.
func TestFiftyRunsOnOneDatabase(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", `
version: 1
name: many
vars: {n: {type: integer, default: 0}}
start: count
states:
  count:
    handler: route
    with: {set: {n: '{{ n + 1 }}'}}
    transitions:
      next: [{when: 'n < 10', to: count}, {to: done}]
  done: {handler: end, with: {output: "{{ n }}"}}
`)
	var group errgroup.Group
	group.SetLimit(8)
	for i := range 50 {
		group.Go(func() error {
			var stderr strings.Builder
			cmd := process(t, dir, "run", "flow.yaml", "--id", fmt.Sprintf("r%02d", i))
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || strings.TrimSpace(string(out)) != "10" || stderr.Len() > 0 {
				return fmt.Errorf("run %d: %q, %v\n%s", i, out, err, stderr.String())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	out, err := process(t, dir, "ls", "--status", "succeeded", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var docs []engine.Report
	if err := json.Unmarshal(out, &docs); err != nil || len(docs) != 50 {
		t.Fatalf("%d runs are listed, want 50 (%v)", len(docs), err)
	}
}

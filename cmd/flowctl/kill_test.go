package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"flowctl/engine"
	"flowctl/store"
	"flowctl/store/faulty"
)

// killer makes a process kill itself, as kill -9 would, at one of its commits: "before 3" or "after 3". It gives nil for
// "".
func killer(when string) func(store.Store) store.Store {
	side, number, _ := strings.Cut(when, " ")
	at, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	fault := faulty.Fault{After: die}
	if side == "before" {
		fault = faulty.Fault{Before: die}
	}
	return func(s store.Store) store.Store { return faulty.New(s, faulty.At(at, fault)) }
}

func die(context.Context, store.Commit) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}

// TestKillAtEveryCommit kills real processes of the support example right before and right after each of their commits.
// Whatever the moment, `resume` completes the run with the same events, and the order is refunded once.
func TestKillAtEveryCommit(t *testing.T) {
	whole := newVictim(t)
	whole.run("")
	whole.answer("")
	want := whole.events()
	if n := strings.Count(strings.Join(want, "\n"), "refund_order"); n == 0 {
		t.Fatal("the unbroken run refunded nothing")
	}
	doubts := 0
	for _, phase := range []string{"run", "answer"} {
		for _, side := range []string{"before", "after"} {
			for at := 1; ; at++ {
				killed, doubt := killedAt(t, phase, fmt.Sprintf("%s %d", side, at), want)
				if doubt {
					doubts++
				}
				if !killed {
					if at < 3 {
						t.Errorf("%s made only %d commits", phase, at-1)
					}
					break
				}
			}
		}
	}
	// Right after the record of its start, and right before that of its end: only then nobody knows of the refund.
	if doubts != 2 {
		t.Errorf("%d kills left the refund in doubt, want 2", doubts)
	}
}

// killedAt kills one process and brings its run to the end. killed is false when the process made fewer commits than
// that; doubt says that a human had to say whether the refund happened.
func killedAt(t *testing.T, phase, when string, want []string) (killed, doubt bool) {
	t.Helper()
	v := newVictim(t)
	if phase == "run" {
		killed = v.run(when)
	} else {
		v.run("")
		killed = v.answer(when)
	}
	v.finish()
	if got := v.events(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s killed %s: the history is\n%s\nwant\n%s", phase, when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := v.refunds(); n != 1 {
		t.Errorf("%s killed %s: %d rows say refunded, want 1", phase, when, n)
	}
	return killed, v.doubt
}

// What stands around the store must hide nothing of it: a run with a memory would go on without one.
func TestKillRunWithMemory(t *testing.T) {
	const remembering = `version: 1
name: desk
memory: {namespace: shop}
tools: {remember: {builtin: {name: remember}}}
start: keep
states:
  keep:
    handler: call
    with: {tool: remember, args: {key: likes, value: tea}}
    transitions: {success: done, fail: lost}
  done: {handler: end}
  lost: {handler: end, with: {status: failed}}
`
	v := &victim{t: t, dir: t.TempDir()}
	writeFile(t, v.dir, "flow.yaml", remembering)
	for at := 1; ; at++ {
		if at > 20 {
			t.Fatal("the run makes no end of commits")
		}
		_, code, killed := v.flowctl(fmt.Sprint("after ", at), "run", "flow.yaml", "--id", fmt.Sprint("r", at))
		if killed {
			continue
		}
		if code != 0 || at < 3 {
			t.Errorf("the run made %d commits and ended with exit code %d", at-1, code)
		}
		break
	}
	if out, _, _ := v.flowctl("", "memory", "get", "shop", "likes"); out != "tea\n" {
		t.Errorf("the run remembered %q", out)
	}
}

// victim is a folder with the support example, a run of it, and the processes that work on it.
type victim struct {
	t     *testing.T
	dir   string
	doubt bool // whether it asked about the refund
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, dir: t.TempDir()}
	for _, name := range []string{"flow.yaml", "script.yaml", "shop.sql"} {
		data, err := os.ReadFile(filepath.Join("../../examples/support", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, v.dir, name, string(data))
	}
	return v
}

// flowctl runs one process and gives what it printed and its exit code; killed says that it was killed.
func (v *victim) flowctl(kill string, args ...string) (stdout string, code int, killed bool) {
	v.t.Helper()
	cmd := process(v.t, v.dir, args...)
	cmd.Env = append(cmd.Env, "FLOWCTL_TEST_KILL="+kill)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return "", -1, true
		}
	}
	code = exitOf(err)
	if code == 9 || code < 0 {
		v.t.Fatalf("flowctl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), code, false
}

func (v *victim) run(kill string) bool {
	_, _, killed := v.flowctl(kill, "run", "flow.yaml", "--id", "r", "-i", "message=a refund for A1001, please")
	return killed
}

func (v *victim) answer(kill string) bool {
	_, _, killed := v.flowctl(kill, "answer", "r", "--yes")
	return killed
}

// finish takes the run up until it ends, as a person would: it confirms the plan and looks into the shop where a write is
// in doubt.
func (v *victim) finish() {
	v.t.Helper()
	for range 10 {
		out, code, _ := v.flowctl("", "resume", "r", "-o", "json")
		if code == int(exitUsage) { // nothing of the run was stored
			v.run("")
			continue
		}
		var doc engine.Report
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			v.t.Fatalf("resume gave %q (exit %d): %v", out, code, err)
		}
		switch {
		case doc.Status == store.Succeeded:
			return
		case doc.Status != store.Waiting || len(doc.Waiting) != 1:
			v.t.Fatalf("the run is %s: %s", doc.Status, out)
		case doc.Waiting[0].Kind == "confirm":
			v.answer("")
		case v.refunds() == 1:
			v.doubt = true
			v.flowctl("", "answer", "r", "--done", "--json", `{"affected":1}`)
		default:
			v.doubt = true
			v.flowctl("", "answer", "r", "--not-done")
		}
	}
	v.t.Fatal("the run did not end")
}

// refunds counts the refunded orders of the shop.
func (v *victim) refunds() int {
	v.t.Helper()
	return countRows(v.t, filepath.Join(v.dir, "shop.db"), "SELECT count(*) FROM orders WHERE status = 'refunded'")
}

// events gives the run's events but for what tells of the interruption, times and durations.
func (v *victim) events() []string {
	v.t.Helper()
	out, code, _ := v.flowctl("", "events", "r", "-o", "json")
	var docs []eventDocument
	if err := json.Unmarshal([]byte(out), &docs); err != nil || code != 0 {
		v.t.Fatalf("events gave %q (exit %d): %v", out, code, err)
	}
	var lines []string
	started := map[string]bool{}
	for i, ev := range docs {
		doubt := i > 0 && docs[i-1].Type == "asked" && strings.Contains(docs[i-1].Key, "in_doubt")
		switch {
		case ev.Seq != int64(i)+1:
			v.t.Fatalf("event %d has seq %d", i+1, ev.Seq)
		case ev.Type == "run_resumed", ev.Type == "doubt_resolved", strings.Contains(ev.Key, "in_doubt"),
			ev.Type == "run_waiting" && doubt, ev.Type == "tool_started" && started[ev.Key]:
			continue
		case ev.Type == "tool_started":
			started[ev.Key] = true
		}
		data := durations.ReplaceAllString(strings.ReplaceAll(string(ev.Data), v.dir, "DIR"), `"ms":0`)
		lines = append(lines, fmt.Sprintf("%s %s#%d %d %s %s", ev.Type, ev.State, ev.Visit, ev.Step, ev.Key, data))
	}
	return lines
}

var durations = regexp.MustCompile(`"ms": ?[0-9]+`)

func countRows(t *testing.T, path, query string) (n int) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

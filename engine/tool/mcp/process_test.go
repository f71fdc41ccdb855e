package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/engine/tool/program"
	"flowctl/flows/machine"
)

// starts counts how often the bench has started a program.
func (b *bench) starts() int { return strings.Count(b.log.String(), "the MCP server was started") }

// session gives the session of the bench's server, which must run.
func (b *bench) session() *session {
	b.t.Helper()
	b.kind.mu.Lock()
	defer b.kind.mu.Unlock()
	for _, s := range b.kind.servers {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current != nil {
			return s.current
		}
	}
	b.t.Fatal("no server runs")
	return nil
}

func TestCrash(t *testing.T) {
	b := newBench(t, "good")
	for effect, want := range map[machine.Effect]string{reads: "unavailable unavailable", idempotent: "unknown unknown", write: "unknown unknown"} {
		got := b.call(effect, "crashes", nil)
		wants(t, got, want, "the MCP server s ended (exit code 7): panic: out of paper")
		if effect != reads && !strings.HasSuffix(got.Problem.Message, nobodyKnows) {
			t.Errorf("got %s", got.Problem.Message)
		}
		if got := b.call(write, "exact", machine.Values{}); got.Status != tool.OK { // it is started again, since calls were answered
			t.Errorf("after the crash of a %s: got %+v", effect, got)
		}
	}
	if b.starts() != 4 {
		t.Errorf("there were %d starts", b.starts())
	}
}

// A server that has ended between two calls has not seen the second one, which is made again.
func TestEndsInBetween(t *testing.T) {
	b := newBench(t, "good")
	b.call(reads, "who", nil)
	one := b.session()
	program.Kill(one.proc.cmd)
	<-one.over
	if got := b.call(write, "exact", machine.Values{}); got.Status != tool.OK || b.starts() != 2 {
		t.Errorf("got %+v after %d starts", got, b.starts())
	}
	if !strings.Contains(one.reason, "was killed by a signal (killed)") {
		t.Errorf("the reason is %s", one.reason)
	}
	// Where the end has not been noticed when the call is made, the call notices it.
	one = b.session()
	one.end()
	if got := b.call(write, "exact", machine.Values{}); got.Status != tool.OK || b.starts() != 3 {
		t.Errorf("got %+v after %d starts", got, b.starts())
	}
}

// Calls under way when the server ends all end, and none is left without an answer.
func TestManyCallsAtTheEnd(t *testing.T) {
	b := newBench(t, "good")
	g := newGate(t)
	const calls = 20
	results := make(chan tool.Result, calls)
	for i := range calls {
		effect := []machine.Effect{reads, write}[i%2]
		go func() {
			results <- call(t.Context(), b.tool(effect, "says and waits"), machine.Values{"address": g.address()})
		}()
	}
	var all []living
	for range calls {
		all = append(all, g.next())
	}
	program.Kill(b.session().proc.cmd)
	ends := map[tool.Status]int{}
	for range calls {
		ends[(<-results).Status]++
	}
	if ends[tool.Unknown] != calls/2 || ends[tool.Unavailable] != calls/2 {
		t.Errorf("got %v", ends)
	}
	for _, one := range all {
		one.gone()
	}
}

// A server that ends at once is not started in a loop.
func TestDies(t *testing.T) {
	b := newBench(t, "dies", "you")
	b.env["KEY"] = "sk-12345678"
	b.server.Env = texts("KEY", "$KEY")
	want := "the MCP server s ended (exit code 3) before it was ready: Error: no license for you[secret:KEY]"
	for range 2 {
		wants(t, b.call(write, "echo", nil), "unavailable unavailable", want)
	}
	for n, wait := 2, time.Second; n < 10; n++ {
		for range 3 {
			wants(t, b.call(write, "echo", nil), "unavailable unavailable",
				fmt.Sprintf("the MCP server s failed %d times in a row and is left alone for %s; the last time: ", n, wait), want)
		}
		if b.starts() != n {
			t.Fatalf("there were %d starts, want %d", b.starts(), n)
		}
		b.clock.pass(wait)
		wants(t, b.call(reads, "echo", nil), "unavailable unavailable", want)
		wait = min(2*wait, maxRest)
	}
	if _, err := b.kind.List(t.Context(), b.tenv(), "s"); err == nil || !strings.Contains(err.Error(), "left alone for 30s") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(b.log.String(), "before it was ready: Error: no license for yousk-") {
		t.Error("an error in the log shows a secret")
	}
}

func TestDiesOnce(t *testing.T) {
	b := newBench(t, "dies once", filepath.Join(t.TempDir(), "x"))
	wants(t, b.call(write, "who", nil), "unavailable unavailable", "ended (exit code 4) before it was ready")
	if got := b.call(write, "who", nil); got.Status != tool.OK {
		t.Errorf("got %+v", got)
	}
	b.kind.mu.Lock()
	defer b.kind.mu.Unlock()
	for _, s := range b.kind.servers {
		if s.failures != 0 {
			t.Errorf("%d failures are remembered", s.failures)
		}
	}
}

// A server that says nothing costs its own time to start and no more.
func TestSilent(t *testing.T) {
	for program, hint := range map[string]string{"silent": `; it printed text on its stdout, which is for messages only: "Loading…"`, "deaf": ""} {
		b := newBench(t, program)
		b.server.Timeout = machine.Duration(300 * time.Millisecond)
		start := time.Now()
		wants(t, b.call(write, "echo", nil), "unavailable unavailable", "the MCP server s was not ready within 300ms"+hint)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: it took %s", program, took)
		}
	}
}

// A call does not wait for the start longer than it may, and the start goes on.
func TestStartGoesOn(t *testing.T) {
	b := newBench(t, "good")
	tl := b.tool(write, "who")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := tl.Run(ctx, tool.Call{})
	if e, ok := err.(*tool.Error); !ok || e.Status != tool.Unavailable || e.Kind != tool.KindTimeout || !strings.Contains(err.Error(), "is still starting") {
		t.Fatalf("got %v", err)
	}
	if got := call(t.Context(), tl, nil); got.Status != tool.OK || b.starts() != 1 {
		t.Errorf("got %+v after %d starts", got, b.starts())
	}
}

func TestStdout(t *testing.T) {
	b := newBench(t, "greets")
	if got := b.call(reads, "echo", machine.Values{"text": "a"}); got.Value != "a" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(b.log.String(), "Welcome to the shop!") {
		t.Error("the greeting is not in the log")
	}
	b = newBench(t, "floods")
	wants(t, b.call(reads, "echo", nil), "unavailable unavailable", `cannot be used: it prints text on its stdout`, `"usage: shop [options]"`)
	b = newBench(t, "large")
	wants(t, b.call(reads, "echo", nil), "unavailable unavailable", "cannot be used: it sent a message of more than 16 MiB")
}

func TestStderr(t *testing.T) {
	b := newBench(t, "good")
	who, _ := b.call(reads, "who", nil).Value.(machine.Values)
	b.session().end()
	if err := b.kind.Close(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"level":"info","mcp_server":"s","message":"ready %v"}`, who["pid"])
	if !strings.Contains(b.log.String(), want) {
		t.Errorf("the log is %s, want %s in it", b.log, want)
	}
}

// A server that reads no more holds up nobody longer than their time, and is replaced.
func TestStopsReading(t *testing.T) {
	b := newBench(t, "stops reading")
	brief := func(args machine.Values) tool.Result {
		tl := b.tool(write, "take")
		tl.Spec.Timeout = time.Second
		return call(t.Context(), tl, args)
	}
	listed := func() {
		t.Helper()
		if list, err := b.kind.List(t.Context(), b.tenv(), "s"); err != nil || len(list) != 1 {
			t.Fatalf("got %v, %v", list, err)
		}
	}
	listed()
	wants(t, brief(nil), "unknown unknown")
	wants(t, brief(machine.Values{"text": strings.Repeat("x", 1<<18)}), "unknown unknown") // a part of it is in the pipe
	listed()
	if b.starts() != 2 {
		t.Errorf("there were %d starts", b.starts())
	}
}

func TestNewestVersion(t *testing.T) {
	b := newBench(t, "newest")
	if got := b.call(reads, "take", nil); got.Value != "taken\n[hologram]" {
		t.Errorf("got %+v", got)
	}
}

func TestCannotStart(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.dir, "server")
	if err := os.WriteFile(file, []byte("#!/nowhere/at/all\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, server := range map[string]machine.MCPServer{
		"there is no program no-such-program in the PATH, which the MCP server s needs": {Command: []string{"no-such-program"}},
		"there is no program ./none, which the MCP server s needs (its path starts":     {Command: []string{"./none"}},
		"the program ./plain of the MCP server s cannot be run: its rights":             {Command: []string{"./plain"}},
		"could not be started: what ./server runs with is missing":                      {Command: []string{"./server"}},
		"the folder none, which the MCP server s runs in, is not there":                 {Command: []string{os.Args[0]}, Dir: "none"},
		"plain, which the MCP server s runs in, is not a folder":                        {Command: []string{os.Args[0]}, Dir: "plain"},
	} {
		b.server = server
		wants(t, b.call(write, "echo", nil), "unavailable unavailable", want)
	}
}

// A program is not taken from the folder that happens to be the present one.
func TestProgramOfTheFolderByChance(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "server"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(b.dir)
	t.Setenv("PATH", ".")
	b.server.Command = []string{"server"}
	wants(t, b.call(write, "echo", nil), "unavailable unavailable",
		"the program server of the MCP server s was found only by way of a relative folder in the PATH, which is not used; write its path, as in ./server")
}

// A list of tools without an end is given up.
func TestEndlessList(t *testing.T) {
	for _, program := range []string{"endless", "endless and empty", "crowded"} {
		b := newBench(t, program)
		wants(t, b.call(reads, "t1_0", nil), "unavailable unavailable", "it lists more than 1000 tools, or more than 100 pages of them")
	}
}

// Close ends calls under way and all that servers have started.
func TestClose(t *testing.T) {
	b := newBench(t, "parent", "good")
	g := newGate(t)
	results := make(chan tool.Result, 2)
	for _, effect := range []machine.Effect{reads, write} {
		go func() {
			results <- call(t.Context(), b.tool(effect, "says and waits"), machine.Values{"address": g.address()})
		}()
	}
	first, second := g.next(), g.next()
	late := b.tool(write, "who")
	if err := b.kind.Close(); err != nil {
		t.Error(err)
	}
	first.gone()
	second.gone()
	for range 2 {
		got := <-results
		if got.Status != tool.Unknown && got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, "flowctl is shutting down") {
			t.Errorf("got %+v", got)
		}
	}
	wants(t, call(t.Context(), late, nil), "unavailable unavailable", "flowctl is shutting down")
	if _, err := b.kind.List(t.Context(), b.tenv(), "s"); err == nil {
		t.Error("a closed kind lists tools")
	}
}

// Close does not wait for a start.
func TestCloseWhileStarting(t *testing.T) {
	b := newBench(t, "silent")
	result := make(chan tool.Result, 1)
	go func() { result <- call(t.Context(), b.tool(write, "who"), nil) }()
	for b.starts() == 0 {
		select {
		case got := <-result:
			t.Fatalf("got %+v", got)
		default:
		}
	}
	if err := b.kind.Close(); err != nil {
		t.Error(err)
	}
	wants(t, <-result, "unavailable unavailable", "flowctl is shutting down")
}

func TestSplitter(t *testing.T) {
	for input, want := range map[string]string{
		"a\nb\n": "a|b|", "a": "a|", "\n\r\n \n": "", "abcdefgh": "abcd|efgh|", "abcd\nefghi\n": "abcd|efgh|i|", "a\r\nb": "a|b|",
	} {
		for size := 1; size <= len(input); size++ {
			got := ""
			s := &splitter{limit: 4, line: func(line []byte) error { got += string(line) + "|"; return nil }}
			for rest := input; rest != ""; {
				n := min(size, len(rest))
				if wrote, err := s.Write([]byte(rest[:n])); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			if err := s.flush(); err != nil || got != want {
				t.Errorf("%q by %d: got %q, want %q", input, size, got, want)
			}
		}
	}
	got := ""
	marked := &splitter{limit: 4, marks: true, line: func(line []byte) error { got += string(line) + "|"; return nil }}
	if _, err := marked.Write([]byte("abcdefghij\nk\n")); err != nil || got != "abcd…|…efgh…|…ij|k|" {
		t.Errorf("got %q, %v", got, err)
	}
	broken := &splitter{limit: 4, line: func([]byte) error { return io.ErrClosedPipe }}
	if _, err := broken.Write([]byte("a\nb\n")); err != io.ErrClosedPipe {
		t.Errorf("got %v", err)
	}
}

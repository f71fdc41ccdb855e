package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/engine/tool/program"
	"flowctl/flows/machine"
)

// realServer makes a bench with a published server. FLOWCTL_TEST_MCP names a folder node_modules with
// @modelcontextprotocol/server-filesystem and @modelcontextprotocol/server-everything in it; without it there is no test.
func realServer(t *testing.T, name string, args ...string) *bench {
	t.Helper()
	folder := os.Getenv("FLOWCTL_TEST_MCP")
	if folder == "" {
		t.Skip("FLOWCTL_TEST_MCP names no folder node_modules with the servers in it (npm install @modelcontextprotocol/server-" + name + ")")
	}
	b := newBench(t)
	program := filepath.Join(folder, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	b.server.Command = append([]string{"node", program}, args...)
	return b
}

func names(list []Listed) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = one.Name
	}
	return out
}

func TestRealFiles(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := realServer(t, "filesystem", folder)
	list, err := b.kind.List(t.Context(), b.tenv(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read_text_file", "write_file", "list_directory"} {
		if !slices.Contains(names(list), name) {
			t.Fatalf("there is no %s among %s", name, names(list))
		}
	}
	for _, one := range list {
		want := map[string]machine.Effect{"read_text_file": reads, "write_file": idempotent, "edit_file": write}[one.Name]
		if want != "" && one.Effect != want {
			t.Errorf("%s is %s, want %s", one.Name, one.Effect, want)
		}
	}
	path := filepath.Join(folder, "a.txt")
	got := b.call(write, "write_file", machine.Values{"path": path, "content": "é 日本\n"})
	if data, err := os.ReadFile(path); got.Status != tool.OK || err != nil || string(data) != "é 日本\n" {
		t.Fatalf("got %+v, and the file holds %q (%v)", got, data, err)
	}
	got = b.call(reads, "read_text_file", machine.Values{"path": path})
	if value, _ := got.Value.(machine.Values); got.Value != "é 日本\n" && value["content"] != "é 日本\n" {
		t.Errorf("got %+v", got)
	}
	wants(t, b.call(reads, "read_text_file", machine.Values{"path": "/etc/passwd"}), "failed failed", "outside allowed directories")
	wants(t, b.call(reads, "read_text_file", nil), "refused refused", "path")
	wants(t, b.call(reads, "read_txt_file", nil), "refused refused", "did you mean read_text_file?")

	program.Kill(b.session().proc.cmd)
	got = b.call(reads, "list_directory", machine.Values{"path": folder})
	if got.Status == tool.Unavailable { // it was under way when the server ended
		got = b.call(reads, "list_directory", machine.Values{"path": folder})
	}
	if !strings.Contains(fmt.Sprint(got.Value), "a.txt") || b.starts() != 2 {
		t.Errorf("after the end of the server: got %+v after %d starts", got, b.starts())
	}
}

func TestRealEverything(t *testing.T) {
	b := realServer(t, "everything", "stdio")
	list, err := b.kind.List(t.Context(), b.tenv(), "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(names(list))
	if got := b.call(reads, "echo", machine.Values{"message": "héllo"}); !strings.Contains(fmt.Sprint(got.Value), "héllo") {
		t.Errorf("got %+v", got)
	}
	if got := b.call(reads, "get-sum", machine.Values{"a": int64(2), "b": int64(40)}); !strings.Contains(fmt.Sprint(got.Value), "42") {
		t.Errorf("got %+v", got)
	}
	wants(t, b.call(reads, "get-sum", machine.Values{"a": "two", "b": int64(40)}), "refused refused", "a: ")
	got := b.call(reads, "get-structured-content", machine.Values{"location": "Chicago"})
	if value, _ := got.Value.(machine.Values); value["temperature"] == nil {
		t.Errorf("got %+v", got)
	}
	if got := b.call(reads, "get-tiny-image", nil); !strings.Contains(fmt.Sprint(got.Value), "[image image/png ") {
		t.Errorf("got %+v", got)
	}
	long := machine.Values{"duration": int64(30), "steps": int64(3)}
	for effect, want := range map[machine.Effect]string{reads: "unavailable timeout", write: "unknown unknown"} {
		tl := b.tool(effect, "trigger-long-running-operation")
		tl.Spec.Timeout = 400 * time.Millisecond
		start := time.Now()
		wants(t, call(t.Context(), tl, long), want)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	if got := b.call(reads, "echo", machine.Values{"message": "still"}); got.Status != tool.OK || b.starts() != 1 {
		t.Errorf("after the timeouts: got %+v after %d starts", got, b.starts())
	}
	result := make(chan tool.Result, 1)
	one := b.session()
	go func() {
		result <- call(context.WithoutCancel(t.Context()), b.tool(write, "trigger-long-running-operation"), long)
	}()
	b.waitFor(one)
	program.Kill(one.proc.cmd)
	wants(t, <-result, "unknown unknown", "was killed by a signal", "nobody knows")
	if got := b.call(write, "echo", machine.Values{"message": "again"}); got.Status != tool.OK || b.starts() != 2 {
		t.Errorf("after the kill: got %+v after %d starts", got, b.starts())
	}
}

// waitFor waits until a call of a session is under way.
func (b *bench) waitFor(one *session) {
	for {
		one.tap.mu.Lock()
		for _, x := range one.waiting {
			if x.sent.Load() {
				one.tap.mu.Unlock()
				return
			}
		}
		one.tap.mu.Unlock()
		if b.t.Context().Err() != nil {
			b.t.Fatal("no call comes")
		}
	}
}

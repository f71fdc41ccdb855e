package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

func searchFolder(t *testing.T, files map[string]string) (ws string) {
	t.Helper()
	ws = t.TempDir()
	for name, text := range files {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

// hits gives hits as path:line:text.
func hits(t *testing.T, got tool.Result) []string {
	t.Helper()
	value, ok := got.Value.(machine.Values)
	if !ok || got.Status != tool.OK {
		t.Fatalf("got %+v", got)
	}
	out := []string{}
	for _, one := range value["hits"].([]machine.Value) {
		h := one.(machine.Values)
		out = append(out, fmt.Sprintf("%s:%d:%s", h["path"], h["line"], h["text"]))
	}
	return out
}

func TestSearchFiles(t *testing.T) {
	ws := searchFolder(t, map[string]string{
		"b.md": "Refund\nnothing\nrefund again", "a.txt": "no refund\r\n", "docs/x.md": "\n\nrefund x\n", "docs/deep/y.md": "a refund",
		"binary": "refund\x00", "latin": "refund\xe9", "large": "refund" + strings.Repeat("x", maxFile), ".hidden": "refund",
		".git/config": "refund", "empty": "",
	})
	for _, test := range []struct {
		pattern, glob string
		want          []string
	}{
		{"refund", "", []string{"a.txt:1:no refund", "b.md:3:refund again", "docs/deep/y.md:1:a refund", "docs/x.md:3:refund x"}},
		{"(?i)^refund$", "", []string{"b.md:1:Refund"}},
		{`refund$`, "*.txt", []string{"a.txt:1:no refund"}},
		{"refund", "*.md", []string{"b.md:3:refund again", "docs/deep/y.md:1:a refund", "docs/x.md:3:refund x"}},
		{"refund", "docs/*.md", []string{"docs/x.md:3:refund x"}},
		{"refund", "docs/**", []string{"docs/deep/y.md:1:a refund", "docs/x.md:3:refund x"}},
		{"refund", "**/y.*", []string{"docs/deep/y.md:1:a refund"}},
		{"refund", "./b.md", []string{"b.md:3:refund again"}},
		{"nowhere", "", []string{}},
		{"refund", "*.none", []string{}},
	} {
		got := runTool(t, "search_files", ws, machine.Values{"pattern": test.pattern, "glob": test.glob})
		if found := hits(t, got); !reflect.DeepEqual(found, test.want) {
			t.Errorf("%s in %s: got %q, want %q", test.pattern, test.glob, found, test.want)
		}
		value := got.Value.(machine.Values)
		if skipped := map[bool]int64{true: 3}[test.glob == ""]; value["skipped"] != skipped || value["more"] != false {
			t.Errorf("%s in %s: got %+v", test.pattern, test.glob, value)
		}
	}
}

func TestSearchFilesStaysInside(t *testing.T) {
	ws := sandbox(t)
	got := hits(t, runTool(t, "search_files", ws, machine.Values{"pattern": "."}))
	if want := []string{"a.txt:1:alpha", "sub/b.txt:1:beta"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if got := runTool(t, "search_files", filepath.Join(ws, "none"), machine.Values{"pattern": "."}); got.Status != tool.Unavailable {
		t.Errorf("got %+v", got)
	}
}

func TestSearchFilesIsBounded(t *testing.T) {
	ws := searchFolder(t, map[string]string{"a": strings.Repeat("x\n", maxHits-1), "b": "x\n", "c": strings.Repeat("y\n", 10)})
	for pattern, more := range map[string]bool{"x": false, ".": true} {
		got := runTool(t, "search_files", ws, machine.Values{"pattern": pattern})
		if found := hits(t, got); len(found) != maxHits || got.Value.(machine.Values)["more"] != more {
			t.Errorf("%s: %d hits, more: %v", pattern, len(found), got.Value.(machine.Values)["more"])
		}
	}
	long := strings.Repeat("é", 500) + "here" + strings.Repeat("日", 500)
	ws = searchFolder(t, map[string]string{"a": long, "b": "here" + long, "c": long[:1004]})
	for _, line := range hits(t, runTool(t, "search_files", ws, machine.Values{"pattern": "here"})) {
		if !strings.Contains(line, "here") || len(line) > maxLine+15 || !strings.Contains(line, "…") || strings.Contains(line, "\uFFFD") {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
	for _, args := range []machine.Values{{"pattern": "("}, {"pattern": "a{2000}"}, {"pattern": strings.Repeat("x", maxPattern+1)}, {"pattern": "x", "glob": "a["}, {"pattern": "x", "glob": "x/**/a["}} {
		if got := runTool(t, "search_files", ws, args); got.Status != tool.Failed || !strings.HasPrefix(got.Problem.Message, "the ") {
			t.Errorf("%.50v: %+v", args, got)
		}
	}
}

// A search ends with its context, and says what to do where it took too long.
func TestSearchFilesUnderAnEndedContext(t *testing.T) {
	ws := sandbox(t)
	d := folder{path: ws, flow: ws}
	if _, err := d.search(endedContext(t), tool.Call{}, searchArgs{Pattern: "."}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := d.search(ctx, tool.Call{}, searchArgs{Pattern: "."})
	var e *tool.Error
	if !errors.As(err, &e) || e.Status != tool.Failed || e.Kind != kindTooMuch || !strings.Contains(err.Error(), "choose fewer files with glob") {
		t.Errorf("got %v", err)
	}
}

// A search that takes too long stops in the middle of a line, and is not tried again.
func TestSearchFilesStopsInALine(t *testing.T) {
	ws := searchFolder(t, map[string]string{"a": strings.Repeat("x", maxFile)})
	kind := New()
	made, err := kind.New(machine.ToolSpec{Name: "t", Effect: machine.EffectRead, Timeout: 500 * time.Millisecond,
		Config: &Config{Name: "search_files", Root: ws, kind: kind}}, tool.Env{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	pattern := strings.Repeat(".{0,900}", 20) + "z" // 18,000 states at work for each character
	start := time.Now()
	runner := tool.Runner{Sleep: func(context.Context, time.Duration) error { t.Error("it is tried again"); return nil }}
	got, err := runner.Batch(t.Context(), []tool.Job{{Prepared: tool.Prepared{Tool: made, Values: machine.Values{"pattern": pattern}}}}, tool.Hooks{})
	if err != nil || got[0].Result.Status != tool.Failed || got[0].Result.Problem.Kind != kindTooMuch {
		t.Errorf("got %+v, %v", got, err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What is read rune by rune is found as it is in one go.
func TestSearchFilesInALongLine(t *testing.T) {
	line := strings.Repeat("é", 300_000) + "here 日"
	ws := searchFolder(t, map[string]string{"a": "first\n" + line + "\nlast"})
	for _, pattern := range []string{"here 日$", "^é+here", "e{1,500}re .$"} {
		got := hits(t, runTool(t, "search_files", ws, machine.Values{"pattern": pattern}))
		if len(got) != 1 || !strings.HasPrefix(got[0], "a:2:") {
			t.Errorf("%s: got %.100q", pattern, got)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		glob, name string
		want       bool
	}{
		{"", "a/b", true}, {"*", "a/b", true}, {"b", "a/b", true}, {"a", "a/b", false}, {"a/*", "a/b", true}, {"a/*", "a/b/c", false},
		{"a/**", "a/b/c", true}, {"a/**", "b/a", false}, {"**/c", "a/b/c", true}, {"**/c", "c", true}, {"a/**/c", "a/c", true},
		{"a/**/**/c", "a/b/b/b/c", true}, {"a/**/c", "a/b/d", false}, {"[ab]/?", "b/x", true}, {"/a", "a", false}, {"a/", "a", false},
	} {
		if got := globMatches(test.glob, test.name); got != test.want {
			t.Errorf("%s and %s: %v", test.glob, test.name, got)
		}
	}
}

package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// fileIn writes a file of a test's folder and gives the folder.
func fileIn(t *testing.T, name, text string) (ws string) {
	t.Helper()
	ws = t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ws
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAppendFile(t *testing.T) {
	ws := fileIn(t, "log", "one\n")
	for _, path := range []string{"log", "new", "deep/er/new"} {
		for range 2 {
			got := runTool(t, "append_file", ws, machine.Values{"path": path, "content": "日本\n"})
			if got.Status != tool.OK || !reflect.DeepEqual(got.Value, machine.Values{"bytes": int64(7)}) {
				t.Errorf("%s: %+v", path, got)
			}
		}
		want := "日本\n日本\n"
		if path == "log" {
			want = "one\n" + want
		}
		if text := textOf(t, filepath.Join(ws, path)); text != want {
			t.Errorf("%s holds %q", path, text)
		}
	}
	if info, err := os.Stat(filepath.Join(ws, "log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := runTool(t, "append_file", ws, machine.Values{"path": "log", "content": strings.Repeat("x", maxFile-18)}); got.Status != tool.OK {
		t.Errorf("up to the limit: %+v", got)
	}
	got := runTool(t, "append_file", ws, machine.Values{"path": "log", "content": "x"})
	if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, `"log" has 1048576 bytes and would have more than the 1048576 that a file may have`) {
		t.Errorf("beyond the limit: %+v", got)
	}
	if info, err := os.Stat(filepath.Join(ws, "log")); err != nil || info.Size() != maxFile {
		t.Errorf("size %v, %v", info.Size(), err)
	}
}

// A link is not written through, also where it stays inside: what is told as changed is what is changed.
func TestAppendAndEditRefuseLinks(t *testing.T) {
	ws := sandbox(t)
	for name, args := range map[string]machine.Values{"append_file": {"content": "x"}, "edit_file": {"old": "beta", "new": "x"}} {
		args["path"] = "in.txt"
		if got := runTool(t, name, ws, args); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "not a plain file") {
			t.Errorf("%s: %+v", name, got)
		}
		args["path"] = "sub"
		if got := runTool(t, name, ws, args); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "is a folder") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if text := textOf(t, filepath.Join(ws, "sub", "b.txt")); text != "beta" {
		t.Errorf("the file behind the link holds %q", text)
	}
}

func TestEditFile(t *testing.T) {
	for _, test := range []struct{ name, text, old, new, want, problem string }{
		{"a word", "one two three", "two", "2", "one 2 three", ""},
		{"lines", "a\nb\nc\n", "b\nc", "x", "a\nx\n", ""},
		{"nothing in its place", "a b c", " b", "", "a c", ""},
		{"the whole file", "a", "a", "", "", ""},
		{"new holds old", "x = 1", "x", "xx", "xx = 1", ""},
		{"no expansion", "a.b", "a.b", "$1\\n", "$1\\n", ""},
		{"not there", "a b", "c", "d", "", `old stands in "f" 0 times; read the file and copy the passage from it`},
		{"done before", "a d", "c", "d", "", `0 times; new stands there already`},
		{"other blanks", "x\nif  a {\n\tb\n}\n", "if a {\n  b\n}", "c", "", "0 times; with other blanks or line breaks it begins in line 2"},
		{"other line breaks", "a\r\nb\r\n", "a\nb", "c", "", `0 times; its lines end in \r\n`},
		{"twice", "a\nb\na\n", "a", "c", "", `old stands in "f" 2 times (lines 1, 3); take more of what is around the right one into old`},
		{"twice, overlapping", "aaa", "aa", "c", "", "2 times (lines 1, 1)"},
		{"often", strings.Repeat("\n", 12), "\n", "c", "", "12 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"},
		{"no change", "a", "a", "a", "", "old and new are the same"},
		{"too large", "a", "a", strings.Repeat("x", maxFile+1), "", "would have 1048577 bytes, more than the 1048576"},
		{"no text", "a\xff", "a", "b", "", "is not a text file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ws := fileIn(t, "f", test.text)
			got := runTool(t, "edit_file", ws, machine.Values{"path": "f", "old": test.old, "new": test.new})
			want := test.want
			if test.problem != "" {
				want = test.text
				if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, test.problem) {
					t.Errorf("got %+v", got)
				}
			} else if !reflect.DeepEqual(got.Value, machine.Values{"replaced": int64(1), "bytes": int64(len(want))}) {
				t.Errorf("got %+v", got)
			}
			if text := textOf(t, filepath.Join(ws, "f")); text != want {
				t.Errorf("the file holds %q", text)
			}
			if info, err := os.Stat(filepath.Join(ws, "f")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
	if got := runTool(t, "edit_file", t.TempDir(), machine.Values{"path": "f", "old": "a", "new": "b"}); got.Problem.Kind != "none_found" {
		t.Errorf("got %+v", got)
	}
}

// A call that was given up before anything was written says so.
func TestAppendAndEditUnderAnEndedContext(t *testing.T) {
	ws := fileIn(t, "f", "a")
	d := folder{path: ws, flow: ws}
	_, appended := d.append(endedContext(t), tool.Call{}, appendArgs{Path: "f", Content: "x"})
	_, changed := d.edit(endedContext(t), tool.Call{}, editArgs{Path: "f", Old: "a", New: "b"})
	for _, err := range []error{appended, changed} {
		var e *tool.Error
		if !errors.As(err, &e) || e.Status != tool.Failed || e.Kind != tool.KindCancelled {
			t.Errorf("got %v", err)
		}
	}
	if text := textOf(t, filepath.Join(ws, "f")); text != "a" {
		t.Errorf("the file holds %q", text)
	}
	none := folder{path: filepath.Join(ws, "none"), flow: ws}
	if _, err := none.append(endedContext(t), tool.Call{}, appendArgs{Path: "deep/er/f", Content: "x"}); err == nil {
		t.Error("something was appended")
	}
	if _, err := d.append(endedContext(t), tool.Call{}, appendArgs{Path: "deep/er/f", Content: "x"}); err == nil {
		t.Error("something was appended")
	}
	if _, err := d.write(endedContext(t), tool.Call{}, writeArgs{Path: "deep/er/f", Content: "x"}); err == nil {
		t.Error("something was written")
	}
	_, err := d.edit(endedContext(t), tool.Call{}, editArgs{Path: "f", Old: "not there", New: "b"})
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("got %v", err)
	}
	if files, err := os.ReadDir(ws); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// A file that repeats itself costs no more than any other.
func TestEditOfWhatRepeatsItself(t *testing.T) {
	start := time.Now()
	words := strings.Repeat("a ", maxFile/2)
	if line := looseMatch(words+"\n"+words+"b", words+"b"); line != 2 {
		t.Errorf("it begins in line %d", line)
	}
	if line := looseMatch(words, words[:maxFile/2]+"b"); line != 0 {
		t.Errorf("it begins in line %d", line)
	}
	ws := fileIn(t, "f", strings.Repeat("a", maxFile))
	got := runTool(t, "edit_file", ws, machine.Values{"path": "f", "old": strings.Repeat("a", maxFile/2), "new": "b"})
	if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "at least 100 times (lines 1, 1,") {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestLooseMatch(t *testing.T) {
	for _, test := range []struct {
		text, passage string
		want          int
	}{
		{"a b\nc", "b  c", 1}, {"x\na a\na b", "a a b", 2}, {"a\na\na\nb", "a\ta b", 2}, {"a b a\nb a c", "a b a c", 1}, {"ab", "a b", 0}, {"a", " ", 0},
		{"a b a b\na b c", "a b a b c", 1}, {"", "a", 0},
	} {
		if got := looseMatch(test.text, test.passage); got != test.want {
			t.Errorf("%q in %q: line %d, want %d", test.passage, test.text, got, test.want)
		}
	}
}

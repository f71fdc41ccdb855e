package builtin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// runTool calls a builtin as the executor does.
func runTool(t *testing.T, name, root string, args machine.Values) tool.Result {
	t.Helper()
	kind := New()
	made, err := kind.New(machine.ToolSpec{Name: name, Config: &Config{Name: name, Root: root, kind: kind}}, tool.Env{Dir: filepath.Dir(root)})
	if err != nil {
		t.Fatal(err)
	}
	made.Spec.Effect = machine.EffectRead
	return tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made, Values: args}, tool.Call{}).Result
}

// sandbox makes a folder ws with some files, and beside it what nobody may reach.
func sandbox(t *testing.T) (ws string) {
	t.Helper()
	top := t.TempDir()
	ws = filepath.Join(top, "ws")
	for path, text := range map[string]string{
		"ws/a.txt": "alpha", "ws/sub/b.txt": "beta", "ws/empty": "", "ws/..dots": "dots",
		"secret.txt": "top secret", "ws-secret/x": "sibling secret",
	} {
		path = filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"out": "../ws-secret", "out.txt": "../secret.txt", "abs": filepath.Join(top, "ws-secret"), "etc": "/etc",
		"in.txt": "sub/b.txt", "in": "sub", "nowhere": "../new-file", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	return ws
}

// snapshot gives all files below dir with their text, to see that nothing outside was touched.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, sub := range []string{"secret.txt", "ws-secret/x", "new-file", "ws-secret/new", "x"} {
		data, err := os.ReadFile(filepath.Join(dir, sub))
		if err == nil {
			files[sub] = string(data)
		}
	}
	return files
}

func TestFilesNeverLeaveTheirFolder(t *testing.T) {
	ws := sandbox(t)
	top := filepath.Dir(ws)
	before := snapshot(t, top)
	paths := []string{
		"../secret.txt", "../ws-secret/x", "../ws-secret", "sub/../../secret.txt", "a/../../etc/passwd", "..", "../", "../ws/a.txt",
		"/etc/passwd", filepath.Join(top, "secret.txt"), filepath.Join(ws, "a.txt"),
		"out/x", "out/new", "out", "out.txt", "abs/x", "etc/passwd", "nowhere", "loop", "loop/x", "../x", "a\x00b",
	}
	for _, path := range paths {
		for _, name := range []string{"read_file", "write_file", "append_file", "edit_file", "list_dir"} {
			args := machine.Values{"path": path}
			switch name {
			case "write_file", "append_file":
				args["content"] = "overwritten"
			case "edit_file":
				args["old"], args["new"] = "secret", "overwritten"
			}
			got := runTool(t, name, ws, args)
			if got.Status != tool.Refused && got.Status != tool.Failed || got.Value != nil {
				t.Errorf("%s %q: %+v", name, path, got)
			}
			if strings.Contains(got.Problem.Message, top) && !filepath.IsAbs(path) {
				t.Errorf("%s %q tells where the folder lies: %s", name, path, got.Problem.Message)
			}
		}
	}
	if after := snapshot(t, top); !reflect.DeepEqual(after, before) {
		t.Errorf("outside was touched: %v", after)
	}
}

func TestReadFile(t *testing.T) {
	ws := sandbox(t)
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(ws, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("binary", []byte{0xff, 0xfe, 0})
	write("large", []byte(strings.Repeat("x", maxFile)))
	write("too-large", []byte(strings.Repeat("x", maxFile+1)))
	tests := []struct{ path, want, problem, kind string }{
		{"a.txt", "alpha", "", ""}, {"sub/b.txt", "beta", "", ""}, {"./sub/../a.txt", "alpha", "", ""}, {"in.txt", "beta", "", ""},
		{"in/b.txt", "beta", "", ""}, {"empty", "", "", ""}, {"..dots", "", `"..dots" is hidden`, "refused"}, {"large", strings.Repeat("x", maxFile), "", ""},
		{"missing", "", `there is no "missing"`, "none_found"}, {"sub/missing", "", `there is no "sub/missing"`, "none_found"},
		{"sub", "", "is a folder; list_dir lists it", "failed"}, {"binary", "", "not UTF-8", "failed"},
		{"too-large", "", "larger than 1048576 bytes", "failed"}, {"/etc/passwd", "", "absolute path", "refused"},
		{"../secret.txt", "", "leads out of the folder", "refused"}, {"a.txt/x", "", `"a.txt/x"`, "failed"},
	}
	for _, test := range tests {
		got := runTool(t, "read_file", ws, machine.Values{"path": test.path})
		if test.problem != "" {
			if got.Problem.Kind != test.kind || !strings.Contains(got.Problem.Message, test.problem) {
				t.Errorf("%s: got %+v", test.path, got)
			}
			continue
		}
		if got.Status != tool.OK || got.Value != test.want {
			t.Errorf("%s: got %+v", test.path, got)
		}
	}
}

func TestWriteFile(t *testing.T) {
	ws := sandbox(t)
	for _, path := range []string{"new.txt", "a.txt", "deep/er/x.txt", "sub/b.txt", "in/c.txt"} {
		for range 2 { // the same again changes nothing
			got := runTool(t, "write_file", ws, machine.Values{"path": path, "content": "日本"})
			if got.Status != tool.OK || !reflect.DeepEqual(got.Value, machine.Values{"bytes": int64(6)}) {
				t.Fatalf("%s: %+v", path, got)
			}
			if data, err := os.ReadFile(filepath.Join(ws, path)); err != nil || string(data) != "日本" {
				t.Errorf("%s holds %q, %v", path, data, err)
			}
		}
	}
	for path, want := range map[string]string{"sub": "is a folder", "in.txt": "not a plain file", ".": "is a folder", "a.txt/x": "a.txt/x"} {
		if got := runTool(t, "write_file", ws, machine.Values{"path": path, "content": "x"}); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := runTool(t, "write_file", ws, machine.Values{"path": "big", "content": strings.Repeat("x", maxFile+1)}); got.Status != tool.Failed {
		t.Errorf("a file that is too large was written: %+v", got)
	}
	err := filepath.WalkDir(ws, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".flowctl-") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileKeepsTheMode(t *testing.T) {
	ws := sandbox(t)
	path := filepath.Join(ws, "a.txt")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	runTool(t, "write_file", ws, machine.Values{"path": "a.txt", "content": "x"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A call that was given up before the file was put in place changes nothing and says so.
func TestWriteFileUnderAnEndedContext(t *testing.T) {
	ws := sandbox(t)
	ctx := endedContext(t)
	_, err := folder{path: ws, flow: ws}.write(ctx, tool.Call{}, writeArgs{Path: "a.txt", Content: "x"})
	var e *tool.Error
	if !errors.As(err, &e) || e.Status != tool.Failed || e.Kind != tool.KindCancelled {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(filepath.Join(ws, "a.txt")); string(data) != "alpha" {
		t.Errorf("the file holds %q", data)
	}
	if found, _ := filepath.Glob(filepath.Join(ws, ".flowctl-*")); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

func TestListDir(t *testing.T) {
	ws := sandbox(t)
	entry := func(name string, dir bool, size int64) machine.Value {
		return machine.Values{"name": name, "dir": dir, "size": size}
	}
	got := runTool(t, "list_dir", ws, machine.Values{})
	want := []machine.Value{
		entry("a.txt", false, 5), entry("abs", false, 0), entry("empty", false, 0), entry("etc", false, 0),
		entry("in", true, 0), entry("in.txt", false, 4), entry("loop", false, 0), entry("nowhere", false, 0), entry("out", false, 0),
		entry("out.txt", false, 0), entry("sub", true, 0),
	}
	if got.Status != tool.OK || !reflect.DeepEqual(got.Value, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, path := range []string{"sub", "./sub/", "in"} {
		got := runTool(t, "list_dir", ws, machine.Values{"path": path})
		if !reflect.DeepEqual(got.Value, []machine.Value{entry("b.txt", false, 4)}) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := runTool(t, "list_dir", ws, machine.Values{"path": "a.txt"}); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "is not a folder") {
		t.Errorf("got %+v", got)
	}
	empty := t.TempDir()
	if got := runTool(t, "list_dir", empty, nil); !reflect.DeepEqual(got.Value, []machine.Value{}) {
		t.Errorf("an empty folder: %+v", got)
	}
	for i := range maxEntries + 1 {
		if err := os.WriteFile(filepath.Join(empty, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := runTool(t, "list_dir", empty, nil); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "more than 1000") {
		t.Errorf("got %+v", got)
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	flow := t.TempDir()
	root := filepath.Join(flow, "data", "out")
	for _, name := range []string{"read_file", "list_dir"} {
		if got := runTool(t, name, root, machine.Values{"path": "x"}); got.Status != tool.Unavailable {
			t.Errorf("%s: %+v", name, got)
		}
	}
	write := func(d folder) error {
		_, err := d.write(t.Context(), tool.Call{}, writeArgs{Path: "x", Content: "y"})
		return err
	}
	var e *tool.Error
	if err := write(folder{path: root, flow: filepath.Join(flow, "gone")}); !errors.As(err, &e) || e.Status != tool.Unavailable {
		t.Errorf("the flow's folder is gone: %v", err)
	}
	if err := write(folder{path: root, flow: flow}); err != nil {
		t.Errorf("the folder was not made: %v", err)
	}
}

package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// fileTools are the tools that take a path, with what else they need.
var fileTools = map[string]machine.Values{
	"read_file": {}, "list_dir": {}, "write_file": {"content": "x"}, "append_file": {"content": "x"}, "edit_file": {"old": "text", "new": "x"},
}

// inFolder calls a file tool of a flow; root is as it stands in the declaration.
func inFolder(t *testing.T, name, flow, root, path string) tool.Result {
	t.Helper()
	kind := New()
	made, err := kind.New(machine.ToolSpec{Name: name, Config: &Config{Name: name, Root: root, kind: kind}}, tool.Env{Dir: flow})
	if err != nil {
		t.Fatal(err)
	}
	args := machine.CloneValues(fileTools[name])
	args["path"] = path
	return tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made, Values: args}, tool.Call{}).Result
}

// Hidden files are left alone by every tool, in every folder.
func TestHiddenFilesAreLeftAlone(t *testing.T) {
	ws := searchFolder(t, map[string]string{".env": "text", ".git/config": "text", "sub/.ssh/key": "text", "a.txt": "text", "sub/b.txt": "text"})
	for name := range fileTools {
		for _, path := range []string{".env", "./.env", ".git/config", ".git", "sub/.ssh/key", "sub/../.env", ".new", "sub/.new/x", "a/..b", "..."} {
			got := inFolder(t, name, t.TempDir(), ws, path)
			if got.Status != tool.Refused || !strings.Contains(got.Problem.Message, "is hidden, since ") {
				t.Errorf("%s %s: %+v", name, path, got)
			}
		}
	}
	if text := textOf(t, filepath.Join(ws, ".env")) + textOf(t, filepath.Join(ws, "sub/.ssh/key")); text != "texttext" {
		t.Errorf("the files hold %q", text)
	}
	for _, path := range []string{"a.txt", "./a.txt", "sub/../a.txt", "sub/./b.txt"} {
		if got := inFolder(t, "read_file", t.TempDir(), ws, path); got.Value != "text" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	got, _ := inFolder(t, "list_dir", t.TempDir(), ws, ".").Value.([]machine.Value)
	if len(got) != 2 {
		t.Errorf("listed %v", got)
	}
}

// A tool that works where the flow lies does not change what the flow is made of.
func TestTheFlowIsNotChanged(t *testing.T) {
	names := []string{"flow.yaml", "child.yml", "shop.sql", "shop.db", "shop.db-wal", "shop.db-shm", "shop.db-journal", "sub/flow.yaml", "FLOW.YAML", "flow.yaml.", "new.yaml"}
	files := map[string]string{"notes.txt": "text", "data.json": "text", "sub/yaml": "text"}
	for _, name := range names[:8] {
		files[name] = "text"
	}
	flow := searchFolder(t, files)
	for _, root := range []string{"", ".", "sub/..", "..", filepath.Dir(flow), flow} {
		below := ""
		if root == ".." || root == filepath.Dir(flow) {
			below = filepath.Base(flow) + "/"
		}
		for _, tool := range []string{"write_file", "append_file", "edit_file"} {
			for _, name := range append(names, "sub/../flow.yaml", "flow.yaml/.") {
				got := inFolder(t, tool, flow, root, below+name)
				if got.Status != "refused" || !strings.Contains(got.Problem.Message, "give the tool a root of its own") {
					t.Errorf("%s %s in %q: %+v", tool, name, root, got)
				}
			}
		}
	}
	for name, want := range files {
		if text := textOf(t, filepath.Join(flow, name)); text != want {
			t.Errorf("%s holds %q", name, text)
		}
	}
	if _, err := os.Stat(filepath.Join(flow, "new.yaml")); err == nil {
		t.Error("new.yaml was made")
	}
	for _, test := range []struct{ tool, root, path string }{
		{"read_file", "", "flow.yaml"}, {"write_file", "", "notes.txt"}, {"append_file", "", "data.json"}, {"write_file", "", "sub/yaml"},
		{"edit_file", "sub", "flow.yaml"}, {"write_file", "out", "new.yaml"},
	} {
		if got := inFolder(t, test.tool, flow, test.root, test.path); got.Status != tool.OK {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

//go:build unix

package builtin

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// A pipe without a writer would block its reader for ever.
func TestPipesAreRefusedAtOnce(t *testing.T) {
	ws := sandbox(t)
	if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o644); err != nil {
		t.Skip("no pipes here:", err)
	}
	start := time.Now()
	for name, args := range map[string]machine.Values{"read_file": {}, "write_file": {"content": "x"}, "append_file": {"content": "x"},
		"edit_file": {"old": "a", "new": "b"}, "list_dir": {}} {
		args["path"] = "pipe"
		want := "not a plain file"
		if name == "list_dir" {
			want = "is not a folder"
		}
		if got := runTool(t, name, ws, args); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := runTool(t, "search_files", ws, machine.Values{"pattern": "alpha"}); got.Status != tool.OK {
		t.Errorf("search_files beside a pipe: %+v", got)
	}
	if got := runTool(t, "list_dir", ws, nil); got.Status != tool.OK {
		t.Errorf("list_dir beside a pipe: %+v", got)
	}
	if got := runTool(t, "append_file", "/dev", machine.Values{"path": "null", "content": "x"}); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "not a plain file") {
		t.Errorf("device: %+v", got)
	}
	if got := runTool(t, "read_file", "/dev", machine.Values{"path": "zero"}); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "not a plain file") {
		t.Errorf("device: %+v", got)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %s", took)
	}
}

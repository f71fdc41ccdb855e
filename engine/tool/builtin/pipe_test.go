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
	for name, want := range map[string]string{"read_file": "not a plain file", "write_file": "not a plain file", "list_dir": "is not a folder"} {
		got := runTool(t, name, ws, machine.Values{"path": "pipe", "content": "x"})
		if name != "write_file" {
			got = runTool(t, name, ws, machine.Values{"path": "pipe"})
		}
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := runTool(t, "list_dir", ws, nil); got.Status != tool.OK {
		t.Errorf("list_dir beside a pipe: %+v", got)
	}
	if got := runTool(t, "read_file", "/dev", machine.Values{"path": "zero"}); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "not a plain file") {
		t.Errorf("device: %+v", got)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %s", took)
	}
}

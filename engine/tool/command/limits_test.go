//go:build linux

package command

import (
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

func TestMemoryLimit(t *testing.T) {
	tl := setting{}.made(t, `{args: [CHILD, fill, "{{ args.n }}"], memory: 512MiB}`)
	if got := printed(t, call(t.Context(), tl, machine.Values{"n": int64(8)})); got != "8388608" {
		t.Errorf("got %s", got)
	}
	got := call(t.Context(), tl, machine.Values{"n": int64(1024)})
	if got.Status != tool.Failed || !strings.HasSuffix(got.Problem.Message, "ended with exit code 1: cannot allocate memory") {
		t.Errorf("got %+v", got)
	}
}

func TestCPULimit(t *testing.T) {
	got := call(t.Context(), setting{effect: "write"}.made(t, `{args: [CHILD, spin], cpu: 200ms}`), nil)
	if got.Status != tool.Unknown || !strings.HasSuffix(got.Problem.Message, ", since it had used up its cpu time of 1s, outcome unknown") {
		t.Errorf("got %+v", got)
	}
}

// A process that has ended already needs no limits.
func TestLimitOfAnEndedProcess(t *testing.T) {
	tl := setting{}.made(t, `{args: [CHILD, exit, "0"], memory: 512MiB, cpu: 5s}`)
	for range 20 {
		if got := call(t.Context(), tl, nil); got.Status != tool.OK {
			t.Fatalf("got %+v", got)
		}
	}
}

package engine

import (
	"os"
	"os/exec"
	"testing"

	"flowctl/store"
)

func TestProcessThatIsGone(t *testing.T) {
	self := thisProcess()
	if self.Started == "" {
		t.Skip("this system does not tell when a process started")
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Skip("there is no cat")
	}
	other := self
	other.PID, other.Started = child.Process.Pid, processStart(child.Process.Pid)
	gone := processGone(self)
	for name, w := range map[string]store.Worker{"this process": self, "a process that lives": other} {
		if gone(w) {
			t.Errorf("%s counts as gone", name)
		}
	}
	reused := other
	reused.Started = "1"
	if !gone(reused) {
		t.Error("a process whose number another one has now does not count as gone")
	}
	_ = in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if !gone(other) {
		t.Error("a process that has ended does not count as gone")
	}
	for name, change := range map[string]func(*store.Worker){
		"another boot":      func(w *store.Worker) { w.Boot = "other" },
		"another namespace": func(w *store.Worker) { w.Namespace = "other" },
		"no boot":           func(w *store.Worker) { w.Boot = "" },
		"no namespace":      func(w *store.Worker) { w.Namespace = "" },
		"no start time":     func(w *store.Worker) { w.Started = "" },
	} {
		w := other
		change(&w)
		if gone(w) {
			t.Errorf("%s: it counts as gone, which nobody can know", name)
		}
	}
	if processStart(os.Getpid()) != self.Started || processStart(-1) != "" {
		t.Error("start times are not as expected")
	}
}

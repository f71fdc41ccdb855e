package command

import (
	"os"
	"os/exec"
	"testing"
)

// A command dies with the flowctl that has started it, also where that is killed.
func TestACommandDiesWithUs(t *testing.T) {
	g := newGate(t)
	us := exec.Command(os.Args[0], "child", "flowctl", "stubborn", g.address())
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	started := g.next()
	if err := us.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = us.Wait() // it was killed
	started.gone(t)
}

//go:build !unix

package command

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: this system has no groups that could be ended as one.
func ownGroup(*exec.Cmd) {}

// terminate ends the program itself.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// kill ends the program itself, if it has not ended.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // an error says that it has ended

// killedBy says that no signal ended a process, for there are none.
func killedBy(*os.ProcessState) (name string, number int, ok bool) { return "", 0, false }

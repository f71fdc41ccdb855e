//go:build !unix

package program

import (
	"os"
	"os/exec"
)

// OwnGroup does nothing: this system has no groups that could be ended as one.
func OwnGroup(*exec.Cmd) {}

// Terminate ends the program itself. An error says that it has ended.
func Terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// Kill ends the program itself, if it has not ended.
func Kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // an error says that it has ended

// KilledBy says that no signal ended a process, for there are none.
func KilledBy(*os.ProcessState) (name string, number int, ok bool) { return "", 0, false }

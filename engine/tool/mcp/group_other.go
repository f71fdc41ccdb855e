//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: this system has no groups that could be ended as one.
func ownGroup(*exec.Cmd) {}

// terminate ends the program itself.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // an error says that it has ended

// kill ends the program itself, if it has not ended.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // an error says that it has ended

// signalOf says that no signal ended a process, for there are none.
func signalOf(*os.ProcessState) (string, bool) { return "", false }

//go:build unix

package command

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the command the first process of a group of its own, so that all that it starts can be ended with it, and
// so that a Ctrl-C meant for flowctl does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks all processes of the command to end.
func terminate(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends what is left of the command. It may come after the command itself has ended: as long as one process of the
// group lives, its number belongs to nobody else, and a number that was just given back is the last to be used again.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // an error says that nothing is left

// killedBy gives the signal that ended a process, for people, and its number.
func killedBy(state *os.ProcessState) (name string, number int, ok bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return "", 0, false
	}
	return status.Signal().String(), int(status.Signal()), true
}

//go:build unix

package program

import (
	"os"
	"os/exec"
	"syscall"
)

// OwnGroup makes the program the first process of a group of its own, so that all that it starts can be ended with it, and
// so that a Ctrl-C meant for flowctl does not reach it. Call it before the program is started.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Terminate asks all processes of a started program to end. An error says that nothing is left.
func Terminate(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// Kill ends what is left of a started program. It may come after the program itself has ended: as long as one process of
// the group lives, its number belongs to nobody else, and a number that was just given back is the last to be used again.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // an error says that nothing is left

// KilledBy gives the signal that ended a process, for people, and its number.
func KilledBy(state *os.ProcessState) (name string, number int, ok bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return "", 0, false
	}
	return status.Signal().String(), int(status.Signal()), true
}

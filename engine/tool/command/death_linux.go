package command

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the system kill the command when flowctl is killed: what it would still do afterwards, a human would be asked
// about in vain. The system does so when the thread ends that has started the command, so that thread must wait for it.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

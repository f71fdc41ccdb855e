package command

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const canLimit = true

// set limits a process that has just been started; what it starts later inherits the limits. A process that has ended
// meanwhile needs none.
//
// Memory is what the process can write to and shares with nobody (RLIMIT_DATA): unlike the address space it does not count
// what many runtimes only reserve. Past the CPU time the system sends SIGXCPU, and a second later SIGKILL.
func (l limits) set(pid int) error {
	var errs []error
	if l.memory > 0 {
		errs = append(errs, limit(pid, unix.RLIMIT_DATA, l.memory, l.memory))
	}
	if l.cpu > 0 {
		seconds := uint64(l.cpu / time.Second)
		errs = append(errs, limit(pid, unix.RLIMIT_CPU, seconds, seconds+1))
	}
	return errors.Join(errs...)
}

// limit lowers one limit, never above what the process may have already.
func limit(pid, resource int, soft, hard uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return ended(err)
	}
	hard = min(hard, old.Max)
	return ended(unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(soft, hard), Max: hard}, nil))
}

// ended drops the error of a process that is not there any more.
func ended(err error) error {
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return fmt.Errorf("its limits could not be set (%w)", err)
}

package engine

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"flowctl/store"
)

// newULID makes run ids that sort by the time of their making.
func newULID(now func() time.Time) func() string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(rand.Reader, 0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		id, err := ulid.New(ulid.Timestamp(now()), entropy)
		if err != nil { // more ids in a millisecond than the entropy can count
			entropy = ulid.Monotonic(rand.Reader, 0)
			id = ulid.MustNew(ulid.Timestamp(now()), entropy)
		}
		return id.String()
	}
}

// thisProcess says who this process is: what a later one needs to tell whether it is gone.
func thisProcess() store.Worker {
	return store.Worker{ID: newULID(time.Now)(), Boot: bootID(), Namespace: pidNamespace(), PID: os.Getpid(),
		Started: processStart(os.Getpid())}
}

// bootID names the machine's present boot, "" where the system does not tell.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// pidNamespace names the namespace that process ids are of, "" where the system does not tell.
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// processStart gives the start time of a process in the system's ticks since boot, "" when there is no such process or
// the system does not tell.
func processStart(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in parentheses may hold blanks; the state is field 3 and the start time field 22 of proc(5).
	_, rest, ok := strings.Cut(string(data), ") ")
	if end := strings.LastIndex(string(data), ") "); end >= 0 {
		rest = string(data)[end+2:]
	}
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// processGone says of other workers whether their process is known to be gone: only of those of our boot and process
// namespace can that be told. Where the system does not tell, nobody is known to be gone and their heartbeats decide.
func processGone(self store.Worker) func(store.Worker) bool {
	return func(w store.Worker) bool {
		if w.Boot == "" || w.Namespace == "" || self.Started == "" {
			return false
		}
		if w.Boot != self.Boot {
			return false // another machine, or an earlier boot: its heartbeat tells
		}
		if w.Namespace != self.Namespace {
			return false
		}
		return processStart(w.PID) != w.Started
	}
}

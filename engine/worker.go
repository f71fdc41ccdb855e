package engine

import (
	"bytes"
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
	// The name in parentheses may hold anything; behind it the state is the first field and the start time the twentieth, see
	// proc(5). A process that is dead and not yet waited for counts as gone.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// processGone says of other workers whether their process is known to be gone: only of those of our boot and process
// namespace can that be told. Where the system does not tell, nobody is known to be gone and their heartbeats decide.
func processGone(self store.Worker) func(store.Worker) bool {
	return func(w store.Worker) bool {
		known := w.Boot != "" && w.Namespace != "" && w.Started != "" && self.Started != ""
		if !known || w.Boot != self.Boot || w.Namespace != self.Namespace {
			return false // of another machine, boot or container its heartbeat tells
		}
		return processStart(w.PID) != w.Started
	}
}

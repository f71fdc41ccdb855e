//go:build unix

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// living is a process that has connected to a test.
type living struct {
	conn net.Conn
	pid  int
}

// gate is where processes of a test connect to, so that the test knows that they are there and when they are gone.
type gate struct {
	net.Listener
	t *testing.T
}

func newGate(t *testing.T) gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return gate{l, t}
}

func (g gate) address() string { return g.Addr().String() }

// next waits for a process.
func (g gate) next() living {
	g.t.Helper()
	conn, err := g.Accept()
	if err != nil {
		g.t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		g.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		g.t.Fatal(err)
	}
	return living{conn, pid}
}

// gone waits until the process has ended.
func (l living) gone(t *testing.T) {
	t.Helper()
	defer l.conn.Close()
	if err := l.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, l.conn); os.IsTimeout(err) {
		t.Errorf("process %d lives on", l.pid)
	}
}

// late is a context whose deadline is over when the test says so.
type late struct {
	context.Context
	done chan struct{}
}

func (l late) Done() <-chan struct{} { return l.done }

func (l late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// answer is how a call ended.
type answer struct {
	value machine.Value
	err   error
}

// is says whether the call ended with a status and a kind.
func (a answer) is(status tool.Status, kind string) bool {
	var e *tool.Error
	return errors.As(a.err, &e) && e.Status == status && e.Kind == kind
}

// begin makes a call in the background.
func begin(ctx context.Context, tl tool.Tool) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		value, err := tl.Run(ctx, tool.Call{Key: "r1/2.0", RunID: "r1"})
		done <- answer{value, err}
	}()
	return done
}

// quick makes a kind that does not wait long for commands that do not listen.
func quick(t *testing.T) *Kind {
	t.Helper()
	k := newKind(t)
	k.patience = 50 * time.Millisecond
	return k
}

// A command whose time is up, or that is cancelled, is ended with all that it has started, also where nobody listens.
func TestStop(t *testing.T) {
	for _, what := range []string{"stay", "stubborn", "parent, stay", "parent, stubborn", "parent, parent, stubborn"} {
		for _, effect := range []string{"read", "idempotent", "write"} {
			g := newGate(t)
			tl := setting{kind: quick(t), effect: effect}.made(t, fmt.Sprintf(`{args: [CHILD, %s, %q]}`, what, g.address()))
			status, timeout, cancelled, more := tool.Unknown, "", "", ", outcome unknown"
			if effect == "read" {
				status, timeout, cancelled, more = tool.Failed, tool.KindTimeout, tool.KindCancelled, ""
			}

			ctx := late{t.Context(), make(chan struct{})}
			done := begin(ctx, tl)
			process := g.next()
			close(ctx.done)
			got := <-done
			process.gone(t)
			if !got.is(status, timeout) || got.err.Error() != "t timed out after 1m0s"+more {
				t.Errorf("%s of a %s: got %v", what, effect, got)
			}

			stop, cancel := context.WithCancel(t.Context())
			done = begin(stop, tl)
			process = g.next()
			cancel()
			got = <-done
			process.gone(t)
			if !got.is(status, cancelled) || got.err.Error() != "t was cancelled"+more {
				t.Errorf("%s of a %s: got %v", what, effect, got)
			}
		}
	}
}

// A program that ends well when it is told to stop has not done its work for that. What it has printed is kept.
func TestStopOfAPoliteCommand(t *testing.T) {
	g := newGate(t)
	tl := setting{effect: "write"}.made(t, fmt.Sprintf(`{args: [CHILD, polite, %q]}`, g.address()))
	ctx := late{t.Context(), make(chan struct{})}
	done := begin(ctx, tl)
	process := g.next()
	close(ctx.done)
	got := <-done
	process.gone(t)
	var e *tool.Error
	want := machine.Values{"exit_code": int64(0), "stdout": "so far", "stderr": ""}
	if !errors.As(got.err, &e) || e.Status != tool.Unknown || !reflect.DeepEqual(e.Value, want) {
		t.Errorf("got %+v", got)
	}
}

// The executor believes what the kind says of a command whose time was up.
func TestTimeout(t *testing.T) {
	g := newGate(t)
	tl := setting{effect: "write", timeout: "1s"}.made(t, fmt.Sprintf(`{args: [CHILD, stay, %q]}`, g.address()))
	got := call(t.Context(), tl, nil)
	if got.Status != tool.Unknown || got.Problem.Message != "t timed out after 1s, outcome unknown" {
		t.Errorf("got %+v", got)
	}
	g.next().gone(t)
}

// A call whose time was up before anything was started has done nothing.
func TestStoppedBeforeTheStart(t *testing.T) {
	tl := setting{effect: "write"}.made(t, `{args: [CHILD, args]}`)
	ctx := late{t.Context(), make(chan struct{})}
	close(ctx.done)
	if got := <-begin(ctx, tl); !got.is(tool.Failed, tool.KindTimeout) || got.err.Error() != "t timed out, nothing was changed" {
		t.Errorf("got %+v", got)
	}
}

// What a command leaves behind is killed with it. A process that has left the group lives on. Neither holds up the call,
// though it has the command's output.
func TestLeftBehind(t *testing.T) {
	for _, how := range []string{"leave", "escape"} {
		program, other := newGate(t), newGate(t)
		tl := setting{kind: quick(t), effect: "write"}.made(t,
			fmt.Sprintf(`{args: [CHILD, %s, %q, stubborn, %q]}`, how, program.address(), other.address()))
		done := begin(t.Context(), tl)
		process := other.next()
		waiting, err := program.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := waiting.Close(); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if value, _ := got.value.(machine.Values); got.err != nil || value["stdout"] != "left" {
			t.Errorf("%s: got %+v", how, got)
		}
		if how == "escape" {
			if err := syscall.Kill(process.pid, syscall.SIGKILL); err != nil {
				t.Errorf("the other process is gone: %v", err)
			}
		}
		process.gone(t)
	}
}

// A command that a signal has killed did not come to its own end.
func TestKilledBySignal(t *testing.T) {
	for number, name := range map[syscall.Signal]string{syscall.SIGKILL: "killed", syscall.SIGTERM: "terminated"} {
		for effect, status := range map[string]tool.Status{"read": tool.Failed, "idempotent": tool.Unknown, "write": tool.Unknown} {
			got := call(t.Context(), setting{effect: effect}.made(t, fmt.Sprintf(`{args: [CHILD, die, "%d"]}`, number)), nil)
			want := machine.Values{"exit_code": int64(128 + number), "stdout": "half", "stderr": ""}
			if got.Status != status || !reflect.DeepEqual(got.Value, want) || !strings.Contains(got.Problem.Message, "was killed by a signal ("+name+")") {
				t.Errorf("%s of a %s: got %+v", name, effect, got)
			}
		}
	}
}

// An attempt that was given up is over before the next one at the same call starts.
func TestAttemptsDoNotMeet(t *testing.T) {
	g := newGate(t)
	tl := setting{kind: quick(t), effect: "idempotent"}.made(t, fmt.Sprintf(`{args: [CHILD, stubborn, %q]}`, g.address()))
	first, giveUp := context.WithCancel(t.Context())
	firstDone := begin(first, tl)
	process := g.next()

	waiting, stopWaiting := context.WithCancel(t.Context())
	waitingDone := begin(waiting, tl)
	stopWaiting()
	if got := <-waitingDone; !got.is(tool.Failed, tool.KindCancelled) || got.err.Error() != "t was cancelled, nothing was changed" {
		t.Errorf("got %+v", got)
	}

	second, stop := context.WithCancel(t.Context())
	secondDone := begin(second, tl)
	giveUp()
	next := g.next()
	if err := syscall.Kill(process.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("both attempts were under way at once (%v)", err)
	}
	process.gone(t)
	stop()
	next.gone(t)
	for _, done := range []<-chan answer{firstDone, secondDone} {
		if got := <-done; !got.is(tool.Unknown, "") {
			t.Errorf("got %+v", got)
		}
	}
}

// Close ends what is under way and waits for it; no call comes later.
func TestClose(t *testing.T) {
	g := newGate(t)
	k := quick(t)
	tl := setting{kind: k, effect: "write"}.made(t, fmt.Sprintf(`{args: [CHILD, parent, stubborn, %q]}`, g.address()))
	done := begin(t.Context(), tl)
	process := g.next()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	select {
	case got := <-done:
		if !got.is(tool.Unknown, "") {
			t.Errorf("got %+v", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("Close did not end the call")
	}
	process.gone(t)
	if got := call(t.Context(), tl, nil); got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, "shutting down") {
		t.Errorf("got %+v", got)
	}
}

//go:build unix

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"flowctl/engine/tool/program"
)

// TestMain is also the program that the tests run: with the word child and what it shall do behind it.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		exit(0)
	}
	goleak.VerifyTestMain(m)
}

// exit ends a child without what Go does at the end of a test program, such as a word about coverage on stderr.
func exit(code int) { syscall.Exit(code) }

// child does one thing that a program may do.
func child(what string, args []string) {
	switch what {
	case "args":
		printJSON(args)
	case "env":
		env := os.Environ()
		sort.Strings(env)
		fmt.Println(strings.Join(env, "\n"))
	case "folder":
		dir, err := os.Getwd()
		must(err)
		fmt.Print(dir)
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		must(err)
	case "exit": // code, then what it says
		fmt.Print("out")
		fmt.Fprint(os.Stderr, strings.Join(args[1:], "\n"))
		exit(number(args[0]))
	case "print": // a text so many times, on both ways out
		text := strings.Repeat(args[0], number(args[1]))
		fmt.Print(text)
		fmt.Fprint(os.Stderr, text)
	case "bytes":
		_, err := os.Stdout.Write([]byte{'a', 0xff, 0xfe, 'b', 0xe2, 0x82})
		must(err)
	case "die": // by a signal
		fmt.Print("half")
		self, err := os.FindProcess(os.Getpid())
		must(err)
		must(self.Signal(syscall.Signal(number(args[0]))))
		select {}
	case "stay": // until it is ended; a connection to the address shows that it lives
		hold(args[0])
	case "stubborn": // the same, and it does not hear SIGTERM
		signal.Ignore(syscall.SIGTERM)
		hold(args[0])
	case "polite": // ends with 0 when it is told to stop
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		conn, err := net.Dial("tcp", args[0])
		must(err)
		fmt.Print("so far")
		fmt.Fprintln(conn, os.Getpid())
		<-told
	case "parent": // starts another one, and waits for it
		must(start(false, args...).Wait())
	case "leave": // starts another one that has its output, and leaves it behind when the address says so
		leave(args[0], start(false, args[1:]...))
	case "escape": // the same, and the other one is in a session of its own
		leave(args[0], start(true, args[1:]...))
	case "flowctl": // starts another one as the tool does, and waits for it
		cmd := exec.Command(os.Args[0], append([]string{"child"}, args...)...)
		program.OwnGroup(cmd)
		dieWithUs(cmd)
		runtime.LockOSThread()
		must(cmd.Run())
	case "spin":
		for i := 0; ; i++ {
			_ = i
		}
	case "fill": // so many MiB, beside the heap, since Go's runtime is not made for a heap that cannot grow
		data, err := syscall.Mmap(-1, 0, number(args[0])<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fmt.Fprint(os.Stderr, err)
			exit(1)
		}
		fmt.Print(len(data))
	default:
		panic("a child cannot " + what)
	}
}

// hold connects to the address, says who it is, and stays. When the process ends, the connection does.
func hold(address string) {
	conn, err := net.Dial("tcp", address)
	must(err)
	fmt.Fprintln(conn, os.Getpid())
	select {}
}

// leave waits until the address hangs up, and leaves the other process behind.
func leave(address string, other *exec.Cmd) {
	conn, err := net.Dial("tcp", address)
	must(err)
	_, err = io.Copy(io.Discard, conn)
	must(err)
	must(other.Process.Release())
	fmt.Print("left")
}

func printJSON(v any) { must(json.NewEncoder(os.Stdout).Encode(v)) }

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// start starts another child with this one's output.
func start(ownSession bool, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"child"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if ownSession {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	must(cmd.Start())
	return cmd
}

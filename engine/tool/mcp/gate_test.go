package mcp

import (
	"bufio"
	"net"
	"testing"
)

// gate is where processes of a test connect to, so that the test knows that they are there and when they are gone.
type gate struct {
	net.Listener
	t *testing.T
}

// living is a call of a process that has connected to a test.
type living struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
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

// next waits for a call, and for what it says.
func (g gate) next() living {
	g.t.Helper()
	conn, err := g.Accept()
	if err != nil {
		g.t.Fatal(err)
	}
	one := living{conn, bufio.NewReader(conn), g.t}
	if _, err := one.in.ReadString('\n'); err != nil {
		g.t.Fatal(err)
	}
	return one
}

// gone waits for the end of the process.
func (l living) gone() {
	l.t.Helper()
	if _, err := l.in.ReadByte(); err == nil {
		l.t.Error("a process that should be gone still speaks")
	}
	_ = l.Close()
}

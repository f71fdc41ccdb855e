package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// raw is a server that answers every connection by hand, and counts the requests that it got.
func raw(t *testing.T, answer func(conn net.Conn)) (address string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				_, _ = io.Copy(io.Discard, req.Body) // the request counts, whatever its body
				requests.Add(1)
				answer(conn)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String(), requests
}

// When the connection breaks after it was made, a write may have been carried out. It is never sent again by itself.
func TestBrokenConnections(t *testing.T) {
	for name, answer := range map[string]string{
		"no answer":         "",
		"half a header":     "HTTP/1.1 200 OK\r\nContent-Le",
		"half a body":       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"a\":1",
		"half a chunk":      "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"no HTTP":           "SSH-2.0-OpenSSH_9.6\r\n",
		"an endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n",
	} {
		address, requests := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		k := newKind(t)
		for effect, want := range map[string]tool.Status{"read": tool.Unavailable, "idempotent": tool.Unknown, "write": tool.Unknown} {
			requests.Store(0)
			got := call(t.Context(), made(t, k, effect, "{method: POST, url: '"+address+"/x?secret={{ args.q }}', json: {a: 1}}"), machine.Values{"q": "hidden"})
			if got.Status != want || requests.Load() != 1 {
				t.Errorf("%s: %s ends as %+v after %d requests, want %s after one", name, effect, got, requests.Load(), want)
			}
			message := got.Problem.Message
			if !strings.Contains(message, "no whole answer") || strings.Contains(message, "hidden") || strings.Contains(message, "http://") {
				t.Errorf("%s: %s says %s", name, effect, message)
			}
			if effect != "read" && !strings.HasSuffix(message, "nobody knows whether it was carried out") {
				t.Errorf("%s: %s says %s", name, effect, message)
			}
		}
	}
	// The status is known though the body is not.
	address, _ := raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 20\r\n\r\nno")
	})
	if got := call(t.Context(), made(t, newKind(t), "write", "{method: POST, url: '"+address+"'}"), nil); got.Status != tool.Failed || got.Problem.Kind != "none_found" {
		t.Errorf("got %+v", got)
	}
}

// Where there was no connection nothing was done, and a write can be made again.
func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	plain := record(t, nil)
	unsafe := strings.Replace(plain.URL, "http://", "https://", 1)
	for url, want := range map[string]string{
		"http://" + closed:      closed + " cannot be reached: it refuses connections",
		unsafe:                  "cannot be reached: ",
		"http://shop.invalid/x": "shop.invalid cannot be reached: ",
	} {
		k := newKind(t)
		if strings.Contains(url, "invalid") { // no name server is asked in tests
			refuse := func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Name: "shop.invalid", IsNotFound: true}}
			}
			k.shared.DialContext, k.single.DialContext = refuse, refuse
			k.shared.Proxy, k.single.Proxy = nil, nil
			want += "there is no host of that name"
		}
		for _, effect := range []string{"read", "idempotent", "write"} {
			got := call(t.Context(), made(t, k, effect, "{method: POST, url: '"+url+"'}"), nil)
			if got.Status != tool.Unavailable || got.Problem.Kind != "unavailable" || !strings.Contains(got.Problem.Message, want) {
				t.Errorf("%s: got %+v, want %s", effect, got, want)
			}
		}
	}
}

// pipes makes the connections of a kind inside the test: serve gets the server's end of each. dial nil is at once. The
// test waits for all of them to end.
func pipes(t *testing.T, k *Kind, dial func(context.Context) error, serve func(net.Conn)) {
	var servers sync.WaitGroup
	t.Cleanup(servers.Wait)
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dial != nil {
			if err := dial(ctx); err != nil {
				return nil, err
			}
		}
		client, server := net.Pipe()
		servers.Go(func() {
			defer func() { _ = server.Close() }()
			if req, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
				serve(server)
			}
		})
		return client, nil
	}
	for _, tr := range []*http.Transport{k.shared, k.single} {
		tr.DialContext, tr.Proxy = connect, nil
	}
}

// untilClosed waits for the other side to give up.
func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// A server that goes silent costs the call's time and no more. The clock of these tests is not real.
func TestSilence(t *testing.T) {
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	after := func(answer string) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := io.WriteString(conn, answer); err == nil {
				untilClosed(conn)
			}
		}
	}
	drip := func(conn net.Conn) { // one byte in a second, for ever
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			time.Sleep(time.Second)
			_, err = io.WriteString(conn, "x")
		}
	}
	tests := []struct {
		name  string
		dial  func(context.Context) error
		serve func(net.Conn)
		ends  map[string]string
	}{
		{"no connection", never, nil, map[string]string{
			"read": "unavailable timeout", "idempotent": "unavailable timeout", "write": "unavailable timeout"}},
		{"no answer", nil, untilClosed, map[string]string{
			"read": "unavailable timeout", "idempotent": "unknown unknown", "write": "unknown unknown"}},
		{"a header and no body", nil, after("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), map[string]string{
			"read": "unavailable timeout", "idempotent": "unknown unknown", "write": "unknown unknown"}},
		{"a refusal and no body", nil, after("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n"), map[string]string{
			"read": "failed none_found", "idempotent": "failed none_found", "write": "failed none_found"}},
		{"a body that drips", nil, drip, map[string]string{
			"read": "unavailable timeout", "idempotent": "unknown unknown", "write": "unknown unknown"}},
	}
	for _, test := range tests {
		for effect, want := range test.ends {
			synctest.Test(t, func(t *testing.T) {
				k := newKind(t)
				pipes(t, k, test.dial, test.serve)
				start := time.Now()
				got := call(t.Context(), made(t, k, effect, "{method: POST, url: http://shop.example/x}"), nil)
				if end := string(got.Status) + " " + got.Problem.Kind; end != want {
					t.Errorf("%s: %s ends as %q (%s), want %q", test.name, effect, end, got.Problem.Message, want)
				}
				limit := tool.TimeoutOf(machine.ToolSpec{Effect: machine.Effect(effect)})
				if took := time.Since(start); took > limit+time.Second {
					t.Errorf("%s: %s took %s", test.name, effect, took)
				}
			})
		}
	}
}

// A call that is cancelled says whether anything was sent.
func TestCancelled(t *testing.T) {
	for _, test := range []struct{ effect, where, want string }{
		{"read", "dial", "failed cancelled"}, {"write", "dial", "failed cancelled"},
		{"read", "answer", "failed cancelled"}, {"idempotent", "answer", "unknown unknown"}, {"write", "answer", "unknown unknown"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			k := newKind(t)
			dial := func(ctx context.Context) error {
				if test.where == "dial" {
					cancel()
					<-ctx.Done()
				}
				return ctx.Err()
			}
			pipes(t, k, dial, func(conn net.Conn) { cancel(); untilClosed(conn) })
			got := call(ctx, made(t, k, test.effect, "{method: POST, url: http://shop.example/x}"), nil)
			if end := string(got.Status) + " " + got.Problem.Kind; end != test.want {
				t.Errorf("%s at %s ends as %q (%s), want %q", test.effect, test.where, end, got.Problem.Message, test.want)
			}
		})
	}
}

// Reads share connections; any other call has one of its own, so that a connection which its server has just given up does
// not leave it in doubt.
func TestConnectionUse(t *testing.T) {
	server := record(t, nil)
	var opened atomic.Int64
	for _, test := range []struct {
		effect, method string
		want           int64
	}{{"read", "GET", 1}, {"read", "HEAD", 1}, {"read", "POST", 3}, {"write", "GET", 3}, {"idempotent", "PUT", 3}, {"write", "POST", 3}} {
		k := newKind(t)
		opened.Store(0)
		dialer := net.Dialer{}
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return dialer.DialContext(ctx, network, address)
		}
		k.shared.DialContext, k.single.DialContext = dial, dial
		tl := made(t, k, test.effect, server.with("{method: "+test.method+", url: HOST}"))
		for range 3 {
			if got := call(t.Context(), tl, nil); got.Status != tool.OK {
				t.Fatalf("got %+v", got)
			}
		}
		if opened.Load() != test.want {
			t.Errorf("three times %s with effect %s opened %d connections, want %d", test.method, test.effect, opened.Load(), test.want)
		}
	}
}

// Many calls at once, and Close while some are under way: what comes after is unavailable, and nothing is left (TestMain).
func TestClose(t *testing.T) {
	const calls = 20
	arrived, release := make(chan struct{}, calls), make(chan struct{})
	server := record(t, func(w http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		<-release
		fmt.Fprint(w, req.URL.Path)
	})
	k := newKind(t)
	tl := made(t, k, "read", server.with(`{method: GET, url: "HOST/{{ args.id }}"}`))
	results := make(chan error, calls)
	for i := range calls {
		go func() {
			id := fmt.Sprint("A", i)
			got := call(t.Context(), tl, machine.Values{"id": id})
			value, _ := got.Value.(machine.Values)
			if got.Status != tool.OK || value["body"] != "/"+id {
				results <- fmt.Errorf("%s: got %+v", id, got)
				return
			}
			results <- nil
		}()
	}
	for range calls {
		<-arrived
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if got := call(t.Context(), tl, machine.Values{"id": "late"}); got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, "shutting down") {
		t.Errorf("after Close: got %+v", got)
	}
	close(release)
	for range calls {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestWords(t *testing.T) {
	for want, err := range map[string]error{
		"its name cannot be looked up: server misbehaving": &net.DNSError{Err: "server misbehaving", Name: "x"},
		"network is unreachable":                           &net.OpError{Op: "dial", Err: errors.New("network is unreachable")},
		"HTTP/1.x transport connection broken":             errors.New("net/http: HTTP/1.x transport connection broken"),
	} {
		if got := words(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

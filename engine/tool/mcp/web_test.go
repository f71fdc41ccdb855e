package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// site is a server with a url. Its requests go through before, which may answer them itself; after a call that says true
// nothing else does.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	shop    *sdk.Server
	handler http.Handler
	before  func(w http.ResponseWriter, r *http.Request, message string) bool
	headers []http.Header
	ended   map[string]bool // sessions that were used, and whether the client has ended them
}

func newSite(t *testing.T, b *bench, options *sdk.StreamableHTTPOptions) *site {
	t.Helper()
	s := &site{}
	s.renew(options)
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.intercept(nil)
		if err := b.kind.Close(); err != nil {
			t.Error(err)
		}
		for id, ended := range s.ended {
			if !ended {
				t.Errorf("the session %s is left at the server", id)
			}
		}
		s.endSessions()
		s.CloseClientConnections()
		s.Close()
	})
	b.server = machine.MCPServer{URL: s.URL + "/mcp"}
	return s
}

// renew forgets all sessions.
func (s *site) renew(options *sdk.StreamableHTTPOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSessions()
	s.ended = map[string]bool{}
	one := shop()
	s.shop, s.handler = one, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return one }, options)
}

// endSessions lets the server forget its sessions.
func (s *site) endSessions() {
	if s.shop == nil {
		return
	}
	for one := range s.shop.Sessions() {
		_ = one.Close() // it is of no use any more
	}
}

func (s *site) intercept(before func(w http.ResponseWriter, r *http.Request, message string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	s.mu.Lock()
	handler, before := s.handler, s.before
	s.headers = append(s.headers, r.Header)
	if id := r.Header.Get("Mcp-Session-Id"); id != "" { // a cancellation may come after the end
		s.ended[id] = s.ended[id] || r.Method == http.MethodDelete
	}
	s.mu.Unlock()
	if before == nil || !before(w, r, string(data)) {
		handler.ServeHTTP(w, r)
	}
}

// calls says whether a message calls a tool.
func calls(message string) bool { return strings.Contains(message, `"tools/call"`) }

func TestWebCalls(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{
		"events": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true}, "stateless json": {Stateless: true, JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := newSite(t, b, options)
			b.env["SHOP_KEY"] = "sk-12345678"
			b.server.Headers = texts("Authorization", "Bearer $SHOP_KEY", "X-Plain", "yes")
			args := machine.Values{"n": int64(9007199254740993)}
			got := b.call(write, "exact", args)
			if value, _ := got.Value.(machine.Values); got.Status != tool.OK || value["n"] != int64(9007199254740993) {
				t.Errorf("got %+v", got)
			}
			if got := b.call(reads, "echo", machine.Values{"text": "é"}); got.Value != "é" {
				t.Errorf("got %+v", got)
			}
			who, _ := b.call(reads, "who", nil).Value.(machine.Values)
			if who["key"] != "r1/2.0" {
				t.Errorf("the key is %v", who["key"])
			}
			wants(t, b.call(write, "fails", nil), "failed failed", "the order is closed")
			wants(t, b.call(write, "refuses", nil), "failed failed", "not on Sundays")
			wants(t, b.call(write, "ecco", nil), "refused refused", "did you mean echo?", "(127.0.0.1:")
			if list, err := b.kind.List(t.Context(), b.tenv(), "s"); err != nil || len(list) != 11 {
				t.Errorf("got %d tools, %v", len(list), err)
			}
			for i, h := range s.headers {
				if h.Get("Authorization") != "Bearer sk-12345678" || h.Get("X-Plain") != "yes" {
					t.Errorf("request %d has the headers %v", i, h)
				}
				if i > 1 && h.Get("Mcp-Protocol-Version") != firstVersion {
					t.Errorf("request %d has the version %q", i, h.Get("Mcp-Protocol-Version"))
				}
			}
		})
	}
}

// How a call ends by the status of the answer; none of them ends the server for later calls.
func TestWebStatuses(t *testing.T) {
	type ends struct{ read, write string }
	out, unknown := "unavailable unavailable", "unknown unknown"
	for status, want := range map[int]ends{
		400: {out, out}, 401: {out, out}, 403: {out, out}, 408: {out, out}, 429: {out, out}, 301: {out, out}, 501: {out, out},
		500: {out, unknown}, 502: {out, unknown}, 503: {out, unknown}, 504: {out, unknown},
	} {
		b := newBench(t)
		s := newSite(t, b, nil)
		for effect, want := range map[machine.Effect]string{reads: want.read, idempotent: want.read, write: want.write} {
			b.call(reads, "who", nil)
			s.intercept(func(w http.ResponseWriter, _ *http.Request, message string) bool {
				if calls(message) {
					w.Header().Set("Location", "https://elsewhere.example/")
					w.WriteHeader(status)
				}
				return calls(message)
			})
			wants(t, b.call(effect, "exact", machine.Values{}), want, fmt.Sprintf("answered with %d", status), "the MCP server s (127.0.0.1:")
			s.intercept(nil)
			if got := b.call(effect, "exact", machine.Values{}); got.Status != tool.OK {
				t.Errorf("after %d: got %+v", status, got)
			}
		}
	}
}

// A session that the server does not know any more has not seen the call, which is made again in a new one.
func TestWebSessionLost(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	for range 3 {
		if got := b.call(write, "exact", machine.Values{}); got.Status != tool.OK {
			t.Fatalf("got %+v", got)
		}
		s.renew(nil)
	}
}

func TestWebCannotConnect(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b.server.URL = "http://" + closed + "/mcp"
	for range 4 { // it costs nothing, so that it is never put off
		wants(t, b.call(write, "who", nil), "unavailable unavailable", "the MCP server s ("+closed+") cannot be reached: it refuses connections")
	}
	for status, want := range map[int]string{401: "401 Unauthorized; look at the headers", 404: "no MCP server at this url", 302: "write the new address", 503: "503"} {
		s.intercept(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(status)
			return true
		})
		b.server.URL = s.URL
		wants(t, b.call(write, "who", nil), "unavailable unavailable", want)
	}
	s.intercept(func(w http.ResponseWriter, _ *http.Request, _ string) bool { fmt.Fprint(w, "<html>"); return true })
	wants(t, b.call(write, "who", nil), "unavailable unavailable", "does not speak the protocol as it should")
	s.intercept(nil)
	if got := b.call(write, "who", nil); got.Status != tool.OK {
		t.Errorf("got %+v", got)
	}
}

func TestWebRedirect(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	t.Cleanup(stranger.Close)
	b.server.Headers = texts("X-Key", "secret-secret")
	to := s.URL + "/moved"
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		if r.URL.Path == "/moved" {
			return false
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return true
	})
	if got := b.call(write, "who", nil); got.Status != tool.OK {
		t.Errorf("got %+v", got)
	}
	b = newBench(t)
	b.server = machine.MCPServer{URL: s.URL + "/mcp", Headers: texts("X-Key", "secret-secret")}
	to = stranger.URL
	wants(t, b.call(write, "who", nil), "unavailable unavailable", "307", "write the new address into url")
	if n := strangers.Load(); n > 0 {
		t.Errorf("another server was asked %d times", n)
	}
}

// A server that goes silent costs the call's time, and a later call finds it well.
func TestWebTimeout(t *testing.T) {
	b := newBench(t)
	newSite(t, b, nil)
	b.call(reads, "who", nil)
	for effect, want := range map[machine.Effect]string{reads: "unavailable timeout", idempotent: "unknown unknown", write: "unknown unknown"} {
		tl := b.tool(effect, "waits")
		tl.Spec.Timeout = 250 * time.Millisecond
		wants(t, call(t.Context(), tl, nil), want)
		if got := b.call(effect, "who", nil); got.Status != tool.OK {
			t.Errorf("after the timeout of a %s: got %+v", effect, got)
		}
	}
}

func TestWebSilent(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	b.server.Timeout = machine.Duration(200 * time.Millisecond)
	s.intercept(func(_ http.ResponseWriter, r *http.Request, _ string) bool { <-r.Context().Done(); return true })
	start := time.Now()
	wants(t, b.call(write, "who", nil), "unavailable unavailable", "did not answer within 200ms")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Where the connection breaks in the middle of a call, nobody knows of a write.
func TestWebBreaks(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	for name, breaks := range map[string]func(http.ResponseWriter){
		"no answer": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"half of it": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0",`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"no event": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": nothing\n\n")
		},
		"too much": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, io.LimitReader(blanks{}, maxMessage+10))
		},
	} {
		for effect, want := range map[machine.Effect]string{reads: "unavailable unavailable", idempotent: "unknown unknown", write: "unknown unknown"} {
			s.intercept(nil)
			b.call(reads, "who", nil)
			s.intercept(func(w http.ResponseWriter, _ *http.Request, message string) bool {
				if calls(message) {
					breaks(w)
				}
				return calls(message)
			})
			t.Run(fmt.Sprint(name, " of a ", effect), func(t *testing.T) {
				got := b.call(effect, "exact", machine.Values{})
				wants(t, got, want, "the MCP server s (127.0.0.1:")
				if effect != reads && !strings.HasSuffix(got.Problem.Message, nobodyKnows) {
					t.Errorf("got %s", got.Problem.Message)
				}
			})
		}
	}
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Close ends calls that are under way, and tells the server that the session is over.
func TestWebClose(t *testing.T) {
	for _, options := range []*sdk.StreamableHTTPOptions{nil, {JSONResponse: true}} {
		b := newBench(t)
		s := newSite(t, b, options)
		var deleted atomic.Bool
		release := make(chan struct{}) // the server's library lets a session end only when its calls do
		raw(s.shop, "held", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			<-release
			return text(""), nil
		})
		arrived := make(chan struct{}, 1)
		s.intercept(func(_ http.ResponseWriter, r *http.Request, message string) bool {
			if r.Method == http.MethodDelete {
				deleted.Store(true)
			}
			if calls(message) {
				arrived <- struct{}{}
			}
			return false
		})
		result := make(chan tool.Result, 1)
		go func() { result <- call(t.Context(), b.tool(write, "held"), nil) }()
		<-arrived
		if err := b.kind.Close(); err != nil {
			t.Error(err)
		}
		wants(t, <-result, "unknown unknown", "flowctl is shutting down")
		close(release)
		if !deleted.Load() {
			t.Error("the server was not told")
		}
	}
}

// The kind may be given another way to the network.
func TestTransport(t *testing.T) {
	var asked atomic.Int64
	k := New(Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		asked.Add(1)
		return nil, fmt.Errorf("no network today")
	})})
	defer func() { _ = k.Close() }()
	m := &machine.Machine{Servers: machine.Ordered[machine.MCPServer]{{Name: "s", Value: machine.MCPServer{URL: "https://mcp.example/x?k=1"}}}}
	tl, err := k.New(machine.ToolSpec{Name: "t", Effect: write, Config: &Config{Server: "s", Tool: "x"}}, tool.Env{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, call(context.Background(), tl, nil), "unavailable unavailable", "the MCP server s (mcp.example) cannot be reached: no network today")
	if asked.Load() == 0 {
		t.Error("it was not asked")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A tool that is new at the server is found without a new session.
func TestNewTool(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	wants(t, b.call(write, "later", nil), "refused refused")
	raw(s.shop, "later", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: json.RawMessage(`"now"`)}, nil
	})
	b.clock.pass(newsAfter)
	if got := b.call(write, "later", nil); got.Value != "now" {
		t.Errorf("got %+v", got)
	}
}

// A tool that is not there is looked for once in a while only, however often it is asked for.
func TestUnknownToolIsNotAlwaysLookedFor(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	b.call(reads, "who", nil)
	var lists atomic.Int64
	s.intercept(func(_ http.ResponseWriter, _ *http.Request, message string) bool {
		if strings.Contains(message, `"tools/list"`) {
			lists.Add(1)
		}
		return false
	})
	for range 5 {
		wants(t, b.call(write, "later", nil), "refused refused", `has no tool "later"`)
	}
	if n := lists.Load(); n != 1 {
		t.Errorf("the tools were listed %d times for 5 calls", n)
	}
	b.clock.pass(newsAfter)
	wants(t, b.call(write, "later", nil), "refused refused")
	if n := lists.Load(); n != 2 {
		t.Errorf("the tools were listed %d times after a while", n)
	}
}

// A list is not waited for longer than a start.
func TestListIsBounded(t *testing.T) {
	b := newBench(t)
	s := newSite(t, b, nil)
	b.server.Timeout = machine.Duration(500 * time.Millisecond)
	b.call(reads, "who", nil)
	s.intercept(func(_ http.ResponseWriter, r *http.Request, message string) bool {
		hangs := strings.Contains(message, `"tools/list"`)
		if hangs {
			<-r.Context().Done()
		}
		return hangs
	})
	if _, err := b.kind.List(t.Context(), b.tenv(), "s"); err == nil || !strings.Contains(err.Error(), "did not list its tools in time") {
		t.Errorf("got %v", err)
	}
	s.intercept(func(w http.ResponseWriter, _ *http.Request, message string) bool {
		breaks := strings.Contains(message, `"tools/list"`)
		if breaks {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return breaks
	})
	if _, err := b.kind.List(t.Context(), b.tenv(), "s"); err == nil || !strings.Contains(err.Error(), "does not list its tools: ") {
		t.Errorf("got %v", err)
	}
}

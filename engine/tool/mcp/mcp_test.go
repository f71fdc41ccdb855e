package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// fixedText is a text that the compiler would have made: what stands before the value of an environment variable, if any.
type fixedText struct{ before, env string }

func (t fixedText) Source() string                               { return t.before + t.env }
func (t fixedText) Reads() []string                              { return nil }
func (t fixedText) Value(f machine.Facts) (machine.Value, error) { return t.Render(f) }
func (t fixedText) Render(f machine.Facts) (string, error) {
	if t.env == "" {
		return t.before, nil
	}
	v, ok := f.Getenv(t.env)
	if !ok {
		return "", fmt.Errorf("%s is not set", t.env)
	}
	return t.before + v, nil
}

// texts makes settings of names and texts; a text that begins with $ is a variable of the environment.
func texts(pairs ...string) machine.Ordered[machine.Text] {
	var out machine.Ordered[machine.Text]
	for i := 0; i < len(pairs); i += 2 {
		t := fixedText{before: pairs[i+1]}
		if before, env, ok := strings.Cut(pairs[i+1], "$"); ok {
			t = fixedText{before, env}
		}
		out = append(out, machine.Item[machine.Text]{Name: pairs[i], Value: t})
	}
	return out
}

// bench is what a test's tools are made in: a kind with its log, and one server, s.
type bench struct {
	t      *testing.T
	kind   *Kind
	server machine.MCPServer
	dir    string
	env    map[string]string
	log    *journal
	clock  *clock
}

type journal struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.data.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.data.String()
}

// clock is one that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newBench makes a bench whose server is a program of main_test.go, or a url where there is no name. It is closed when the
// test ends.
func newBench(t *testing.T, program ...string) *bench {
	t.Helper()
	b := &bench{t: t, log: &journal{}, clock: &clock{now: time.Unix(0, 0)}, env: map[string]string{}, dir: t.TempDir()}
	if len(program) > 0 {
		b.server.Command = append([]string{os.Args[0], "server"}, program...)
	}
	b.kind = New(Options{Allow: true, Log: zerolog.New(b.log), Now: b.clock.Now, Connect: 20 * time.Second})
	t.Cleanup(func() {
		if err := b.kind.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) tenv() tool.Env {
	m := &machine.Machine{Dir: b.dir, Servers: machine.Ordered[machine.MCPServer]{{Name: "s", Value: b.server}}}
	return tool.Env{Machine: m, Dir: b.dir, Getenv: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok }}
}

// tool makes a tool of the bench's server.
func (b *bench) tool(effect machine.Effect, name string) tool.Tool {
	b.t.Helper()
	spec := machine.ToolSpec{Name: "t", Kind: "mcp", Effect: effect, Timeout: time.Minute, Config: &Config{Server: "s", Tool: name}}
	made, err := b.kind.New(spec, b.tenv())
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// call makes a call as the executor does.
func call(ctx context.Context, tl tool.Tool, args machine.Values) tool.Result {
	return tool.Runner{}.Run(ctx, tool.Prepared{Tool: tl, Values: args}, tool.Call{Key: "r1/2.0", RunID: "r1"}).Result
}

func (b *bench) call(effect machine.Effect, name string, args machine.Values) tool.Result {
	b.t.Helper()
	return call(b.t.Context(), b.tool(effect, name), args)
}

// wants checks how a call ended: its status, its kind, and words of its message.
func wants(t *testing.T, got tool.Result, end string, words ...string) {
	t.Helper()
	if is := strings.TrimSpace(string(got.Status) + " " + got.Problem.Kind); is != end {
		t.Errorf("got %s (%s, value %v), want %s", is, got.Problem.Message, got.Value, end)
	}
	for _, word := range words {
		if !strings.Contains(got.Problem.Message, word) {
			t.Errorf("the message is %q, want %q in it", got.Problem.Message, word)
		}
	}
}

const (
	reads      = machine.EffectRead
	idempotent = machine.EffectIdempotent
	write      = machine.EffectWrite
)

func TestCalls(t *testing.T) {
	b := newBench(t, "good")
	if got := b.call(reads, "echo", machine.Values{"text": "a\nb <é>"}); got.Status != tool.OK || got.Value != "a\nb <é>" {
		t.Errorf("got %+v", got)
	}
	args := machine.Values{"n": int64(9007199254740993), "max": int64(9223372036854775807), "part": 1.5, "none": nil,
		"list": []machine.Value{"x", true}, "object": machine.Values{}}
	if got := b.call(write, "exact", args); got.Status != tool.OK || !reflect.DeepEqual(got.Value, machine.Value(args)) {
		t.Errorf("got %+v", got)
	}
	want := "one\n[image image/png 5 bytes]\n[audio audio/wav 1 bytes]\n[link a file:///a]\n[resource demo://t text/plain]\ninner\n" +
		"[resource demo://b application/zip 7 bytes]\ntwo"
	if got := b.call(reads, "parts", nil); got.Value != want {
		t.Errorf("got %q", got.Value)
	}
	if got := b.call(write, "Ünlich.getSum/v2", nil); got.Value != "4" {
		t.Errorf("got %+v", got)
	}
	got := b.call(write, "fails", nil)
	wants(t, got, "failed failed", "the order is closed")
	if !reflect.DeepEqual(got.Value, machine.Value(machine.Values{"order": int64(7)})) {
		t.Errorf("got %v", got.Value)
	}
	for _, effect := range []machine.Effect{reads, write} {
		wants(t, b.call(effect, "refuses", nil), "failed failed", "the MCP server s refused the call of refuses", "not on Sundays")
	}
}

// A call without arguments sends an empty object, and each carries its key. One process serves all tools and kinds of calls.
func TestOneProcess(t *testing.T) {
	b := newBench(t, "good")
	b.server.Dir = "."
	first := b.call(reads, "who", nil)
	value, _ := first.Value.(machine.Values)
	if value["key"] != "r1/2.0" || !reflect.DeepEqual(value["args"], machine.Value(machine.Values{})) {
		t.Fatalf("got %+v", first)
	}
	if dir, err := os.Stat(b.dir); err != nil {
		t.Fatal(err)
	} else if got, err := os.Stat(fmt.Sprint(value["dir"])); err != nil || !os.SameFile(dir, got) {
		t.Errorf("it runs in %v, want %s", value["dir"], b.dir)
	}
	const calls = 40
	pids := make(chan machine.Value, calls)
	for range calls {
		go func() {
			got := call(t.Context(), b.tool(reads, "who"), nil)
			value, _ := got.Value.(machine.Values)
			pids <- value["pid"]
		}()
	}
	for range calls {
		if pid := <-pids; pid != value["pid"] || pid == nil {
			t.Errorf("the process is %v, and was %v", pid, value["pid"])
		}
	}
	b.server.Env = texts("MODE", "other") // another definition is another server
	other, _ := b.call(reads, "who", nil).Value.(machine.Values)
	if other["pid"] == value["pid"] || other["pid"] == nil {
		t.Errorf("another definition has the process %v", other["pid"])
	}
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "HOME": "/home/me", "TMPDIR": "/tmp",
		"LLM_API_KEY": "sk-of-flowctl", "LD_PRELOAD": "", "FLOWCTL_DB": "x.db"} {
		t.Setenv(name, value)
	}
	b := newBench(t, "good")
	b.env["SHOP_KEY"] = "sk-12345678"
	b.server.Env = texts("KEY", "Bearer $SHOP_KEY", "TZ", "Asia/Shanghai", "EMPTY", "")
	want := "EMPTY=\nHOME=/home/me\nKEY=Bearer sk-12345678\nLANG=C.UTF-8\nLC_ALL=C\nPATH=" + os.Getenv("PATH") +
		"\nTMPDIR=/tmp\nTZ=Asia/Shanghai"
	if got := b.call(reads, "env", nil); got.Value != want {
		t.Errorf("got  %q\nwant %q", got.Value, want)
	}
	delete(b.env, "SHOP_KEY")
	wants(t, b.call(write, "env", nil), "unavailable no_key", "SHOP_KEY", "the variable KEY of the MCP server s", ".env")
	b.env["SHOP_KEY"] = "sk-other-1234"
	if got := b.call(reads, "env", nil); !strings.Contains(fmt.Sprint(got.Value), "sk-other-1234") {
		t.Errorf("a new key is not used: %v", got.Value)
	}
}

// What is refused has not been sent.
func TestRefused(t *testing.T) {
	b := newBench(t, "good")
	for _, effect := range []machine.Effect{reads, write} {
		wants(t, b.call(effect, "ecco", nil), "refused refused", `the MCP server s has no tool "ecco", did you mean echo?`)
		wants(t, b.call(effect, "nothing like it", nil), "refused refused", "it has crashes, echo, env,")
		wants(t, b.call(effect, "echo", nil), "refused refused", "t was not called", "text", "the tool echo of the MCP server s")
		wants(t, b.call(effect, "echo", machine.Values{"text": "a", "odd": "x"}), "refused refused", "odd", "integer")
	}
}

// A call that runs out of time costs nothing but itself: the session stays, and the server hears that it may stop.
func TestTimeout(t *testing.T) {
	b := newBench(t, "good")
	who, _ := b.call(reads, "who", nil).Value.(machine.Values)
	for effect, want := range map[machine.Effect]string{reads: "unavailable timeout", idempotent: "unknown unknown", write: "unknown unknown"} {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		tl := b.tool(effect, "waits")
		_, err := tl.Run(ctx, tool.Call{})
		cancel()
		if effect != reads {
			if err != context.DeadlineExceeded {
				t.Errorf("%s: got %v", effect, err)
			}
		} else if e, ok := err.(*tool.Error); !ok || e.Status != tool.Unavailable || e.Kind != tool.KindTimeout {
			t.Errorf("%s: got %v", effect, err)
		}
		tl.Spec.Timeout = 250 * time.Millisecond
		wants(t, call(t.Context(), tl, nil), want)
		after, _ := b.call(reads, "who", nil).Value.(machine.Values)
		if after["pid"] != who["pid"] {
			t.Errorf("%s: the server was %v and is %v", effect, who["pid"], after["pid"])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.tool(write, "waits").Run(ctx, tool.Call{}); err == nil || strings.Contains(err.Error(), "unknown") {
		t.Errorf("got %v", err)
	}
}

// A server that answers no call any more is ended, and the next call gets a new one.
func TestHung(t *testing.T) {
	b := newBench(t, "good")
	who, _ := b.call(reads, "who", nil).Value.(machine.Values)
	for range maxSilent {
		tl := b.tool(reads, "waits")
		tl.Spec.Timeout = 150 * time.Millisecond
		wants(t, call(t.Context(), tl, nil), "unavailable timeout", "did not answer in time")
	}
	after, _ := b.call(reads, "who", nil).Value.(machine.Values)
	if after["pid"] == who["pid"] || after["pid"] == nil {
		t.Errorf("the server is still %v", after["pid"])
	}
	if !strings.Contains(b.log.String(), "gave no answer to 3 calls in a row") {
		t.Error(b.log)
	}
}

func TestKeepsToTheAllowed(t *testing.T) {
	b := newBench(t, "good")
	b.kind.options.Allow = false
	_, err := b.kind.New(machine.ToolSpec{Name: "t", Config: &Config{Server: "s", Tool: "x"}}, b.tenv())
	if err == nil || !strings.Contains(err.Error(), "--allow-commands") || !strings.Contains(err.Error(), "MCP server s: "+os.Args[0]+" …") {
		t.Errorf("got %v", err)
	}
	if _, err := b.kind.List(t.Context(), b.tenv(), "s"); err == nil || !strings.Contains(err.Error(), "--allow-commands") {
		t.Errorf("got %v", err)
	}
	b.server = machine.MCPServer{URL: "http://127.0.0.1:1/mcp"}
	b.tool(write, "x") // a url is allowed
	b.server = machine.MCPServer{}
	if _, err := b.kind.New(machine.ToolSpec{Name: "t", Config: &Config{Server: "s", Tool: "x"}}, b.tenv()); err == nil {
		t.Error("a server without command and url is taken")
	}
	if _, err := b.kind.New(machine.ToolSpec{Name: "t", Config: &Config{Server: "none", Tool: "x"}}, b.tenv()); err == nil {
		t.Error("a server that is not declared is taken")
	}
}

func TestUses(t *testing.T) {
	m := &machine.Machine{Servers: machine.Ordered[machine.MCPServer]{{Name: "files"}, {Name: "shop"}}}
	uses := (&Config{Server: "files", Tool: "read"}).Uses(machine.ToolScope{Machine: m})
	if len(uses.Problems) > 0 || uses.Effect != write || string(uses.Parameters) != anyObject {
		t.Errorf("got %+v", uses)
	}
	for want, c := range map[string]*Config{
		"server: there is no MCP server file; the flow declares files, shop files": {Server: "file", Tool: "read"},
		"tool: tool is the server's own name of the tool, such as read_file ":      {Server: "shop", Tool: " "},
	} {
		uses := c.Uses(machine.ToolScope{Machine: m})
		if len(uses.Problems) != 1 {
			t.Fatalf("%s: got %+v", want, uses.Problems)
		}
		if p := uses.Problems[0]; p.Path+": "+p.Message+" "+p.Suggestion != want {
			t.Errorf("got %+v, want %s", p, want)
		}
	}
	if uses := (&Config{Server: "x", Tool: "y"}).Uses(machine.ToolScope{Machine: &machine.Machine{}}); len(uses.Problems) != 1 {
		t.Errorf("got %+v", uses.Problems)
	}
}

func TestList(t *testing.T) {
	b := newBench(t, "good")
	list, err := b.kind.List(t.Context(), b.tenv(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range list {
		got = append(got, fmt.Sprintf("%s|%s|%s", one.Name, one.Suggested, one.Effect))
	}
	want := []string{"crashes|crashes|write", "echo|echo|read", "env|env|read", "exact|exact|write", "fails|fails|idempotent", "parts|parts|read",
		"refuses|refuses|write", "says and waits|says_and_waits|write", "waits|waits|write", "who|who|read", "Ünlich.getSum/v2|nlich_get_sum_v2|write"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	echo := list[1]
	var schema struct{ Required []string }
	if err := json.Unmarshal(echo.Parameters, &schema); err != nil || !slices.Equal(schema.Required, []string{"text"}) || echo.Description != "Say it again." {
		t.Errorf("got %s, %s", echo.Parameters, echo.Description)
	}
	if _, err := b.kind.List(t.Context(), b.tenv(), "none"); err == nil {
		t.Error("a server that is not declared lists tools")
	}
}

func TestSuggestions(t *testing.T) {
	long := strings.Repeat("a", 70)
	names := []string{"crm.get customer", "crm_get_customer", "getOrderByID", "HTTPServer", "2fa", "日本", "", "__x__", long, long + "b", "a--b"}
	want := []string{"crm_get_customer", "crm_get_customer_2", "get_order_by_id", "httpserver", "tool_2fa", "tool", "tool_2", "x",
		strings.Repeat("a", 64), strings.Repeat("a", 62) + "_2", "a_b"}
	if got := suggest(names); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// An answer is read whatever it holds; what cannot be read is a failure of reads only.
func TestAnswers(t *testing.T) {
	for data, want := range map[string]struct {
		value machine.Value
		fails bool // as a read; a write is ok with null
	}{
		`{"content":[]}`: {"", false},
		`{"content":[{"type":"text","text":"a"}],"structuredContent":null}`: {"a", false},
		`{"content":[{"type":"text","text":"a"}],"structuredContent":[1]}`:  {[]machine.Value{int64(1)}, false},
		`{"structuredContent":false}`:                                       {false, false},
		`{"content":[{"type":"hologram"},{"text":"x"}]}`:                    {"[hologram]\n[content without a type]", false},
		`{"structuredContent":{"n":12345678901234567890}}`:                  {nil, true},
		`{"content":7}`: {nil, true},
	} {
		got, err := read(json.RawMessage(data), reads)
		if (err != nil) != want.fails || !want.fails && !reflect.DeepEqual(got, want.value) {
			t.Errorf("%s: got %v, %v", data, got, err)
		}
		got, err = read(json.RawMessage(data), write)
		if err != nil || !want.fails && !reflect.DeepEqual(got, want.value) || want.fails && got != nil {
			t.Errorf("%s of a write: got %v, %v", data, got, err)
		}
	}
	for data, want := range map[string]string{
		`{"content":[{"type":"text","text":"no"}],"isError":true}`:                              "no",
		`{"isError":true,"structuredContent":{"n":12345678901234567890}}`:                       "the tool gave no reason",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`: "asks for more input",
	} {
		got := call(t.Context(), tool.Tool{Spec: machine.ToolSpec{Name: "t", Effect: write},
			Run: func(context.Context, tool.Call) (machine.Value, error) { return read(json.RawMessage(data), write) }}, nil)
		wants(t, got, "failed failed", want)
	}
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

const (
	// defaultConnect is how long a server may take to start and to answer for the first time.
	defaultConnect = 30 * time.Second

	// patience is how long a server gets to end by itself when its stdin is closed, and how long again after SIGTERM.
	patience = time.Second

	// closePatience is how long Close waits for all servers; more than what one of them gets.
	closePatience = 5 * time.Second
)

// Options are what the kind takes from its process. The zero value is ready; it starts no programs.
type Options struct {
	// Allow lets flows start programs. Without it New refuses to make a tool of a server with a command, so that a run stops
	// before its first state; flows can be checked and shown all the same.
	Allow bool
	// Transport makes the requests to servers with a url. Nil: one of the kind's own, which Close closes.
	Transport http.RoundTripper
	// Log gets what servers write to their stderr, line by line, and their starts and ends. The zero Logger drops it. What
	// servers write may hold secrets: masking them is the logger's.
	Log zerolog.Logger
	// Connect is how long a server without a timeout of its own may take to start. Defaults to 30 s.
	Connect time.Duration
	// Now is the clock that says when a server which keeps failing may be started again. Defaults to time.Now.
	Now func() time.Time
}

// Kind makes tools that are called on MCP servers. It starts each server once, at the first call, and keeps it until Close.
// It is safe for concurrent use.
type Kind struct {
	options Options
	routes  routes
	life    context.Context // ends with Close
	end     context.CancelFunc

	mu      sync.Mutex // of all below, and of running while it may be zero
	closed  bool
	servers map[identity]*server
	running sync.WaitGroup // calls, starts and living servers
}

var _ tool.Kind = (*Kind)(nil)

// New makes the kind. Nothing is started or connected before the first call of a tool.
func New(o Options) *Kind {
	k := &Kind{options: o, servers: map[identity]*server{}}
	if t := k.options.Transport; t != nil {
		k.routes = routes{t, t}
	} else {
		k.routes = routes{transport(true), transport(false)}
	}
	if k.options.Connect <= 0 {
		k.options.Connect = defaultConnect
	}
	if k.options.Now == nil {
		k.options.Now = time.Now
	}
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// transport makes connections of the kind's own.
func transport(reuse bool) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: !reuse, MaxIdleConnsPerHost: 8,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 30 * time.Second, ForceAttemptHTTP2: true}
}

// more stands below the keys in the flow reference.
const more = "`server` is declared at the top of the flow, under `mcp`. The flow gives the tool a name of its own, and `tool` is the " +
	"server's name for it; so the server's names may hold what names of a flow, or of a model's tools, cannot, and two servers may " +
	"have tools of one name.\n\n" +
	"A tool without `parameters` takes any object. In any case the arguments are checked by the server's own schema before the call. " +
	"`effect` is write if left out: what the server says about it cannot be known before it runs.\n\n" +
	"A server is started by the first call, and is shared by all calls and runs of the process. A call waits for it as long as the " +
	"tool's `timeout` allows; a server that is still starting then goes on with it, and a later call finds it ready. A flow whose " +
	"servers are commands runs with `--allow-commands` only.\n"

// Spec says how `mcp: {…}` is decoded.
func (k *Kind) Spec() machine.ToolKind {
	return machine.ToolKind{
		Doc:    "one tool of an MCP server; it gives the tool's structured content, else its text",
		More:   more,
		Config: func() machine.ToolConfig { return &Config{} },
	}
}

// Config is the kind's part of a declaration.
type Config struct {
	Server string `yaml:"server" flow:"required" doc:"name of a server under mcp"`
	Tool   string `yaml:"tool" flow:"required" doc:"the server's own name of the tool, such as read_file"`
}

// anyObject is the schema of the parameters where the flow gives none.
const anyObject = `{"type":"object","additionalProperties":true}`

// Uses checks that the server is declared. What its tools are is known when it runs.
func (c *Config) Uses(scope machine.ToolScope) machine.ToolUses {
	uses := machine.ToolUses{Effect: machine.EffectWrite, Parameters: []byte(anyObject)}
	problem := func(path, suggestion, format string, args ...any) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...), Suggestion: suggestion})
	}
	var names []string
	if scope.Machine != nil {
		names = scope.Machine.Servers.Names()
	}
	switch {
	case len(names) == 0:
		problem("server", "", "the flow declares no MCP server; write one under mcp, at the top of the flow")
	case !slices.Contains(names, c.Server):
		problem("server", spell.Nearest(c.Server, names), "there is no MCP server %s; the flow declares %s", c.Server, strings.Join(names, ", "))
	}
	if strings.TrimSpace(c.Tool) == "" {
		problem("tool", "", "tool is the server's own name of the tool, such as read_file")
	}
	return uses
}

// New makes the tool of one declaration.
func (k *Kind) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	config, ok := spec.Config.(*Config)
	if !ok {
		return tool.Tool{}, fmt.Errorf("the tool %s is not of the kind mcp", spec.Name)
	}
	d, err := k.declaration(config.Server, env)
	if err != nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: %w", spec.Name, err)
	}
	t := &remote{kind: k, spec: spec, server: d, name: config.Tool}
	return tool.Tool{Spec: spec, Run: t.run}, nil
}

// declaration finds a server of a flow, if it may be used.
func (k *Kind) declaration(name string, env tool.Env) (declaration, error) {
	if env.Machine == nil {
		return declaration{}, fmt.Errorf("there is no MCP server %s", name)
	}
	decl, ok := env.Machine.Servers.Get(name)
	if !ok {
		return declaration{}, fmt.Errorf("there is no MCP server %s", name)
	}
	if problems := decl.Problems(); len(problems) > 0 {
		return declaration{}, fmt.Errorf("the MCP server %s: %s", name, problems[0].Message)
	}
	if len(decl.Command) > 0 && !k.options.Allow {
		program := decl.Command[0]
		if len(decl.Command) > 1 {
			program += " …"
		}
		return declaration{}, fmt.Errorf("the flow starts programs (MCP server %s: %s); allow it with --allow-commands", name, program)
	}
	return declaration{MCPServer: decl, name: name, dir: env.Dir, getenv: env.Getenv}, nil
}

// begin takes note of a call or a start. It says false after Close; else its end is told to running.
func (k *Kind) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.running.Add(1)
	return true
}

// serverOf gives the one server of a definition.
func (k *Kind) serverOf(d definition) *server {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := d.identity()
	s := k.servers[id]
	if s == nil {
		s = &server{kind: k, definition: d, log: k.options.Log.With().Str("mcp_server", d.name).Logger()}
		k.servers[id] = s
	}
	return s
}

// errClosed is the failure of a call after Close.
var errClosed = tool.Unavailablef("MCP servers are not called any more: flowctl is shutting down")

// Close ends all servers and waits until they are gone: each is told so by the end of its stdin, 1 s later by SIGTERM, and
// again 1 s later by SIGKILL. Calls under way end at once, and calls that come later are unavailable.
func (k *Kind) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.end()
	gone := make(chan struct{})
	go func() {
		k.running.Wait()
		close(gone)
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
		return errors.New("an MCP server does not end, though it was killed; look for it among the processes of the system")
	}
	if own, ok := k.routes.shared.(*http.Transport); ok && k.options.Transport == nil {
		own.CloseIdleConnections()
	}
	return nil
}

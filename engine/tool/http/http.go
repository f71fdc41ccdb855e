package http

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// Kind makes HTTP tools. It keeps connections between calls until Close, and is safe for concurrent use.
type Kind struct {
	shared *http.Transport // for reads by GET and HEAD
	single *http.Transport // for all else: one connection per call
	closed atomic.Bool
}

var _ tool.Kind = (*Kind)(nil)

// New makes the kind. Nothing is connected before the first call of a tool.
func New() *Kind { return &Kind{shared: transport(true), single: transport(false)} }

// transport makes connections. Where one that was kept turns out to be closed, Go sends a request again by itself if it
// takes it to be harmless (a GET, or anything with an Idempotency-Key), so only reads get connections that are kept.
func transport(reuse bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    30 * time.Second,
		DisableKeepAlives:      !reuse,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		Protocols:              protocols,
	}
}

// Spec says how `http: {…}` is decoded.
func (k *Kind) Spec() machine.ToolKind {
	return machine.ToolKind{
		Doc:    "one HTTP request; it gives {status, headers, body}, and fails where the status is not 2xx",
		More:   more,
		Config: func() machine.ToolConfig { return &Config{} },
	}
}

// Config is the kind's part of a declaration.
type Config struct {
	Method  string                            `yaml:"method" flow:"required,enum:GET|POST|PUT|PATCH|DELETE|HEAD" doc:"what is asked of the server; all but GET and HEAD need the tool's effect"`
	URL     machine.Template                  `yaml:"url" flow:"required" doc:"http or https address with scheme and host as fixed text; what is inserted is escaped for its place"`
	Query   machine.Ordered[machine.Tree]     `yaml:"query" doc:"parameters behind the url, by name; null leaves one out, a list gives it several times"`
	Headers machine.Ordered[machine.Template] `yaml:"headers" flow:"free,env" doc:"headers by name; env(\"NAME\") stands for an environment variable"`
	JSON    machine.Tree                      `yaml:"json" doc:"body as JSON; a value that is exactly one {{ expression }} keeps its type"`
	Body    machine.Text                      `yaml:"body" doc:"body as text, instead of json"`
}

// result is the schema of what a call gives.
const result = `{"type":"object","properties":{"status":{"type":"integer"},"headers":{"type":"object"},"body":{}},` +
	`"required":["status","headers","body"],"additionalProperties":false}`

// Uses checks the request as far as it can be known before a call.
func (c *Config) Uses(scope machine.ToolScope) machine.ToolUses {
	uses := machine.ToolUses{Result: []byte(result)}
	problem := func(path, format string, args ...any) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case safe(c.Method):
		uses.Effect = machine.EffectRead
	case scope.Effect == "":
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "method", Rule: "missing-key", Message: fmt.Sprintf(
			"%s may change something, so %s needs effect: write (or idempotent, or read where it only asks)", c.Method, scope.Name)})
	case scope.Effect == machine.EffectRead && c.Method != http.MethodPost:
		problem("method", "%s changes something, so the tool's effect cannot be read; write effect: idempotent or write", c.Method)
	}
	if c.URL != nil {
		if _, err := readAddress(c.URL.Parts()); err != nil {
			problem("url", "%v", err)
		}
	}
	c.checkQuery(problem)
	c.checkHeaders(problem)
	if c.JSON != nil && c.Body != nil {
		problem("body", "json and body are two ways to give the one body; remove one of them")
	}
	if safe(c.Method) && (c.JSON != nil || c.Body != nil) {
		problem("method", "a %s has no body; put what it asks for into query", c.Method)
	}
	if scope.Batch && (scope.Effect == machine.EffectRead || scope.Effect == "" && uses.Effect == machine.EffectRead) {
		uses.Batch = true // or it is said here why not
		c.checkBatch(scope, problem)
	}
	return uses
}

// safe says whether a method asks only.
func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// checkQuery finds parameters that are objects whatever the arguments are.
func (c *Config) checkQuery(problem func(path, format string, args ...any)) {
	for _, item := range c.Query {
		v, err := item.Value.Value(machine.Facts{})
		list, ok := v.([]machine.Value)
		if !ok {
			list = []machine.Value{v}
		}
		if err == nil && slices.ContainsFunc(list, func(one machine.Value) bool { return !scalar(one) }) {
			problem("query."+item.Name, "the parameter %s of the query takes %s", item.Name, scalars)
		}
	}
}

// ownHeaders are headers that belong to the connection or to flowctl, with the reason why a flow cannot set them.
var ownHeaders = map[string]string{
	"Host":            "the host is that of the url",
	"Content-Length":  "it follows from the body",
	"Idempotency-Key": "flowctl sends the call's own key, the same on every attempt",
	"Accept-Encoding": "flowctl asks for what it can read",
}

// checkHeaders checks names, and values as far as they are fixed.
func (c *Config) checkHeaders(problem func(path, format string, args ...any)) {
	var seen []string
	for _, h := range c.Headers {
		path, name := "headers."+h.Name, http.CanonicalHeaderKey(h.Name)
		reason := ownHeaders[name]
		if hopByHop(name) {
			reason = "it belongs to the connection"
		}
		switch {
		case !isToken(h.Name):
			problem(path, "%q is no name of a header: letters, digits and -, as in X-Api-Key", h.Name)
		case reason != "":
			problem(path, "%s cannot be set: %s", h.Name, reason)
		case slices.Contains(seen, name):
			problem(path, "%s stands here twice; upper and lower case are one in headers", h.Name)
		}
		seen = append(seen, name)
		for _, part := range h.Value.Parts() {
			if part.Expr == nil && !fitsHeader(part.Fixed) {
				problem(path, "the value of %s holds a line break or another control character", h.Name)
				break
			}
		}
	}
}

// hopByHop says whether a header is between two neighbours only, such as a server and its proxy.
func hopByHop(name string) bool {
	return strings.HasPrefix(name, "Proxy-") || slices.Contains([]string{
		"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"}, name)
}

// isToken says whether s can be the name of a header.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}

// fitsHeader says whether s can stand in the value of a header.
func fitsHeader(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// New makes the tool of one declaration.
func (k *Kind) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	config, ok := spec.Config.(*Config)
	if !ok || config.URL == nil {
		return tool.Tool{}, fmt.Errorf("the tool %s is not of the kind http", spec.Name)
	}
	address, err := readAddress(config.URL.Parts())
	if err != nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: %w", spec.Name, err)
	}
	e := &endpoint{kind: k, name: spec.Name, effect: spec.Effect, config: config, address: address, getenv: env.Getenv}
	if spec.Batch && spec.Effect == machine.EffectRead {
		e.lists = names(spec.Parameters)
		return tool.Tool{Spec: spec, Batch: e.batch}, nil // a call that is alone is a list of one
	}
	return tool.Tool{Spec: spec, Run: e.run}, nil
}

// errClosed is the failure of a call after Close.
var errClosed = tool.Unavailablef("the connections of HTTP tools are closed: flowctl is shutting down")

// Close closes the connections that no call is using; those of calls under way are closed when they end. Calls that come
// later are unavailable.
func (k *Kind) Close() error {
	k.closed.Store(true)
	k.shared.CloseIdleConnections()
	k.single.CloseIdleConnections()
	return nil
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// firstVersion is the version of the protocol that a session is begun with. A server may answer with an older one. One that
// knows newer ones only refuses, and is asked again in their way; the newer way first would end some older servers.
const firstVersion = "2025-11-25"

// maxTools and maxPages are how much a server may list. A list that goes on behind that may have no end.
const (
	maxTools = 1000
	maxPages = 100
)

// errEndless is the failure of a list that is too long.
var errEndless = fmt.Errorf("it lists more than %d tools, or more than %d pages of them; it must list fewer", maxTools, maxPages)

// newsAfter is how long a new list is taken to be new: a tool that it lacks is not looked for again before.
const newsAfter = 5 * time.Second

// maxSilent is how many calls in a row may get no answer in their time before a server is taken for hung.
const maxSilent = 3

// session is one life of a server: from its start to its end.
type session struct {
	*tap
	client *sdk.ClientSession
	proc   *process // nil where the server has a url

	life   context.Context // ends when the session is being ended
	cancel context.CancelFunc
	silent atomic.Int64  // calls in a row that got no answer in their time
	over   chan struct{} // closed at the end
	reason string        // why it is over, for people, once it is

	now func() time.Time

	mu     sync.Mutex // of all below
	tools  map[string]*offer
	looked time.Time // when a tool that is not among them was last looked for in a new list
}

// offer is a tool as its server describes it.
type offer struct {
	*sdk.Tool
	check func() machine.Schema // of the arguments; nil where there is none that can be read
}

// open starts a server, or connects to it, and learns its tools. ctx bounds all of that. No tool has been called when it
// fails.
func (s *server) open(ctx context.Context) (*session, error) {
	one, err := s.greet(ctx, firstVersion)
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) && refusal.Code != codeRejected {
		if again, err := s.greet(ctx, ""); err == nil {
			one = again
		}
	}
	if one == nil {
		return nil, s.unfit(ctx, err)
	}
	seen := &exchange{}
	if err := one.list(carry(ctx, seen)); err != nil {
		err = s.unfit(ctx, &greeting{err: err, seen: seen, proc: one.proc})
		one.end()
		return nil, err
	}
	return one, nil
}

// codeRejected is the code of the library's own error about a request that its transport refused.
const codeRejected = -32005

// greeting is a start that failed, with what is known of it.
type greeting struct {
	err  error
	seen *exchange
	proc *process
}

func (g *greeting) Error() string { return g.err.Error() }
func (g *greeting) Unwrap() error { return g.err }

// greet starts a server and begins a session in a version of the protocol; "" is the newest.
func (s *server) greet(ctx context.Context, version string) (*session, error) {
	one := &session{over: make(chan struct{}), now: s.kind.options.Now}
	one.life, one.cancel = context.WithCancel(context.Background())
	var err error
	if s.url != "" {
		one.tap, err = connectWeb(ctx, s.definition, s.kind.routes)
	} else if one.proc, err = startProcess(s.definition, s.log); err == nil {
		one.tap = &tap{Connection: one.proc, waiting: map[jsonrpc.ID]*exchange{}}
		s.kind.running.Add(1) // the start is counted, so that it is not zero
		go func() {
			<-one.proc.gone
			s.kind.running.Done()
		}()
	}
	if err != nil {
		one.cancel()
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "flowctl", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, no sampling, no questions to the human
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	seen := &exchange{}
	one.client, err = client.Connect(carry(ctx, seen), fixed{one.tap}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		one.end()
		return nil, &greeting{err: err, seen: seen, proc: one.proc}
	}
	return one, nil
}

// end ends the session; over tells when.
func (s *session) end() {
	s.cancel()
	_ = s.tap.Close() // there is nothing to be done about a server that does not hear it
}

// bound gives a context that ends with the session too.
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// missed says that a call failed because the session was over already: the server has not seen it.
func (s *session) missed(x *exchange, err error) bool {
	var known *tool.Error
	switch {
	case err == nil || x.answer.Load() != nil || errors.As(err, &known):
		return false
	case x.sent.Load():
		return x.status.Load() == http.StatusNotFound && errors.Is(err, sdk.ErrSessionMissing)
	}
	return s.life.Err() != nil || s.proc != nil && s.proc.left() || errors.Is(err, sdk.ErrConnectionClosed)
}

// ending says whether the session is over. Where it is about to be, it waits for that, since the reason is known then.
func (s *session) ending(ctx context.Context) bool {
	if s.life.Err() == nil && (s.proc == nil || !s.proc.left()) {
		return false
	}
	select {
	case <-s.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// unfit says why a server could not be started, for people. The call that waited for it has done nothing.
func (s *server) unfit(ctx context.Context, err error) error {
	var known *tool.Error
	if errors.As(err, &known) {
		return err
	}
	if s.kind.life.Err() != nil {
		return errClosed
	}
	g := &greeting{err: err}
	errors.As(err, &g)
	how := ""
	var refusal *jsonrpc.Error
	switch late := errors.Is(ctx.Err(), context.DeadlineExceeded); {
	case g.proc != nil && g.proc.givenUp() != nil:
		how = "cannot be used: " + g.proc.givenUp().Error()
	case g.proc != nil && !late && g.proc.ends():
		how = g.proc.ended() + " before it was ready" + g.proc.lastWords() + g.proc.hint()
	case g.proc != nil && late:
		how = fmt.Sprintf("was not ready within %s%s", s.patience(), g.proc.hint())
	case late:
		how = fmt.Sprintf("did not answer within %s", s.patience())
	case g.seen != nil && g.seen.status.Load() >= 300:
		how = statusWords(int(g.seen.status.Load()))
	case errors.As(err, &refusal) && refusal.Code != codeRejected:
		how = "refuses the session: " + refusal.Message
	case g.seen != nil && !g.seen.sent.Load():
		how = "cannot be reached: " + words(err)
	default:
		how = "does not speak the protocol as it should: " + words(err)
	}
	return tool.Unavailablef("the MCP server %s %s", s.label(), s.secrets.mask(how))
}

// label names a server for people.
func (d definition) label() string {
	if d.url != "" {
		return d.name + " (" + d.host() + ")"
	}
	return d.name
}

// words gives the cause of a failed exchange for people.
func words(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var op *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no host of that name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it closed the connection"
	case errors.As(err, &op):
		err = op.Err
	}
	return err.Error()
}

// list learns the tools of the server anew. A server may have none.
func (s *session) list(ctx context.Context) error {
	tools := map[string]*offer{}
	listed, params := 0, &sdk.ListToolsParams{}
	for page := 1; ; page++ {
		given, err := s.client.ListTools(ctx, params)
		var fault *jsonrpc.Error
		if errors.As(err, &fault) && fault.Code == jsonrpc.CodeMethodNotFound {
			break
		}
		if err != nil {
			return err
		}
		if listed += len(given.Tools); listed > maxTools || page == maxPages && given.NextCursor != "" {
			return errEndless
		}
		for _, one := range given.Tools {
			if one == nil {
				continue // a null in the list
			}
			tools[one.Name] = &offer{Tool: one, check: sync.OnceValue(func() machine.Schema { return schemaOf(one.InputSchema) })}
		}
		if given.NextCursor == "" {
			break
		}
		params.Cursor = given.NextCursor
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
	return nil
}

// schemaOf compiles a schema of a server. One that cannot be read is nil: the server checks the arguments too.
func schemaOf(raw any) machine.Schema {
	if raw == nil {
		return nil
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return nil
	}
	compiled, err := schema.Compile(data)
	if err != nil {
		return nil
	}
	return compiled
}

// offers gives the tools as they were last listed. The map must not be changed.
func (s *session) offers() map[string]*offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// find gives a tool by the server's name; nil if there is none. One that is not known is looked for in a new list, since tools
// come and go, but not at every call: a model may ask for it again and again.
func (s *session) find(ctx context.Context, name string) (*offer, error) {
	if o, ok := s.offers()[name]; ok {
		return o, nil
	}
	if !s.mayLook() {
		return nil, nil
	}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	return s.offers()[name], nil
}

// mayLook says whether it is time for a new list, and takes note of it.
func (s *session) mayLook() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.looked.IsZero() && now.Sub(s.looked) < newsAfter {
		return false
	}
	s.looked = now
	return true
}

// lost says why a session came to its end: what is known of the process, else of the error.
func (s *session) lost(err error) string {
	switch {
	case s.proc != nil && s.proc.givenUp() != nil:
		return "cannot be used any more: " + s.proc.givenUp().Error()
	case s.proc != nil && s.proc.ends():
		return s.proc.ended() + s.proc.lastWords()
	case s.proc != nil:
		return "was ended"
	case errors.Is(err, sdk.ErrSessionMissing):
		return "has ended the session"
	case err == nil:
		return "closed the connection"
	}
	return "broke the connection: " + words(err)
}

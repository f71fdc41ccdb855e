package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// metaKey is the key of a request's _meta that holds the idempotency key of a call.
const metaKey = "flowctl/idempotency_key"

// nobodyKnows ends what is said of a call whose result is unknown.
const nobodyKnows = "; nobody knows whether it was carried out"

// remote is one tool.
type remote struct {
	kind   *Kind
	spec   machine.ToolSpec
	server declaration
	name   string // the server's own name of the tool
}

// run makes one call.
func (r *remote) run(ctx context.Context, call tool.Call) (machine.Value, error) {
	if !r.kind.begin() {
		return nil, errClosed
	}
	defer r.kind.running.Done()
	d, err := r.server.define()
	if err != nil {
		return nil, err
	}
	o := outcome{server: r.kind.serverOf(d)}
	o.session, o.err = o.server.use(ctx, r.spec.Name, func(one *session) (*exchange, error) {
		o.seen = &exchange{alone: r.spec.Effect != machine.EffectRead}
		return o.seen, r.ask(ctx, o.server, one, call, o.seen)
	})
	if o.session == nil {
		return nil, o.err
	}
	return r.judge(ctx, o)
}

// ask sends the call and waits for what comes of it, which is in x. An error is one of the way, or a *tool.Error where the
// call is not sent because it would be refused.
func (r *remote) ask(ctx context.Context, s *server, one *session, call tool.Call, x *exchange) error {
	ctx, stop := one.bound(ctx)
	defer stop()
	o, err := one.find(ctx, r.name)
	var fault *jsonrpc.Error
	switch {
	case errors.As(err, &fault) && fault.Code != codeRejected, errors.Is(err, errEndless):
		return s.noList(err)
	case err != nil:
		return err
	}
	if o == nil {
		return refused("%s was not called: %s", r.spec.Name, s.noTool(r.name, one.offers()))
	}
	args := call.Args
	if args == nil {
		args = machine.Values{} // servers refuse a call without arguments
	}
	if parameters := o.check(); parameters != nil {
		if err := parameters.Check(args); err != nil {
			return refused("%s was not called: its arguments are not those of the tool %s of the MCP server %s: %w", r.spec.Name,
				r.name, s.label(), err)
		}
	}
	defer one.forget(x)
	_, err = one.client.CallTool(want(ctx, x), &sdk.CallToolParams{Name: r.name, Arguments: args, Meta: sdk.Meta{metaKey: call.Key}})
	return err
}

func refused(format string, args ...any) error {
	return &tool.Error{Status: tool.Refused, Err: fmt.Errorf(format, args...)}
}

// noTool says that a server has no tool of a name, and what it has.
func (s *server) noTool(name string, offers map[string]*offer) string {
	const most = 20
	names := machine.SortedNames(offers)
	said := fmt.Sprintf("the MCP server %s has no tool %q", s.label(), name)
	if len(names) == 0 {
		return said + ", nor any other"
	}
	if near := spell.Nearest(name, names); near != "" {
		return said + ", did you mean " + near + "?"
	}
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(offers)-most))
	}
	return said + "; it has " + strings.Join(names, ", ")
}

// outcome is all that is known of a call that was asked for.
type outcome struct {
	server  *server
	session *session
	seen    *exchange
	err     error
}

// judge makes the result of a call.
func (r *remote) judge(ctx context.Context, o outcome) (machine.Value, error) {
	if answered := o.seen.answer.Load(); answered != nil {
		o.server.heard(o.session)
		var fault *jsonrpc.Error
		switch refused := errors.As(answered.Error, &fault); {
		case refused && ctx.Err() != nil: // it may only answer to our being gone, after having begun
			return nil, r.cutShort(ctx, o)
		case refused:
			return nil, &tool.Error{Status: tool.Failed, Err: fmt.Errorf("the MCP server %s refused the call of %s: %s", o.server.label(),
				r.name, fault.Message)}
		}
		return read(answered.Result, r.spec.Effect)
	}
	var known *tool.Error
	if errors.As(o.err, &known) {
		return nil, o.err
	}
	if ctx.Err() != nil {
		return nil, r.cutShort(ctx, o)
	}
	why, certain := o.why(ctx)
	why = fmt.Sprintf("the MCP server %s %s", o.server.label(), o.server.secrets.mask(why))
	if !certain && (r.spec.Effect == machine.EffectWrite || r.spec.Effect == machine.EffectIdempotent && !o.turnedDown()) {
		return nil, &tool.Error{Status: tool.Unknown, Err: fmt.Errorf("%s was called, and %s%s", r.spec.Name, why, nobodyKnows)}
	}
	return nil, tool.Unavailablef("%s", why)
}

// cutShort is the failure of a call that had to stop before there was an answer. The session stays usable.
func (r *remote) cutShort(ctx context.Context, o outcome) error {
	timeout, sent := errors.Is(ctx.Err(), context.DeadlineExceeded), o.seen.sent.Load()
	if timeout {
		o.server.unheard(o.session)
	}
	switch {
	case timeout && !sent:
		return late("the MCP server %s took nothing in; %s was not called", o.server.label(), r.spec.Name)
	case !sent:
		return tool.Undone(ctx, r.spec.Name)
	case !timeout || r.spec.Effect != machine.EffectRead:
		return ctx.Err() // what is known of it, the runner knows
	}
	return late("the MCP server %s did not answer in time", o.server.label())
}

// turnedDown says whether the server has answered with a status that is no success.
func (o outcome) turnedDown() bool { return o.seen.status.Load() >= 300 }

// why says why there was no answer, and whether it is certain that the call was not carried out.
func (o outcome) why(ctx context.Context) (how string, certain bool) {
	status, sent := int(o.seen.status.Load()), o.seen.sent.Load()
	var fault *jsonrpc.Error
	switch {
	case o.turnedDown():
		how = statusWords(status)
		if errors.As(o.err, &fault) && fault.Code != codeRejected {
			how = fmt.Sprintf("answered with %d: %s", status, fault.Message)
		}
		return how, untouched(status)
	case o.server.kind.life.Err() != nil:
		return "was ended, since flowctl is shutting down", !sent
	case o.session.ending(ctx):
		return o.session.reason, !sent
	case !sent:
		return "cannot be reached: " + words(o.err), true
	}
	return "gave no answer: " + words(o.err), false
}

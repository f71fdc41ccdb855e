package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// exchange is what is seen of one request on its way. The library tells neither whether a request that failed had left,
// nor every digit of a number in an answer; so it is looked at below the library.
type exchange struct {
	alone  bool                             // the request gets an HTTP connection of its own
	sent   atomic.Bool                      // from here on the server may have got the request
	status atomic.Int64                     // of the last HTTP response, 0: there was none
	answer atomic.Pointer[jsonrpc.Response] // what the server answered
}

// The keys of exchanges in contexts: of the one that a call wants to be told about, and of the one that the message which
// is being sent belongs to. They differ, since the library sends other messages (a cancellation) under a call's context.
type (
	wantedKey  struct{}
	carriedKey struct{}
)

func want(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, wantedKey{}, x)
}

// carry makes ctx the one of messages that belong to x.
func carry(ctx context.Context, x *exchange) context.Context {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }})
	return context.WithValue(ctx, carriedKey{}, x)
}

// carried gives the exchange of the message that is being sent under ctx; one that nobody looks at where there is none.
func carried(ctx context.Context) *exchange {
	if x, ok := ctx.Value(carriedKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// tap is a connection whose tool calls are looked at.
type tap struct {
	sdk.Connection
	version atomic.Pointer[string] // of the protocol, as the server chose it; nil before

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*exchange // by request
	hello   jsonrpc.ID               // of the request that begins the session
}

// fixed is the transport of a connection that is there already.
type fixed struct{ sdk.Connection }

// Connect gives the connection.
func (f fixed) Connect(context.Context) (sdk.Connection, error) { return f.Connection, nil }

// Write passes a message on, and remembers whose answer is waited for.
func (t *tap) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return t.Connection.Write(ctx, msg)
	}
	x, wanted := ctx.Value(wantedKey{}).(*exchange)
	t.mu.Lock()
	switch {
	case req.Method == "initialize":
		t.hello = req.ID
	case wanted && req.Method == "tools/call":
		t.waiting[req.ID] = x
		ctx = carry(ctx, x)
	}
	t.mu.Unlock()
	return t.Connection.Write(ctx, msg)
}

// Read passes a message on, and tells the one who waits for it.
func (t *tap) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := t.Connection.Read(ctx)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return msg, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var fault *jsonrpc.Error
	x, wanted := t.waiting[resp.ID]
	switch {
	case resp.ID.IsValid() && resp.ID == t.hello:
		var begun struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(resp.Result, &begun) == nil { // the library says what is wrong with it
			t.version.Store(&begun.ProtocolVersion)
		}
	case wanted && (resp.Error == nil || errors.As(resp.Error, &fault)): // any other error is the library's own
		x.answer.Store(resp)
	}
	return msg, nil
}

// forget ends the waiting for an answer.
func (t *tap) forget(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, one := range t.waiting {
		if one == x {
			delete(t.waiting, id)
		}
	}
}

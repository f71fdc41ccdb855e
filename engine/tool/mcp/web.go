package mcp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 5

// routes are the two ways of a request. One that must not be sent twice gets a connection of its own: a connection that its
// server has just given up would leave it in doubt for nothing.
type routes struct{ shared, single http.RoundTripper }

// web makes the requests of a session with a url.
type web struct {
	routes
	headers []setting
	version *atomic.Pointer[string] // of the protocol; the library does not know it, since it does not see its own connection
}

// RoundTrip makes one request.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, stop := req.Context(), context.CancelFunc(func() {})
	if req.Method == http.MethodDelete { // the end of the session, which a silent server must not hold up
		ctx, stop = context.WithTimeout(ctx, patience)
	}
	req = req.Clone(ctx)
	for _, h := range w.headers {
		req.Header.Set(h.Name, h.Value)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "flowctl")
	}
	if version := w.version.Load(); version != nil && req.Header.Get("Mcp-Protocol-Version") == "" {
		req.Header.Set("Mcp-Protocol-Version", *version)
	}
	route := w.shared
	if carried(ctx).alone {
		route = w.single
	}
	resp, err := route.RoundTrip(req)
	if err != nil {
		stop()
		return nil, err
	}
	carried(ctx).status.Store(int64(resp.StatusCode))
	left := int64(maxMessage)
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		left = -1 // the library bounds each of its events
	}
	resp.Body = &body{ReadCloser: resp.Body, left: left, stop: stop}
	return resp, nil
}

// body is the body of a response, of bounded size.
type body struct {
	io.ReadCloser
	left int64 // bytes that may still come; negative: any number
	stop context.CancelFunc
}

func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if b.left < 0 {
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return 0, fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)
	}
	return n, err
}

func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

// redirect follows a redirect within the same scheme and host that keeps the method. Any other would send the headers to
// a stranger, or lose the message.
func redirect(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	same := strings.EqualFold(next.URL.Scheme, last.URL.Scheme) && strings.EqualFold(next.URL.Host, last.URL.Host)
	if len(via) > maxRedirects || !same || next.Method != last.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// connectWeb makes the connection to a url. Nothing is sent yet.
func connectWeb(ctx context.Context, d definition, by routes) (*tap, error) {
	t := &tap{waiting: map[jsonrpc.ID]*exchange{}}
	transport := &sdk.StreamableClientTransport{
		Endpoint:             d.url,
		HTTPClient:           &http.Client{Transport: &web{routes: by, headers: d.values, version: &t.version}, CheckRedirect: redirect},
		DisableStandaloneSSE: true, // nothing is wanted that was not asked for
	}
	conn, err := transport.Connect(ctx)
	t.Connection = conn
	return t, err
}

// host gives the host of the url, for messages.
func (d definition) host() string {
	u, err := url.Parse(d.url)
	if err != nil {
		return d.url
	}
	return u.Host
}

// statusWords says what a status of HTTP means for a session, with what to do about it.
func statusWords(status int) string {
	said := fmt.Sprintf("answered with %d", status)
	if text := http.StatusText(status); text != "" {
		said += " " + text
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		said += "; look at the headers that the flow gives it"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		said += "; there seems to be no MCP server at this url"
	case status >= 300 && status <= 399:
		said += ", which was not followed; write the new address into url"
	}
	return said
}

// untouched says that a status tells for sure that a call was not carried out.
func untouched(status int) bool {
	return status >= 300 && status <= 499 || status == http.StatusNotImplemented
}

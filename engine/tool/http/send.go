package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// nobodyKnows ends what is said of a call whose result is unknown.
const nobodyKnows = "; nobody knows whether it was carried out"

// maxRedirects is how many redirects one call follows.
const maxRedirects = 5

// exchange is one call under way.
type exchange struct {
	*endpoint
	sent    atomic.Bool // there was a connection: from here on the server may have got the request
	stopped string      // why a redirect was not followed
	viewing bool        // a redirect has led from the request itself to a look at its result
}

// run makes one call.
func (e *endpoint) run(ctx context.Context, call tool.Call) (machine.Value, error) {
	if e.kind.closed.Load() {
		return nil, errClosed
	}
	x := &exchange{endpoint: e}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }})
	req, err := e.request(ctx, call)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: e.kind.single, CheckRedirect: x.redirect}
	if e.effect == machine.EffectRead && safe(e.config.Method) {
		client.Transport = e.kind.shared
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, x.broken(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read as far as it counts
	body, err := readBody(resp)
	if err != nil && success(resp.StatusCode) {
		return nil, x.broken(ctx, err)
	}
	return x.judge(resp, body)
}

func success(status int) bool { return status >= 200 && status <= 299 }

// redirect decides whether a redirect is followed.
func (x *exchange) redirect(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	switch {
	case len(via) > maxRedirects:
		x.stopped = fmt.Sprintf("there were more than %d redirects", maxRedirects)
	case origin(next.URL) != origin(last.URL):
		x.stopped = "it leads to another server; if that is right, write the new address into url"
	case next.Method != last.Method && next.Response.StatusCode != http.StatusSeeOther:
		x.stopped = fmt.Sprintf("a redirect of this kind would turn the %s into a GET; write the new address into url", last.Method)
	default:
		if next.Method != last.Method {
			x.viewing = true
			next.Header.Del("Idempotency-Key")
			next.Header.Del("Content-Type")
		}
		return nil
	}
	return http.ErrUseLastResponse
}

// origin gives scheme, host and port, in one form for all ways to write them.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// broken says how a call ended that got no whole answer.
func (x *exchange) broken(ctx context.Context, err error) error {
	host, sent, changes := x.address.host, x.sent.Load(), x.effect != machine.EffectRead
	timeout := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case ctx.Err() != nil && !timeout && !sent:
		return tool.Undone(ctx, x.name)
	case ctx.Err() != nil && (!timeout || sent && changes):
		return ctx.Err() // what is known of it, the runner knows
	case timeout && !sent:
		return late("%s could not be reached in time; nothing was sent", host)
	case timeout:
		return late("%s did not answer in time", host)
	case !sent:
		return tool.Unavailablef("%s cannot be reached: %s", host, words(err))
	case changes:
		return &tool.Error{Status: tool.Unknown, Err: fmt.Errorf(
			"the %s was sent to %s, and no whole answer came back (%s)%s", x.config.Method, host, words(err), nobodyKnows)}
	}
	return tool.Unavailablef("%s gave no whole answer: %s", host, words(err))
}

// late is the failure of a call whose time was up, where it is certain that it can be made again.
func late(format string, args ...any) error {
	return &tool.Error{Status: tool.Unavailable, Kind: tool.KindTimeout, Err: fmt.Errorf(format, args...)}
}

// words gives the cause of a failed exchange for people, without urls, which hold the call's arguments.
func words(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var op *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no host of that name"
	case errors.As(err, &name):
		return "its name cannot be looked up: " + name.Err
	case errors.As(err, &certificate):
		return "its certificate is not trusted: " + certificate.Err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	case errors.As(err, &op):
		err = op.Err
	}
	return strings.TrimPrefix(err.Error(), "net/http: ")
}

// judge makes the result of an answer.
func (x *exchange) judge(resp *http.Response, body content) (machine.Value, error) {
	value := machine.Values{"status": int64(resp.StatusCode), "headers": headersOf(resp.Header), "body": body.value}
	said := x.said(resp)
	if x.stopped != "" {
		said += ", which was not followed: " + x.stopped
	}
	fail := func(status tool.Status, kind, more string) (machine.Value, error) {
		return nil, &tool.Error{Status: status, Kind: kind, Value: value, Err: errors.New(said + more)}
	}
	write := x.effect == machine.EffectWrite
	switch code := resp.StatusCode; {
	case success(code) && body.flaw != "" && x.effect == machine.EffectRead:
		return fail(tool.Failed, body.kind, ": "+body.flaw)
	case success(code):
		return value, nil
	case x.viewing && write:
		return fail(tool.Unknown, "", fmt.Sprintf(", where the answer to the %s led%s", x.config.Method, nobodyKnows))
	case write && (code == http.StatusFound || code == http.StatusSeeOther): // often the answer to a form that was taken
		return fail(tool.Unknown, "", nobodyKnows)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fail(tool.Failed, "none_found", "")
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests:
		return fail(tool.Unavailable, "", "")
	case code == http.StatusNotImplemented || code == http.StatusHTTPVersionNotSupported || code < 500:
		return fail(tool.Failed, "", "")
	case write:
		return fail(tool.Unknown, "", nobodyKnows)
	}
	return fail(tool.Unavailable, "", "")
}

// said gives what a server answered to what, without the query and the headers.
func (x *exchange) said(resp *http.Response) string {
	asked := resp.Request.Method + " " + resp.Request.URL.EscapedPath()
	status := fmt.Sprint(resp.StatusCode)
	if text := http.StatusText(resp.StatusCode); text != "" {
		status += " " + text
	}
	return fmt.Sprintf("%s answered %s with %s", x.address.host, asked, status)
}

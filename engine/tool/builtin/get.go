package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const (
	httpGetName  = "http_get"
	maxPage      = 1 << 20 // bytes of a text that is given
	maxRedirects = 5
)

type getArgs struct {
	URL string `json:"url" jsonschema:"description=Address of the page\\, such as https://example.com/guide,minLength=1"`
}

type page struct {
	URL  string `json:"url"`
	Type string `json:"type"`
	Text string `json:"text"`
}

// httpGet makes the function that reads a page of one of the hosts.
func httpGet(h hosts) tool.Function {
	g := getter{hosts: h, open: transport(false), guarded: transport(true)}
	return tool.Func(httpGetName, "Read a text from the web: a page, a document or data. Only some hosts can be asked.", machine.EffectRead, g.get)
}

// getter is one such function. It keeps no connections.
type getter struct {
	hosts   hosts
	open    *http.Transport // for hosts that are named literally
	guarded *http.Transport // for hosts that a pattern has let in: their address must be public
}

// transport makes connections. A guarded one looks at the very address that is connected to, whatever names led there; so
// it cannot go through a proxy, which would look the name up once more.
func transport(guarded bool) *http.Transport {
	dialer := net.Dialer{Timeout: 30 * time.Second}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 30 * time.Second, DisableKeepAlives: true,
		MaxResponseHeaderBytes: 256 << 10}
	if guarded {
		t.Proxy, dialer.Control = nil, onlyPublic
	}
	t.DialContext = dialer.DialContext
	return t
}

func onlyPublic(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || !public(to.Addr()) {
		return errOwnNetwork
	}
	return nil
}

// RoundTrip sends one request of a call, the first or one that a redirect led to. It is where nothing gets past the hosts.
func (g getter) RoundTrip(req *http.Request) (*http.Response, error) {
	named, ok := g.hosts.find(req.URL)
	switch {
	case !ok:
		return nil, g.notAmong(req.URL)
	case named:
		return g.open.RoundTrip(req)
	}
	return g.guarded.RoundTrip(req)
}

func (g getter) notAmong(u *url.URL) error {
	return refused("%s is not among the hosts that can be asked: %s", show(u.Host), g.hosts)
}

func (g getter) get(ctx context.Context, _ tool.Call, args getArgs) (page, error) {
	u, err := g.address(args.URL)
	if err != nil {
		return page{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page{}, refused("%s is no address", show(args.URL))
	}
	req.Header.Set("User-Agent", "flowctl")
	req.Header.Set("Accept", "text/*, application/json, application/xml, */*;q=0.5")
	client := http.Client{Transport: g, CheckRedirect: g.redirect}
	resp, err := client.Do(req)
	if err != nil {
		return page{}, broken(ctx, u.Host, err)
	}
	defer resp.Body.Close()
	if err := judge(resp); err != nil {
		return page{}, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return page{}, broken(ctx, u.Host, err)
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	text, err := pageText(data, kind)
	if err != nil {
		return page{}, err
	}
	return page{URL: resp.Request.URL.String(), Type: kind, Text: text}, nil
}

// address reads what a model wrote.
func (g getter) address(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, refused("%s is no address that can be read; it starts with https:// or http:// and a host, as in "+
			"https://example.com/guide", show(text))
	case u.User != nil:
		return nil, refused("an address with a name or a password before the host is not asked; leave out what stands before the @")
	}
	if _, ok := g.hosts.find(u); !ok {
		return nil, g.notAmong(u)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// redirect decides whether a redirect is followed.
func (g getter) redirect(next *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL.Host
	switch _, ok := g.hosts.find(next.URL); {
	case len(via) > maxRedirects:
		return tool.Failf("", "%s leads on and on: there were more than %d redirects", from, maxRedirects)
	case next.URL.Scheme != "http" && next.URL.Scheme != "https" || next.URL.User != nil:
		return tool.Failf("", "%s leads to an address that is not asked", from)
	case !ok:
		return tool.Failf("", "%s leads to %s, which is not among the hosts that can be asked: %s", from, show(next.URL.Host), g.hosts)
	}
	return nil
}

// broken says why there is no whole answer.
func broken(ctx context.Context, host string, err error) error {
	var own *tool.Error
	var op *net.OpError
	var name *net.DNSError
	var at *url.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, errOwnNetwork):
		return refused("%s is not asked: %w, and the host is not named literally among the hosts", host, errOwnNetwork)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &tool.Error{Status: tool.Unavailable, Kind: tool.KindTimeout, Err: fmt.Errorf("%s did not answer in time", host)}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &name) && name.IsNotFound:
		return tool.Failf("none_found", "there is no host %s", host)
	case errors.As(err, &op):
		err = op.Err
	case errors.As(err, &at):
		err = at.Err
	}
	return tool.Unavailablef("%s cannot be reached, or gave no whole answer: %w", host, err)
}

// judge says what is wrong with an answer by its status.
func judge(resp *http.Response) error {
	code := resp.StatusCode
	said := fmt.Sprintf("%s answered %s with %d %s", resp.Request.URL.Host, show(resp.Request.URL.EscapedPath()), code, http.StatusText(code))
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return tool.Failf("none_found", "%s", said)
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return tool.Unavailablef("%s", said)
	}
	return tool.Failf("", "%s", said)
}

// pageText makes text of a body of which at most one byte more than maxPage was read.
func pageText(data []byte, kind string) (string, error) {
	cut := len(data) > maxPage
	if cut {
		end := maxPage
		for end > maxPage-utf8.UTFMax && !utf8.RuneStart(data[end]) {
			end--
		}
		data = data[:end]
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		what := ""
		if kind != "" {
			what = " (it is " + kind + ")"
		}
		return "", tool.Failf("invalid", "the answer is no text in UTF-8%s, and only that can be read", what)
	}
	if cut {
		text += fmt.Sprintf("… [cut after %d bytes]", len(data))
	}
	return text, nil
}

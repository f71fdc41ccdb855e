package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"flowctl/engine/model"
)

// exchange is what a request and its answer carry past the library. It belongs to one call of Generate.
type exchange struct {
	fields   map[string]json.RawMessage // of the body
	messages []model.Message
	sendBack bool // reasoning goes back to the endpoint
	stream   bool // asked for
	cancel   context.CancelCauseFunc

	sent      bool
	requestID string // the endpoint's, for its support
	body      []byte // of an answer that came as a whole; nil: it comes as a stream
	watched   *watched
}

type exchangeKey struct{}

// transport is the http.RoundTripper between the library and the network. Whatever is no success becomes an error here,
// while the headers are at hand.
type transport struct {
	to  target
	opt Options
}

// largestError is how much of the body of a refusal is read.
const largestError = 64 << 10

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	written, err := io.ReadAll(req.Body)
	_ = req.Body.Close() // it is in memory
	if err != nil {
		return nil, err
	}
	if written, err = x.patch(written); err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Body, out.GetBody = io.NopCloser(bytes.NewReader(written)), nil
	out.ContentLength = int64(len(written))
	out.Header.Set("User-Agent", "flowctl")
	x.sent = true
	resp, err := t.opt.Transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	x.requestID = resp.Header.Get("X-Request-Id")
	x.watched = newWatched(resp.Body, t.opt, x.cancel)
	resp.Body = x.watched
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer func() { _ = resp.Body.Close() }() // it was only read
		return nil, t.refusal(resp)
	}
	return t.accept(resp, x)
}

// refusal makes an error of an answer that is no success.
func (t *transport) refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, largestError)) // if it is cut, the status says enough
	if resp.StatusCode < 400 {
		return &model.Error{Class: model.BadRequest, Status: resp.StatusCode,
			Err: fmt.Errorf("it sends us on to %q: give that address as base_url", resp.Header.Get("Location"))}
	}
	p := readProblem(body)
	return &model.Error{
		Class:      p.class(resp.StatusCode),
		Status:     resp.StatusCode,
		RetryAfter: retryAfter(resp.Header, t.opt.Now()),
		Err:        fmt.Errorf("it answered %d %s%s", resp.StatusCode, http.StatusText(resp.StatusCode), p.suffix()),
	}
}

// accept keeps an answer that comes as a whole, and cleans one that comes as a stream. The library gets what it can read:
// the answer itself is read from the exchange.
func (t *transport) accept(resp *http.Response, x *exchange) (*http.Response, error) {
	buffered := bufio.NewReader(resp.Body)
	first, err := firstByte(buffered)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = resp.Body.Close() // it was only read
		return nil, err
	}
	if x.stream && err == nil && !strings.ContainsRune("{[<", rune(first)) {
		resp.Body = &events{in: buffered, closer: resp.Body}
		return resp, nil
	}
	body, err := io.ReadAll(buffered)
	_ = resp.Body.Close() // it was only read
	if err != nil {
		return nil, err
	}
	x.body = append([]byte{}, body...) // never nil
	stand := "{}"
	if x.stream {
		stand = "data: [DONE]\n\n"
	}
	resp.Body = io.NopCloser(strings.NewReader(stand))
	return resp, nil
}

// firstByte passes over the blanks that some endpoints send to keep the connection, and a byte order mark.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\xef\xbb\xbf", rune(c)) && c < 0x80 {
			return c, r.UnreadByte()
		}
	}
}

// watched is the body of an answer. Its size is bounded, and the exchange ends when nothing comes for too long; time that
// the reader spends elsewhere does not count.
type watched struct {
	body    io.ReadCloser
	silence time.Duration // shorter once the answer is whole
	timer   *time.Timer
	left    int64
	max     int64
}

// afterwards is how long anything may still come behind an answer that is whole.
const afterwards = 3 * time.Second

// linger lets the exchange end soon: its answer is whole.
func (x *exchange) linger() {
	if x.watched != nil {
		x.watched.silence = min(x.watched.silence, afterwards)
	}
}

func newWatched(body io.ReadCloser, opt Options, cancel context.CancelCauseFunc) *watched {
	w := &watched{body: body, silence: opt.Silence, left: opt.MaxBytes, max: opt.MaxBytes}
	w.timer = time.AfterFunc(opt.Silence, func() { cancel(silenceError(opt.Silence)) })
	w.timer.Stop()
	return w
}

func (w *watched) Read(p []byte) (int, error) {
	if w.left < 0 {
		return 0, malformed("its answer is longer than %d bytes, the most that is read", w.max)
	}
	if int64(len(p)) > w.left+1 {
		p = p[:w.left+1] // one more than may be, to see that there is more
	}
	w.timer.Reset(w.silence)
	n, err := w.body.Read(p)
	w.timer.Stop()
	if w.left -= int64(n); w.left < 0 {
		return 0, malformed("its answer is longer than %d bytes, the most that is read", w.max)
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	return w.body.Close()
}

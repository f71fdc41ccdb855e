package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// Options is what a model is made with. The zero value is ready to use.
type Options struct {
	// Getenv reads the environment. Nil: it is empty.
	Getenv Getenv
	// Transport sends requests. Nil: http.DefaultTransport.
	Transport http.RoundTripper
	// Redact takes further secrets out of errors. The model's own key is taken out in any case. Nil: there are none.
	Redact func(string) string
	// Now is the clock for a Retry-After that is a date. Nil: time.Now.
	Now func() time.Time
	// Silence is how long an endpoint that has begun its answer may send nothing. 0: 60 s.
	Silence time.Duration
	// MaxBytes is the largest answer that is read. 0: 16 MiB.
	MaxBytes int64
}

const (
	defaultSilence  = 60 * time.Second
	defaultMaxBytes = 16 << 20
)

// Model is a model behind an endpoint. It is safe for concurrent use and keeps nothing between requests.
type Model struct {
	cfg    Config
	to     target
	extra  machine.Values
	opt    Options
	client *openai.Client
	redact func(string) string
}

var _ model.Model = (*Model)(nil)

// New reads the environment and makes the model of a config; nothing is sent. It looks at what concerns one request:
// Protocol, Fallback, Concurrency, RPM, Prices, Window and Offline are for the wrappers of package model and for whoever
// puts these together. Its errors are *model.Error: authentication where the key is missing or spoilt, else bad request.
func New(cfg Config, opt Options) (*Model, error) {
	to, err := cfg.resolve(opt.Getenv)
	if err != nil {
		return nil, err
	}
	extra, err := cfg.extra()
	if err != nil {
		return nil, err
	}
	if opt.Transport == nil {
		opt.Transport = http.DefaultTransport
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Silence == 0 {
		opt.Silence = defaultSilence
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = defaultMaxBytes
	}
	m := &Model{cfg: cfg, to: to, extra: extra, opt: opt, redact: redactor(to.keyName, to.key, opt.Redact)}
	config := openai.DefaultConfig(to.key)
	config.BaseURL = to.base.String()
	config.HTTPClient = &http.Client{Transport: &transport{to: to, opt: opt}}
	m.client = openai.NewClientWithConfig(config)
	return m, nil
}

// Endpoint gives the address that requests go to, and the name of the model there.
func (m *Model) Endpoint() (address, id string) { return m.to.base.String(), m.to.model }

// Generate implements model.Model. A request whose Stream is set is streamed; the response is the same either way.
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	send := sending{schema: req.Answer != nil && !req.NoSchema, usage: req.Stream != nil}
	var notes []string
	for {
		resp, err := m.exchange(ctx, req, send)
		if err == nil {
			resp.Notes = notes
			return resp, nil
		}
		if ctx.Err() != nil {
			return model.Response{}, context.Cause(ctx)
		}
		note := send.drop(err)
		if note == "" {
			return model.Response{}, err
		}
		notes = append(notes, note)
	}
}

// exchange sends a request once and reads the answer. All errors but the end of ctx are *model.Error without secrets.
func (m *Model) exchange(ctx context.Context, req model.Request, send sending) (model.Response, error) {
	timeout := time.Duration(m.cfg.Timeout)
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	inner, stop := context.WithTimeoutCause(inner, timeout, timeoutError(timeout))
	defer stop()
	x := &exchange{messages: req.Native(), stream: req.Stream != nil, cancel: cancel}
	x.sendBack = m.cfg.Reasoning == ReasoningSendBack
	var err error
	if x.fields, err = m.fields(req); err != nil {
		return model.Response{}, m.failure(inner, x, err)
	}
	inner = context.WithValue(inner, exchangeKey{}, x)
	resp, err := m.ask(inner, x, m.request(req, send), req.Stream)
	if err != nil {
		return model.Response{}, m.failure(inner, x, err)
	}
	if m.cfg.Reasoning == ReasoningDrop {
		resp.Message.Reasoning = ""
	}
	return resp, nil
}

// ask makes the call, streamed or not, and reads what comes: some endpoints answer as a whole though asked for a stream.
func (m *Model) ask(ctx context.Context, x *exchange, body openai.ChatCompletionRequest, watch func(string)) (model.Response, error) {
	if !x.stream {
		if _, err := m.client.CreateChatCompletion(ctx, body); err != nil {
			return model.Response{}, err
		}
		return readWhole(x.body)
	}
	stream, err := m.client.CreateChatCompletionStream(ctx, body)
	if err != nil {
		return model.Response{}, err
	}
	defer func() { _ = stream.Close() }() // it was only read
	if x.body == nil {
		return readStream(stream.RecvRaw, watch, x.linger)
	}
	resp, err := readWhole(x.body)
	if err == nil && resp.Message.Text != "" {
		watch(resp.Message.Text)
	}
	return resp, err
}

// failure turns whatever went wrong into a *model.Error that names the endpoint and holds no secret. ctx is the context
// of the exchange, whose cause says who ended it.
func (m *Model) failure(ctx context.Context, x *exchange, err error) error {
	out := model.Error{Class: model.Network}
	var said *model.Error
	var stopped stopError
	switch {
	case errors.As(context.Cause(ctx), &stopped):
		out.Err = stopped
	case errors.As(err, &said):
		out = *said
	case !x.sent:
		out.Class, out.Err = model.BadRequest, fmt.Errorf("the request cannot be written: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		out.Err = errors.New("the connection was cut in the middle")
	default:
		out.Err = fmt.Errorf("it cannot be reached: %w", bare(err))
	}
	text := fmt.Sprintf("%s: %v", m.to.base.Host, out.Err)
	if x.requestID != "" {
		text += fmt.Sprintf(" (request %s)", x.requestID)
	}
	out.Err = errors.New(m.redact(text + m.advice(&out)))
	return &out
}

// advice says what to do about an error, where that lies with the people here.
func (m *Model) advice(e *model.Error) string {
	switch {
	case e.Class == model.Authentication && m.to.key == "":
		return fmt.Sprintf("; no key was sent: set %s", m.cfg.KeyNames()[0])
	case e.Class == model.Authentication:
		return fmt.Sprintf("; look at the key in %s", m.to.keyName)
	case e.Status == http.StatusNotFound:
		return fmt.Sprintf("; look at the model (%s) and the address (%s)", m.to.model, m.to.base)
	}
	return ""
}

// bare takes the method and address from an error of the HTTP client.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// stopError is the cause of an exchange that this package has ended.
type stopError string

func (e stopError) Error() string { return string(e) }

func timeoutError(d time.Duration) error {
	return stopError(fmt.Sprintf("there was no answer within %v", d))
}

func silenceError(d time.Duration) error {
	return stopError(fmt.Sprintf("the answer began and then nothing came for %v", d))
}

package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// endpoint is one tool.
type endpoint struct {
	kind    *Kind
	name    string
	effect  machine.Effect
	config  *Config
	address *address
	getenv  func(string) (string, bool)
	lists   []string // with batch: the parameters, whose arguments are lists with one item per call
}

// kindNoKey is the kind of problem of an environment variable that is not set.
const kindNoKey = "no_key"

// request makes the request of one call. Where it cannot be made, the call is Refused, or Unavailable where the
// environment lacks something; nothing has been sent then.
func (e *endpoint) request(ctx context.Context, call tool.Call) (*http.Request, error) {
	facts := machine.Facts{Args: call.Args, RunID: call.RunID, StartedAt: call.StartedAt}
	u, err := e.address.render(facts)
	if err != nil {
		return nil, refused(err)
	}
	if err := e.addQuery(u, facts); err != nil {
		return nil, refused(err)
	}
	body, kind, err := e.body(facts)
	if err != nil {
		return nil, refused(err)
	}
	var content io.Reader
	if kind != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, e.config.Method, u.String(), content)
	if err != nil {
		return nil, refused(errors.New("the url cannot be read with these arguments in it"))
	}
	req.Header.Set("User-Agent", "flowctl")
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if e.effect != machine.EffectRead {
		req.Header.Set("Idempotency-Key", call.Key)
	}
	return req, e.addHeaders(req.Header, facts)
}

func refused(err error) error { return &tool.Error{Status: tool.Refused, Err: err} }

// addQuery puts the parameters of `query` behind those that stand in the url.
func (e *endpoint) addQuery(u *url.URL, facts machine.Facts) error {
	var all []string
	if u.RawQuery != "" {
		all = append(all, u.RawQuery)
	}
	for _, item := range e.config.Query {
		v, err := item.Value.Value(facts)
		if err != nil {
			return err
		}
		values, list := v.([]machine.Value)
		if !list {
			values = []machine.Value{v}
		}
		for _, one := range values {
			if one == nil && !(list && e.lists != nil) { // in the list of several calls each has its place
				continue
			}
			if !scalar(one) {
				return fmt.Errorf("the parameter %s of the query takes %s", item.Name, scalars)
			}
			all = append(all, url.QueryEscape(item.Name)+"="+url.QueryEscape(machine.FormatValue(one)))
		}
	}
	u.RawQuery = strings.Join(all, "&")
	return nil
}

// scalars says what a parameter of the query can be.
const scalars = "a text, a number, true or false, or a list of them"

func scalar(v machine.Value) bool {
	kind := machine.KindOf(v)
	return kind != "array" && kind != "object"
}

// body gives the body and its content type, "" where there is none.
func (e *endpoint) body(facts machine.Facts) (body, kind string, err error) {
	switch {
	case e.config.JSON != nil:
		v, err := e.config.JSON.Value(facts)
		if err != nil {
			return "", "", err
		}
		data, err := machine.EncodeValue(v)
		return string(data), "application/json", err
	case e.config.Body != nil:
		text, err := e.config.Body.Render(facts)
		return text, "text/plain; charset=utf-8", err
	}
	return "", "", nil
}

// addHeaders adds the headers of the declaration. They are the one place where the environment is read, so what goes wrong
// here is told without the values.
func (e *endpoint) addHeaders(to http.Header, facts machine.Facts) error {
	missing, secret := "", false // which variable is not set; whether one was read for the present header
	facts.Getenv = func(name string) (string, bool) {
		secret = true
		v := ""
		if e.getenv != nil {
			v, _ = e.getenv(name)
		}
		if v == "" {
			missing = name
		}
		return v, v != ""
	}
	for _, h := range e.config.Headers {
		secret = false
		value, err := h.Value.Render(facts)
		switch {
		case missing != "":
			return &tool.Error{Status: tool.Unavailable, Kind: kindNoKey, Err: fmt.Errorf("the environment variable %s, which the "+
				"header %s needs, is not set; set it, or write it into a file .env beside the flow, and go on", missing, h.Name)}
		case err != nil && secret:
			return refused(fmt.Errorf("the header %s cannot be made: an expression in it fails on a value of the environment", h.Name))
		case err != nil:
			return refused(err)
		case !fitsHeader(value):
			return refused(fmt.Errorf("the header %s would hold a line break or another control character; look at the values "+
				"that it is made of", h.Name))
		}
		to.Set(h.Name, value)
	}
	return nil
}

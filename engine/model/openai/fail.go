package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"flowctl/engine/model"
)

// problem is what an endpoint says of an error.
type problem struct {
	Message loose `json:"message"`
	Code    loose `json:"code"`
	Type    loose `json:"type"`
	Status  loose `json:"status"`
	Param   loose `json:"param"`
	Inner   struct {
		Code loose `json:"code"`
	} `json:"innererror"`
	Metadata struct {
		Reasons json.RawMessage `json:"reasons"` // why a text was taken for harmful
	} `json:"metadata"`
}

// readProblem reads the body of a refusal: an error object, a text, a list of one, a page.
func readProblem(body []byte) problem {
	if p, ok := errorIn(body, true); ok {
		return p
	}
	return problem{Message: loose(strings.TrimSpace(string(body)))}
}

// errorIn reads the error of a body, if it has one. With bare also an object that is itself the error.
func errorIn(body []byte, bare bool) (problem, bool) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var whole struct {
		Error  json.RawMessage `json:"error"`
		Detail loose           `json:"detail"`
	}
	if json.Unmarshal(body, &whole) != nil {
		return problem{}, false
	}
	if p, ok := problemOf(whole.Error); ok || !bare {
		return p, ok
	}
	p, ok := problemOf(body)
	if p.Message == "" {
		p.Message = whole.Detail
	}
	return p, ok && p.Message != ""
}

// problemOf reads an error, an object or just its text. An error that is null, false, or empty is none.
func problemOf(raw json.RawMessage) (problem, bool) {
	var p problem
	var text string
	switch {
	case len(raw) == 0, string(raw) == "null", string(raw) == "false", string(raw) == `""`, string(raw) == "{}":
		return p, false
	case json.Unmarshal(raw, &text) == nil:
		p.Message = loose(text)
	case json.Unmarshal(raw, &p) != nil:
		p = problem{Message: loose(raw)}
	}
	return p, true
}

// words are the codes and types that endpoints give to errors, in lower case.
func (p problem) words() string {
	return strings.ToLower(strings.Join([]string{string(p.Code), string(p.Type), string(p.Status), string(p.Inner.Code)}, " "))
}

// class tells errors apart, first by what the endpoint calls them, then by the status of HTTP.
func (p problem) class(status int) model.Class {
	words := p.words()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(words, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("content_filter", "content_policy", "responsibleai", "moderation"), len(p.Metadata.Reasons) > 0:
		return model.Blocked
	case has("insufficient_quota", "insufficient_balance", "insufficient_credits", "quota_exceeded", "exceeded your current quota", "billing"), status == http.StatusPaymentRequired:
		return model.Quota
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return model.Authentication
	case http.StatusTooManyRequests:
		return model.Rate
	case http.StatusRequestTimeout:
		return model.Network
	case http.StatusConflict, http.StatusTooEarly:
		return model.Server
	}
	if status >= 500 {
		return model.Server
	}
	return model.BadRequest
}

// failure makes the error of an answer that began with success. Its status is what the endpoint says itself.
func (p problem) failure() error {
	status := 0
	for _, code := range []loose{p.Code, p.Status} {
		if n, err := strconv.Atoi(string(code)); err == nil && n >= 400 && n <= 599 {
			status = n
		}
	}
	e := &model.Error{Status: status, Err: fmt.Errorf("it answered with an error%s", p.suffix())}
	if e.Class = p.class(status); status > 0 || e.Class != model.BadRequest {
		return e
	}
	words := p.words()
	for _, known := range []struct {
		part  string
		class model.Class
	}{
		{"rate", model.Rate}, {"too_many", model.Rate}, {"resource_exhausted", model.Rate},
		{"auth", model.Authentication}, {"api_key", model.Authentication}, {"permission", model.Authentication},
		{"invalid", model.BadRequest}, {"not_found", model.BadRequest}, {"context_length", model.BadRequest},
		{"server", model.Server}, {"overload", model.Server}, {"unavailable", model.Server}, {"internal", model.Server},
		{"upstream", model.Server}, {"timeout", model.Server}, {"api_error", model.Server},
	} {
		if strings.Contains(words, known.part) {
			e.Class = known.class
			return e
		}
	}
	e.Class = model.Malformed
	return e
}

// suffix gives the endpoint's words, with a colon before them, or nothing.
func (p problem) suffix() string {
	text := readable(string(p.Message))
	var names []string
	for _, name := range []loose{p.Code, p.Type, p.Param} {
		if s := readable(string(name)); s != "" && !strings.Contains(text, s) {
			names = append(names, s)
		}
	}
	switch {
	case text == "" && len(names) == 0:
		return ""
	case len(names) == 0:
		return ": " + text
	}
	return strings.TrimSuffix(": "+text, ": ") + " (" + strings.Join(names, ", ") + ")"
}

// longestWords is how much of an endpoint's words is repeated, in characters.
const longestWords = 500

// readable makes one line of a text: blanks run together, control characters go, and it is cut.
func readable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	if len(runes) > longestWords {
		return string(runes[:longestWords]) + "…"
	}
	return string(runes)
}

// retryAfter reads how long an endpoint wants to be left alone: milliseconds, seconds or a date. A date is held against
// the endpoint's own clock where it gives that. 0 where it says nothing that can be read.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return span(ms, time.Millisecond)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return span(seconds, time.Second)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		now = theirs
	}
	return max(at.Sub(now), 0)
}

// span turns a number of units into a duration, at most a year.
func span(n float64, unit time.Duration) time.Duration {
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(math.Ceil(n*float64(unit)), float64(365*24*time.Hour)))
}

func malformed(format string, args ...any) error {
	return &model.Error{Class: model.Malformed, Err: fmt.Errorf(format, args...)}
}

func blocked(said string) *model.Error {
	text := "it refused to answer this"
	if said = readable(said); said != "" {
		text += ": " + said
	}
	return &model.Error{Class: model.Blocked, Err: errors.New(text)}
}

// shortestKey is the length from which a key is taken out of texts. Local servers are given keys such as "x", which are
// no secret and stand in every word.
const shortestKey = 4

// redactor takes the key out of texts, in the forms in which endpoints and libraries repeat it, and what more knows.
func redactor(name, key string, more func(string) string) func(string) string {
	if more == nil {
		more = func(s string) string { return s }
	}
	if len(key) < shortestKey {
		return more
	}
	mark := "[secret:" + name + "]"
	var pairs []string
	written, _ := json.Marshal(key) // a string can always be encoded
	for _, form := range []string{key, strings.Trim(string(written), `"`), url.QueryEscape(key), url.PathEscape(key),
		base64.StdEncoding.EncodeToString([]byte(key)), base64.RawStdEncoding.EncodeToString([]byte(key)),
		base64.URLEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key))} {
		pairs = append(pairs, form, mark)
	}
	forms := strings.NewReplacer(pairs...)
	return func(s string) string { return more(forms.Replace(s)) }
}

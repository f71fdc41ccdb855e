package openai

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
)

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		class  model.Class
		want   string
	}{
		{400, `{"error":{"message":"bad","type":"invalid_request_error","param":"tools"}}`, model.BadRequest, "it answered 400 Bad Request: bad (invalid_request_error, tools)"},
		{400, `{"error":{"message":"filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, model.Blocked, "filtered"},
		{400, `{"error":{"message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, model.Blocked, "filtered"},
		{401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`, model.Authentication, "look at the key in LLM_API_KEY"},
		{402, `{"error":{"message":"pay"}}`, model.Quota, "pay"},
		{403, `{"error":{"message":"not you"}}`, model.Authentication, "not you"},
		{403, `{"error":{"message":"flagged","code":403,"metadata":{"reasons":["violence"]}}}`, model.Blocked, "flagged"},
		{404, `{"error":{"message":"no such model"}}`, model.BadRequest, "look at the model (test) and the address"},
		{408, ``, model.Network, "408 Request Timeout"},
		{409, ``, model.Server, "409 Conflict"},
		{413, `too large`, model.BadRequest, "too large"},
		{422, `{"detail":[{"msg":"field required"}]}`, model.BadRequest, "field required"},
		{422, `{"detail":"no such field"}`, model.BadRequest, "no such field"},
		{429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, model.Rate, "slow down"},
		{429, `{"error":{"message":"broke","type":"insufficient_quota"}}`, model.Quota, "broke"},
		{429, `{"error":{"message":"broke","code":"insufficient_quota"}}`, model.Quota, "broke"},
		{429, `[{"error":{"code":429,"message":"per minute","status":"RESOURCE_EXHAUSTED"}}]`, model.Rate, "per minute"},
		{500, `{"error":"out of memory"}`, model.Server, "it answered 500 Internal Server Error: out of memory"},
		{502, "<html>\n<body>Bad\x00 Gateway</body></html>", model.Server, "<html> <body>Bad Gateway</body></html>"},
		{503, `{"message":"loading"}`, model.Server, "loading"},
		{504, `null`, model.Server, "504 Gateway Timeout"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, model.Server, "busy"},
		{500, `{"error":{"message":["one","two"]}}`, model.Server, `["one","two"]`},
		{500, strings.Repeat("é", 1000), model.Server, strings.Repeat("é", 500) + "…"},
		{307, ``, model.BadRequest, `sends us on to "http://elsewhere/v1"`},
	} {
		t.Run(fmt.Sprintf("%d %.30s", test.status, test.body), func(t *testing.T) {
			header := map[string]string{"X-Request-Id": "req_1", "Location": "http://elsewhere/v1"}
			for _, watch := range []func(string){nil, func(string) {}} {
				s := serve(t, modeltest.Options{}, modeltest.Reply{Status: test.status, Body: test.body + "\n", Header: header})
				_, err := at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Stream: watch})
				var e *model.Error
				if !errors.As(err, &e) || e.Class != test.class || e.Status != test.status || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "(request req_1)") {
					t.Errorf("gave %v (%+v), want %s with %q", err, e, test.class, test.want)
				}
				if len(s.Requests()) != 1 {
					t.Errorf("%d requests were sent", len(s.Requests()))
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 500e6, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).UTC().Format(http.TimeFormat) }
	for _, test := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"none", nil, 0},
		{"seconds", map[string]string{"Retry-After": "2"}, 2 * time.Second},
		{"part of a second", map[string]string{"Retry-After": " 0.25 "}, 250 * time.Millisecond},
		{"milliseconds", map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, 1500 * time.Millisecond},
		{"date, by our clock", map[string]string{"Retry-After": date(2500 * time.Millisecond)}, 2500 * time.Millisecond},
		{"date, by theirs", map[string]string{"Retry-After": date(time.Hour), "Date": date(time.Hour - 2*time.Second)}, 2 * time.Second},
		{"past", map[string]string{"Retry-After": date(-time.Hour)}, 0},
		{"negative", map[string]string{"Retry-After": "-5"}, 0},
		{"no number", map[string]string{"Retry-After": "NaN"}, 0},
		{"words", map[string]string{"Retry-After": "soon"}, 0},
		{"very long", map[string]string{"Retry-After": "1e300"}, 365 * 24 * time.Hour},
		{"endless", map[string]string{"Retry-After": "inf"}, 365 * 24 * time.Hour},
	} {
		h := http.Header{}
		for name, value := range test.header {
			h.Set(name, value)
		}
		if got := retryAfter(h, now); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// The waiting time arrives in the error, also from a stream that was refused.
func TestRetryAfterInErrors(t *testing.T) {
	for _, watch := range []func(string){nil, func(string) {}} {
		s := serve(t, modeltest.Options{}, modeltest.Reply{Status: 503, Body: "x", Header: map[string]string{"Retry-After": "7"}})
		_, err := at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Stream: watch})
		var e *model.Error
		if !errors.As(err, &e) || e.RetryAfter != 7*time.Second {
			t.Errorf("gave %+v", e)
		}
	}
}

func TestNetwork(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	m, err := New(Config{Model: "m", BaseURL: gone.URL + "/v1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), model.Request{Messages: hi})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Network || !e.Passing() || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "Post") {
		t.Errorf("gave %v", err)
	}
	for _, watch := range []func(string){nil, func(string) {}} {
		s := serve(t, modeltest.Options{}, modeltest.Reply{Body: `{"choices":[`, Header: map[string]string{"Content-Length": "100"}, Cut: true})
		_, err = at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Stream: watch})
		if !errors.As(err, &e) || e.Class != model.Network || !strings.Contains(err.Error(), "cut") {
			t.Errorf("gave %v", err)
		}
	}
}

func TestRequestThatCannotBeWritten(t *testing.T) {
	s := serve(t, modeltest.Options{})
	_, err := at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Tools: []model.Tool{{Name: "f", Parameters: []byte("{")}}})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.BadRequest || len(s.Requests()) != 0 {
		t.Errorf("gave %v", err)
	}
}

// An endpoint that falls silent, or never answers, holds nothing up, and leaves nothing behind.
func TestSilence(t *testing.T) {
	const short = 20 * time.Millisecond
	silent, whole := Options{Silence: short}, modeltest.Reply{Body: `{"choices":[`, Stall: true}
	for _, test := range []struct {
		name  string
		cfg   Config
		opt   Options
		reply modeltest.Reply
		watch func(string)
		want  string
	}{
		{"as a whole", Config{}, silent, whole, nil, "nothing came for 20ms"},
		{"blanks", Config{}, silent, modeltest.Reply{Body: "\n\n", Stall: true}, nil, "nothing came for 20ms"},
		{"stream", Config{}, silent, modeltest.Reply{Lines: []string{delta(`{"content":"Hi"}`), ""}, Stall: true}, func(string) {}, "nothing came for 20ms"},
		{"refusal", Config{}, silent, modeltest.Reply{Status: 500, Body: "x", Stall: true}, nil, "nothing came for 20ms"},
		{"timeout", Config{Timeout: 20e6}, Options{}, whole, nil, "no answer within 20ms"},
		{"timeout of a stream", Config{Timeout: 20e6}, Options{}, modeltest.Reply{Lines: []string{": wait"}, Stall: true}, func(string) {}, "no answer within 20ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, modeltest.Options{Answer: func(modeltest.Request) modeltest.Reply { return test.reply }})
			m := at(t, s, test.cfg, test.opt)
			_, err := m.Generate(t.Context(), model.Request{Messages: hi, Stream: test.watch})
			var e *model.Error
			if !errors.As(err, &e) || e.Class != model.Network || !strings.Contains(err.Error(), test.want) {
				t.Errorf("gave %v", err)
			}
		})
	}
}

func TestSilenceLeavesNoGoroutines(t *testing.T) {
	s := serve(t, modeltest.Options{Answer: func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Lines: []string{": wait"}, Stall: true}
	}})
	m := at(t, s, Config{}, Options{Silence: time.Millisecond})
	ask := func(n int) {
		for range n {
			if _, err := m.Generate(t.Context(), model.Request{Messages: hi, Stream: func(string) {}}); err == nil {
				t.Fatal("it answered")
			}
		}
	}
	ask(10)
	before := runtime.NumGoroutine()
	ask(200)
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before+20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}

// The time that somebody who watches takes is no silence of the endpoint. The answer is too long for the buffers on the
// way, so that most of it is read after the pause.
func TestSlowWatcher(t *testing.T) {
	text := strings.Repeat("Hello, all. ", 1000)
	s := serve(t, modeltest.Options{}, modeltest.Reply{Text: text})
	m := at(t, s, Config{}, Options{Silence: 100 * time.Millisecond})
	begin := time.Now()
	slow := func(string) {
		for time.Since(begin) < 300*time.Millisecond {
			runtime.Gosched()
		}
	}
	if got, err := m.Generate(t.Context(), model.Request{Messages: hi, Stream: slow}); err != nil || got.Message.Text != text {
		t.Errorf("gave %.50q, %v", got.Message.Text, err)
	}
}

func TestLargeAnswers(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for _, test := range []struct {
		reply modeltest.Reply
		watch func(string)
	}{
		{modeltest.Reply{Text: text}, nil},
		{modeltest.Reply{Text: text}, func(string) {}},
		{modeltest.Reply{Lines: []string{"data: " + text}}, func(string) {}},
	} {
		s := serve(t, modeltest.Options{}, test.reply)
		_, err := at(t, s, Config{}, Options{MaxBytes: 500}).Generate(t.Context(), model.Request{Messages: hi, Stream: test.watch})
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Malformed || !strings.Contains(err.Error(), "longer than 500 bytes") {
			t.Errorf("gave %v", err)
		}
	}
	s := serve(t, modeltest.Options{}, modeltest.Reply{Text: text})
	if _, err := at(t, s, Config{}, Options{MaxBytes: 2000}).Generate(t.Context(), model.Request{Messages: hi}); err != nil {
		t.Error(err)
	}
}

// The key stands in no error, whatever the endpoint makes of it.
func TestKeyStaysSecret(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	for _, said := range []string{key, "Bearer " + key, encoded, strings.TrimRight(encoded, "="), "other-secret"} {
		for _, reply := range []modeltest.Reply{
			{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + said + `","code":"` + said + `"}}`},
			{Status: 500, Body: said},
			{Body: `{"error":"` + said + `"}`},
			{Body: "<html>" + said},
			{Body: said},
			{Status: 307, Header: map[string]string{"Location": "http://h/" + said}, Body: "x"},
			{Status: 500, Header: map[string]string{"X-Request-Id": said}, Body: "x"},
			{Body: choices(`{"refusal":"`+said+`"}`, `"stop"`)},
		} {
			s := serve(t, modeltest.Options{}, reply)
			opt := Options{Redact: func(s string) string { return strings.ReplaceAll(s, "other-secret", "[other]") }}
			_, err := at(t, s, Config{}, opt).Generate(t.Context(), model.Request{Messages: hi})
			if err == nil {
				t.Fatalf("%+v gave no error", reply)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), said) {
					t.Errorf("%q stands in %v", said, e)
				}
			}
			if !strings.Contains(err.Error(), "[secret:LLM_API_KEY]") && !strings.Contains(err.Error(), "[other]") {
				t.Errorf("%+v gave %v", reply, err)
			}
		}
	}
}

func TestRefusedWithoutKey(t *testing.T) {
	s := serve(t, modeltest.Options{}, modeltest.Reply{Status: 401, Body: "who are you?"})
	m, err := New(Config{Model: "m", BaseURL: s.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), model.Request{Messages: hi})
	if err == nil || !strings.Contains(err.Error(), "no key was sent: set LLM_API_KEY") || s.Requests()[0].Header.Get("Authorization") != "" {
		t.Errorf("gave %v", err)
	}
}

// A whole stack: what fails is tried again as its class says, once for each attempt, and nothing inside tries too.
func TestStack(t *testing.T) {
	bad := func(status int, body string) modeltest.Reply {
		return modeltest.Reply{Status: status, Body: body, Header: map[string]string{"Retry-After": "2"}}
	}
	for _, test := range []struct {
		name     string
		first    modeltest.Reply
		attempts int
	}{
		{"400", bad(400, `{"error":{"message":"x","type":"invalid_request_error"}}`), 1},
		{"401", bad(401, "x"), 1},
		{"quota", bad(429, `{"error":{"code":"insufficient_quota"}}`), 1},
		{"rate", bad(429, "x"), 2},
		{"unavailable", bad(503, "x"), 2},
		{"conflict", bad(409, "x"), 2},
		{"timeout", bad(408, "x"), 2},
		{"inner 502", modeltest.Reply{Body: `{"error":{"message":"upstream","code":502}}`}, 2},
		{"cut", modeltest.Reply{Body: `{"choices":[`, Header: map[string]string{"Content-Length": "100"}, Cut: true}, 2},
		{"no choices", modeltest.Reply{Body: `{"choices":[]}`}, 1},
		{"blocked", modeltest.Reply{Finish: "content_filter"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, modeltest.Options{}, test.first, modeltest.Reply{Text: "ok", Prompt: 1000})
			var waits []time.Duration
			clock := model.Clock{Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }}
			var m model.Model = &model.Cost{Model: at(t, s, Config{}, Options{}), Prices: model.Prices{Prompt: 2}}
			m = &model.Retry{Model: &model.Limit{Model: m, Limiter: model.NewLimiter(1, 0, clock)}, Clock: clock}
			resp, err := m.Generate(t.Context(), model.Request{Messages: hi})
			if len(s.Requests()) != test.attempts || (err == nil) != (test.attempts > 1) {
				t.Errorf("%d attempts, %v", len(s.Requests()), err)
			}
			if err == nil && (resp.Cost == nil || *resp.Cost != 0.002) {
				t.Errorf("the cost is %v", resp.Cost)
			}
			if test.first.Header["Retry-After"] != "" && test.attempts > 1 && waits[0] < 2*time.Second {
				t.Errorf("waited for %v", waits)
			}
		})
	}
}

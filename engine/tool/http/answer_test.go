package http

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// answering is a server that answers with a status, a content type and a body.
func answering(t *testing.T, status int, contentType, body string) *recorder {
	t.Helper()
	return record(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

// How a call ends is decided by the status and the effect.
func TestStatuses(t *testing.T) {
	type ends map[string]string // effect → status and kind
	same := func(end string) ends { return ends{"read": end, "idempotent": end, "write": end} }
	doubtful := ends{"read": "unavailable unavailable", "idempotent": "unavailable unavailable", "write": "unknown unknown"}
	for status, want := range map[int]ends{
		200: same("ok "), 201: same("ok "), 202: same("ok "), 204: same("ok "), 299: same("ok "),
		300: same("failed failed"), 304: same("failed failed"), 400: same("failed failed"), 401: same("failed failed"),
		403: same("failed failed"), 404: same("failed none_found"), 409: same("failed failed"), 410: same("failed none_found"),
		422: same("failed failed"), 408: same("unavailable unavailable"), 429: same("unavailable unavailable"),
		500: doubtful, 502: doubtful, 503: doubtful, 504: doubtful, 599: doubtful,
		501: same("failed failed"), 505: same("failed failed"),
	} {
		server := answering(t, status, "application/json", `{"why":"because"}`)
		k := newKind(t)
		for effect, want := range want {
			got := call(t.Context(), made(t, k, effect, server.with(`{method: POST, url: "HOST/orders/{{ args.id }}?key={{ args.id }}"}`)), machine.Values{"id": "a b"})
			if end := string(got.Status) + " " + got.Problem.Kind; end != want {
				t.Errorf("%d of a %s ends as %q, want %q", status, effect, end, want)
			}
			value, _ := got.Value.(machine.Values)
			if value["status"] != int64(status) {
				t.Errorf("%d: the value is %v", status, got.Value)
			}
			if status >= 400 && !reflect.DeepEqual(value["body"], machine.Values{"why": "because"}) {
				t.Errorf("%d: the body is %v", status, value["body"])
			}
			message := got.Problem.Message
			host := strings.TrimPrefix(server.URL, "http://")
			if got.Status != tool.OK && !strings.HasPrefix(message, fmt.Sprintf("%s answered POST /orders/a%%20b with %d", host, status)) {
				t.Errorf("%d: the message is %s", status, message)
			}
			if strings.Contains(message, "key=") || got.Status == tool.Unknown && !strings.HasSuffix(message, "nobody knows whether it was carried out") {
				t.Errorf("%d: the message is %s", status, message)
			}
			if n := len(server.all()); n != 1 {
				t.Errorf("%d: the server was asked %d times", status, n)
			}
		}
	}
}

func TestBodies(t *testing.T) {
	large := strings.Repeat("é", maxBody/2-1) + "abc" // the limit cuts nothing in two
	inRune := strings.Repeat("é", maxBody/2-1) + "a日本"
	deep := strings.Repeat("[", 420) + strings.Repeat("]", 420)
	tests := []struct {
		name, contentType, body string
		want                    machine.Value
		kind, problem           string // of a read; a write is ok all the same
	}{
		{"JSON", "application/json", `{"id":9007199254740993,"big":9223372036854775807,"part":1.5,"list":[null,true]}`, machine.Values{
			"id": int64(9007199254740993), "big": int64(9223372036854775807), "part": 1.5, "list": []machine.Value{nil, true}}, "", ""},
		{"JSON with blanks and a mark", "application/json; charset=utf-8", "\ufeff\n [1] \n", []machine.Value{int64(1)}, "", ""},
		{"JSON of another name", "Application/Problem+JSON", `"x"`, "x", "", ""},
		{"JSON that says text", "text/plain", `{"a":1}`, `{"a":1}`, "", ""},
		{"text", "text/html; charset=utf-8", "<p>é</p>", "<p>é</p>", "", ""},
		{"text without a type", "", "hello", "hello", "", ""},
		{"an odd type", "; ;", `{"a":1}`, `{"a":1}`, "", ""},
		{"nothing", "application/json", "", nil, "", ""},
		{"null", "application/json", "null", nil, "", ""},
		{"no JSON", "application/json", "<html>", "<html>", "invalid", "the answer cannot be read as JSON"},
		{"half of JSON", "application/json", `{"a":`, `{"a":`, "invalid", "the answer cannot be read as JSON"},
		{"two values", "application/json", `{} {}`, `{} {}`, "invalid", "the answer cannot be read as JSON"},
		{"too large a number", "application/json", `{"n":12345678901234567890}`, `{"n":12345678901234567890}`, "invalid", "too large to stay exact"},
		{"nested", "application/json", deep, deep, "invalid", "nested more than 400 deep"},
		{"binary", "image/png", "\x89PNG\r\n\x00\xff", nil, "invalid", "the answer is no text in UTF-8 (image/png)"},
		{"binary without a type", "", "a\x00b", nil, "invalid", "the answer is no text in UTF-8"},
		{"another charset", "text/plain; charset=iso-8859-1", "caf\xe9", nil, "invalid", "the answer is no text in UTF-8 (text/plain)"},
		{"as large as can be", "text/plain", large[:maxBody], large[:maxBody], "", ""},
		{"larger", "text/plain", large, large[:maxBody] + "… [cut after 1048576 bytes]", "cut", "the answer is larger than 1 MiB"},
		{"cut in a rune", "text/plain", inRune, inRune[:maxBody-1] + "… [cut after 1048576 bytes]", "cut", "larger than 1 MiB"},
		{"large JSON", "application/json", `"` + large + `"`, `"` + large[:maxBody-1] + "… [cut after 1048576 bytes]", "cut", "larger than 1 MiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := answering(t, 200, test.contentType, test.body)
			k := newKind(t)
			for _, effect := range []string{"read", "idempotent", "write"} {
				got := call(t.Context(), made(t, k, effect, server.with(`{method: POST, url: HOST}`)), nil)
				value, _ := got.Value.(machine.Values)
				if !reflect.DeepEqual(value["body"], test.want) {
					t.Errorf("%s: the body is %.80v, want %.80v", effect, value["body"], test.want)
				}
				if test.problem == "" || effect != "read" {
					if got.Status != tool.OK {
						t.Errorf("%s: got %s: %s", effect, got.Status, got.Problem.Message)
					}
				} else if got.Status != tool.Failed || got.Problem.Kind != test.kind || !strings.Contains(got.Problem.Message, test.problem) {
					t.Errorf("%s: got %s, %+v, want %s", effect, got.Status, got.Problem, test.problem)
				}
			}
		})
	}
}

func TestAnswerHeaders(t *testing.T) {
	server := record(t, func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h["X-Two"] = []string{"first", "second"}
		h["Set-Cookie"] = []string{"session=1"}
		h["Date"] = nil
		h.Set("Content-Type", "text/plain")
		h.Set("Etag", `"caf`+"\xe9\"")
		if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") && req.Method == "GET" {
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "plain")
			if err := z.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	k := newKind(t)
	want := machine.Values{"x-two": "first", "content-type": "text/plain", "etag": "\"caf\ufffd\""}
	got := call(t.Context(), made(t, k, "read", server.with(`{method: GET, url: HOST}`)), nil)
	if !reflect.DeepEqual(got, tool.Result{Status: tool.OK, Value: machine.Values{"status": int64(200), "headers": want, "body": "plain"}}) {
		t.Errorf("got %+v", got)
	}
	got = call(t.Context(), made(t, k, "read", server.with(`{method: HEAD, url: HOST}`)), nil)
	if !reflect.DeepEqual(got, tool.Result{Status: tool.OK, Value: machine.Values{"status": int64(200), "headers": want, "body": nil}}) {
		t.Errorf("got %+v", got)
	}
}

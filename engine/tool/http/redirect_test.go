package http

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// trail is a server on which /hop/N/STATUS leads down to /end, /away/STATUS to another server and /to/STATUS?… anywhere.
func trail(t *testing.T, other string) *recorder {
	t.Helper()
	return record(t, func(w http.ResponseWriter, req *http.Request) {
		steps := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
		status, err := strconv.Atoi(steps[len(steps)-1])
		if err != nil {
			fmt.Fprint(w, "the end")
			return
		}
		switch steps[0] {
		case "hop":
			n, _ := strconv.Atoi(steps[1])
			w.Header().Set("Location", fmt.Sprintf("/hop/%d/%d", n-1, status))
			if n == 1 {
				w.Header().Set("Location", "/end")
			}
		case "away":
			w.Header().Set("Location", other)
		case "to":
			w.Header().Set("Location", req.URL.Query().Get("at"))
		}
		w.WriteHeader(status)
	})
}

func TestRedirects(t *testing.T) {
	other := record(t, nil)
	server := trail(t, other.URL+"/x")
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	tests := []struct{ name, effect, method, path, want, trace string }{
		{"a read", "read", "GET", "/hop/1/302", "ok", "GET GET"},
		{"five", "read", "GET", "/hop/5/301", "ok", "GET GET GET GET GET GET"},
		{"six", "read", "GET", "/hop/6/307", "failed: there were more than 5 redirects", "GET GET GET GET GET GET"},
		{"HEAD", "read", "HEAD", "/hop/1/303", "ok", "HEAD HEAD"},
		{"another server", "read", "GET", "/away/302", "failed: it leads to another server; if that is right, write the new address into url", "GET"},
		{"another server by a write", "write", "POST", "/away/307", "failed: it leads to another server", "POST"},
		{"the result on another server", "write", "POST", "/away/303", "unknown: it leads to another server", "POST"},
		{"another scheme", "read", "GET", "/to/302?at=https://127.0.0.1" + port + "/end", "failed: it leads to another server", "GET"},
		{"another port", "read", "GET", "/to/302?at=http://127.0.0.1/end", "failed: it leads to another server", "GET"},
		{"another name", "read", "GET", "/to/302?at=http://localhost" + port + "/end", "failed: it leads to another server", "GET"},
		{"no http", "read", "GET", "/to/302?at=file:///etc/passwd", "failed: it leads to another server", "GET"},
		{"the same server in full", "read", "GET", "/to/302?at=HTTP://127.0.0.1" + port + "/end", "ok", "GET GET"},
		{"no place", "read", "GET", "/to/302", "failed", "GET"},
		{"an odd place", "read", "GET", "/to/302?at=http://[", "unavailable: gave no whole answer: failed to parse Location header", "GET"},
		{"a write as it was", "write", "POST", "/hop/2/307", "ok", "POST body POST body POST body"},
		{"a write moved for good", "write", "PUT", "/hop/1/308", "ok", "PUT body PUT body"},
		{"a write would become a read", "write", "POST", "/hop/1/302", "unknown: a redirect of this kind would turn the POST into a GET; write the new address into url; nobody knows", "POST body"},
		{"a moved write stays where it was", "write", "POST", "/hop/1/301", "failed: a redirect of this kind would turn the POST into a GET", "POST body"},
		{"a moved write would become a read", "idempotent", "DELETE", "/hop/1/301", "failed: a redirect of this kind would turn the DELETE into a GET", "DELETE body"},
		{"a look at the result", "write", "POST", "/hop/1/303", "ok", "POST body GET"},
		{"a result that is gone", "write", "POST", "/to/303?at=/to/404", "unknown: where the answer to the POST led; nobody knows whether it was carried out", "POST body GET"},
		{"an idempotent result that is gone", "idempotent", "POST", "/to/303?at=/to/404", "failed", "POST body GET"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			http := fmt.Sprintf("{method: %s, url: '%s%s'", test.method, server.URL, test.path)
			if strings.Contains(test.trace, "body") {
				http += ", json: {a: 1}"
			}
			got := call(t.Context(), made(t, newKind(t), test.effect, http+", headers: {X-Key: '{{ env(\"KEY\") }}'}}", "KEY", "sk-12345678"), nil)
			status, message, _ := strings.Cut(test.want, ": ")
			if string(got.Status) != status || !strings.Contains(got.Problem.Message, message) {
				t.Errorf("got %+v, want %s", got, test.want)
			}
			var trace []string
			for _, r := range server.all() {
				trace = append(trace, r.method)
				if r.body != "" {
					trace = append(trace, "body")
				}
				resent := r.method == test.method && test.effect != "read"
				if key := r.header.Get("Idempotency-Key"); (key != "") != resent || r.header.Get("X-Key") != "sk-12345678" {
					t.Errorf("%s has the headers %v", r.uri, r.header)
				}
				if (r.header.Get("Content-Type") != "") != (r.body != "") {
					t.Errorf("%s %s has the content type %q", r.method, r.uri, r.header.Get("Content-Type"))
				}
			}
			if !slices.Equal(trace, strings.Fields(test.trace)) {
				t.Errorf("the server got %v, want %s", trace, test.trace)
			}
			if got := other.all(); len(got) > 0 {
				t.Errorf("another server got %+v", got)
			}
		})
	}
}

// Where a redirect goes is in the answer, for whoever has to mend the flow.
func TestRedirectValue(t *testing.T) {
	server := trail(t, "https://new.example/")
	got := call(t.Context(), made(t, newKind(t), "write", server.with("{method: POST, url: HOST/away/301}")), nil)
	value, _ := got.Value.(machine.Values)
	headers, _ := value["headers"].(machine.Values)
	if got.Status != tool.Failed || got.Problem.Kind != "failed" || headers["location"] != "https://new.example/" || !strings.Contains(got.Problem.Message, "answered POST /away/301 with "+fmt.Sprint(http.StatusMovedPermanently)) {
		t.Errorf("got %+v", got)
	}
}

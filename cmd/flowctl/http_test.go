package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const httpFlow = `
version: 1
name: shop
inputs: {order_id: {type: string}}
vars: {order: {type: object}, refund: {type: object}}
tools:
  lookup_order:
    description: Look up one order by its number.
    parameters: {order_id: {type: string}}
    http:
      method: GET
      url: HOST/orders/{{ args.order_id }}
      headers: {Authorization: "Bearer {{ env(\"SHOP_KEY\") }}"}
  refund_order:
    description: Refund one paid order.
    effect: write
    parameters: {order_id: {type: string}, cents: {type: integer}}
    http:
      method: POST
      url: HOST/orders/{{ args.order_id }}/refunds
      headers: {X-Key: '{{ env("SHOP_KEY") }}'}
      json: {cents: "{{ args.cents }}"}
start: look
states:
  look:
    handler: call
    with: {tool: lookup_order, args: {order_id: "{{ order_id }}"}, into: order}
    transitions:
      success: refund
      fail: [{when: 'last.error.kind == "none_found"', to: unknown}, {to: broken}]
  refund:
    handler: call
    with: {tool: refund_order, args: {order_id: "{{ order_id }}", cents: "{{ order.body.cents }}"}, expect: result.status == 201, into: refund}
    transitions: {success: done, fail: broken}
  done: {handler: end, with: {output: "refund {{ refund.body.id }}"}}
  unknown: {handler: end, with: {status: failed, output: "no order {{ order_id }}"}}
  broken: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
`

// webShop is a shop that knows the order A 1, and tells its caller's key in every answer.
type webShop struct {
	*httptest.Server
	mu      sync.Mutex
	refunds []string // key and body of each
	down    []string // methods that it answers with an error
}

func (s *webShop) breaks(methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = methods
}

func (s *webShop) refunded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refunds)
}

func newWebShop(t *testing.T) *webShop {
	s := &webShop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Your-Key", r.Header.Get("Authorization"))
		switch {
		case slices.Contains(s.down, r.Method):
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, `{"error": "not with %s"}`, r.Header.Get("X-Key"))
		case r.RequestURI == "/orders/A%201":
			fmt.Fprint(w, `{"cents": 9007199254740993, "paid": true}`)
		case r.RequestURI == "/orders/A%201/refunds":
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			s.refunds = append(s.refunds, r.Header.Get("Idempotency-Key")+" "+string(body))
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id": 77}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// httpShop makes a folder with the flow for a shop, and a way to run flowctl in it.
func httpShop(t *testing.T, shop *webShop, env map[string]string) (dir string, run func(args ...string) (int, string)) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(strings.ReplaceAll(httpFlow, "HOST", shop.URL)), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) (int, string) {
		p := systemProgram()
		p.Stdin, p.Terminal, p.Dir, p.Now = strings.NewReader(""), terminals{}, dir, time.Now
		p.Getenv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		code, stdout, stderr := flowctl(p, args...)
		return code, stdout + stderr
	}
}

func TestFlowCallsHTTP(t *testing.T) {
	shop := newWebShop(t)
	dir, run := httpShop(t, shop, map[string]string{"SHOP_KEY": "sk-shop-12345678"})
	if code, out := run("run", "flow.yaml", "--id", "r1", "-i", "order_id=A 1"); code != 0 || out != "refund 77\n" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	want := []string{`r1/2.0 {"cents":9007199254740993}`}
	if got := shop.refunded(); !slices.Equal(got, want) {
		t.Errorf("the shop was asked for %q, want %q", got, want)
	}
	if code, out := run("run", "flow.yaml", "--id", "r2", "-i", "order_id=A1"); code != 1 || !strings.Contains(out, "no order A1") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := run("run", "flow.yaml", "--id", "r3", "-i", "order_id=../admin"); code != 1 || !strings.Contains(out, "which would lead somewhere else") {
		t.Errorf("exit code %d: %s", code, out)
	}
	_, events := run("events", "r1", "-o", "json")
	if !strings.Contains(events, "[secret:SHOP_KEY]") {
		t.Error("the answer's header with the key is not in the history")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "sk-shop-12345678") {
			t.Errorf("the key is in %s", file.Name())
		}
	}
}

// An outage stops the run before a read, leaves a write in doubt, and a missing key is told by its name.
func TestFlowMeetsHTTPOutage(t *testing.T) {
	shop := newWebShop(t)
	env := map[string]string{}
	_, run := httpShop(t, shop, env)
	document := func(out string) (status, message string) {
		var doc struct {
			Status  string
			Error   struct{ Message string }
			Waiting []struct{ Kind string }
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(doc.Waiting) > 0 {
			return doc.Status, doc.Waiting[0].Kind
		}
		return doc.Status, doc.Error.Message
	}
	code, out := run("run", "flow.yaml", "--id", "r1", "-i", "order_id=A 1", "-o", "json")
	if status, message := document(out); code != 5 || status != "stopped" || !strings.Contains(message, "SHOP_KEY, which the header Authorization needs, is not set") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	env["SHOP_KEY"] = "sk-shop-12345678"
	shop.breaks("GET", "POST")
	code, out = run("resume", "r1", "-o", "json")
	if status, message := document(out); code != 5 || status != "stopped" || !strings.Contains(message, "answered GET /orders/A%201 with 502 Bad Gateway") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	shop.breaks("POST")
	code, out = run("resume", "r1", "-o", "json")
	if status, kind := document(out); code != 4 || status != "waiting" || kind != "in_doubt" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	shop.breaks()
	code, out = run("answer", "r1", "--not-done", "-o", "json")
	if status, _ := document(out); code != 0 || status != "succeeded" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	want := []string{`r1/2.0 {"cents":9007199254740993}`}
	if got := shop.refunded(); !slices.Equal(got, want) {
		t.Errorf("the shop refunded %q, want %q", got, want)
	}
	if _, events := run("events", "r1", "-o", "json"); strings.Contains(events, "sk-shop") {
		t.Error("the key that the shop told is in the history")
	}
}

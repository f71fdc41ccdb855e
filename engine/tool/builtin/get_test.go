package builtin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// getFrom makes http_get for some hosts and reads an address.
func getFrom(t *testing.T, address string, hosts ...string) tool.Result {
	t.Helper()
	kind := New()
	made, err := kind.New(machine.ToolSpec{Name: "get", Effect: machine.EffectRead, Timeout: time.Minute,
		Config: &Config{Name: "http_get", Hosts: hosts, kind: kind}}, tool.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made, Values: machine.Values{"url": address}}, tool.Call{}).Result
}

// site is a server with the pages of a test. Its host, with the port, is localhost:N.
func site(t *testing.T, h http.HandlerFunc) (address, host string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	host = strings.Replace(strings.TrimPrefix(server.URL, "http://"), "127.0.0.1", "localhost", 1)
	return "http://" + host, host
}

func TestHTTPGet(t *testing.T) {
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		switch r.URL.Path {
		case "/large":
			fmt.Fprint(w, "a"+strings.Repeat("é", maxPage/2))
		case "/binary":
			fmt.Fprint(w, "\x89PNG\x00")
		case "/latin":
			fmt.Fprint(w, "caf\xe9")
		default:
			fmt.Fprintf(w, "\ufeff%s %s %s", r.Method, r.RequestURI, r.UserAgent())
		}
	})
	for path, want := range map[string]machine.Values{
		"/a%2Fb?type=text/html%3Bcharset=x": {"type": "text/html", "text": "GET /a%2Fb?type=text/html%3Bcharset=x flowctl"},
		"?x=1#part":                         {"type": "", "text": "GET /?x=1 flowctl", "url": "?x=1"},
		"/large?type=text/plain":            {"type": "text/plain", "text": "a" + strings.Repeat("é", maxPage/2-1) + "… [cut after 1048575 bytes]"},
	} {
		if want["url"] == nil {
			want["url"] = path
		}
		want["url"] = address + want["url"].(string)
		got := getFrom(t, address+path, host)
		if got.Status != tool.OK || !reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s: got %.200v", path, got)
		}
	}
	for path, want := range map[string]string{
		"/binary?type=image/png": "the answer is no text in UTF-8 (it is image/png), and only that can be read",
		"/latin?type=;":          "the answer is no text in UTF-8, and only that can be read",
	} {
		if got := getFrom(t, address+path, host); got.Status != tool.Failed || got.Problem.Kind != "invalid" || got.Problem.Message != want {
			t.Errorf("%s: got %+v", path, got)
		}
	}
}

func TestHTTPGetStatuses(t *testing.T) {
	for status, want := range map[int]string{204: "ok ", 304: "failed failed", 400: "failed failed", 403: "failed failed", 404: "failed none_found",
		410: "failed none_found", 408: "unavailable unavailable", 429: "unavailable unavailable", 500: "unavailable unavailable", 503: "unavailable unavailable"} {
		address, host := site(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		got := getFrom(t, address+"/a?key=1", host)
		if end := string(got.Status) + " " + got.Problem.Kind; end != want {
			t.Errorf("%d ends as %s, want %s", status, end, want)
		}
		if message := got.Problem.Message; status >= 300 && !strings.HasPrefix(message, fmt.Sprintf(`%s answered "/a" with %d`, host, status)) {
			t.Errorf("%d: %s", status, message)
		}
	}
}

// Nothing but the hosts is ever asked, whatever an address looks like.
func TestHTTPGetRefuses(t *testing.T) {
	address, host := site(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	port := host[strings.IndexByte(host, ':'):]
	for _, text := range []string{
		"", "localhost", "//" + host, "ftp://" + host, "file:///etc/passwd", "gopher://" + host, "http:///x", "http://", "http:" + host, "%zz", "http://a b/",
		"http://127.0.0.1" + port, "http://[::1]" + port, "http://2130706433" + port, "http://0x7f000001" + port, "http://0" + port, "http://127.1" + port,
		"http://localhost", "http://localhost:22", "https://localhost", "http://localhost." + port, "http://evil.localhost" + port,
		"http://localhost@evil.example" + port, "http://me:pw@" + host, "http://" + host + "@evil.example/", "http://evil.example/" + host,
		"http://evil.example#@" + host, "http://evil.example?" + host, "http://evil.example\\@" + host, "http://ｌocalhost" + port, "http://localhost%00" + port,
	} {
		if got := getFrom(t, text, host); got.Status != tool.Refused {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	got := getFrom(t, address, "example.com", "*.example.org", "[::1]:8080")
	if want := fmt.Sprintf("%q is not among the hosts that can be asked: example.com, *.example.org, [::1]:8080", host); got.Problem.Message != want {
		t.Errorf("got  %s\nwant %s", got.Problem.Message, want)
	}
}

// A host that a pattern has let in is asked only at a public address.
func TestHTTPGetLooksAtTheAddress(t *testing.T) {
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "inside") })
	port := host[strings.IndexByte(host, ':'):]
	g := getter{hosts: hosts{{name: "localhost", port: port[1:]}, {name: "localhost", below: true, port: port[1:]}}, open: transport(false), guarded: transport(true)}
	if got, err := g.get(t.Context(), tool.Call{}, getArgs{URL: address}); err != nil || got.Text != "inside" {
		t.Errorf("got %+v, %v", got, err)
	}
	g.guarded.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { // the name leads to this machine
		dialer := net.Dialer{Control: onlyPublic}
		return dialer.DialContext(ctx, network, "127.0.0.1"+port)
	}
	_, err := g.get(t.Context(), tool.Call{}, getArgs{URL: "http://inside.localhost" + port})
	want := "inside.localhost" + port + " is not asked: its address belongs to the own machine or network, and the host is not named literally among the hosts"
	var e *tool.Error
	if !errors.As(err, &e) || e.Status != tool.Refused || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if err := onlyPublic("tcp", "93.184.216.34:80", nil); err != nil {
		t.Errorf("a public address: %v", err)
	}
	err = broken(t.Context(), "none.example.org", &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}})
	if !errors.As(err, &e) || e.Kind != "none_found" || err.Error() != "there is no host none.example.org" {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"} {
		t.Setenv(name, "http://proxy.example:3128")
	}
	if g.guarded.Proxy != nil || g.open.Proxy == nil {
		t.Error("a proxy would look up names behind the guard's back")
	}
}

func TestHTTPGetRedirects(t *testing.T) {
	_, evil := site(t, func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") })
	var address string
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		if to == "" {
			fmt.Fprint(w, "there")
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	got := getFrom(t, address+"/a?to=/b/c", host)
	if want := (machine.Values{"url": address + "/b/c", "type": "text/plain", "text": "there"}); !reflect.DeepEqual(got.Value, want) {
		t.Errorf("got %+v", got)
	}
	for to, want := range map[string]string{
		"http://" + evil + "/x": "leads to \"" + evil + "\", which is not among the hosts that can be asked: " + host,
		"//" + evil:             "which is not among the hosts",
		"http://me:pw@" + host:  "leads to an address that is not asked",
		"file:///etc/passwd":    "leads to an address that is not asked",
		"/loop?to=/loop":        "", // ends there
	} {
		got := getFrom(t, address+"/a?to="+url.QueryEscape(to), host)
		if want == "" {
			if got.Status != tool.OK {
				t.Errorf("%s: got %+v", to, got)
			}
			continue
		}
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: got %+v", to, got)
		}
	}
	loop, host := site(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	if got := getFrom(t, loop, host); got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "there were more than 5 redirects") {
		t.Errorf("got %+v", got)
	}
}

func TestHTTPGetWithoutAnAnswer(t *testing.T) {
	server := httptest.NewServer(nil)
	gone := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	if got := getFrom(t, "http://"+gone, gone); got.Status != tool.Unavailable || !strings.HasPrefix(got.Problem.Message, gone+" cannot be reached") {
		t.Errorf("got %+v", got)
	}
	address, host := site(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	if got := getFrom(t, address, host); got.Status != tool.Unavailable || !strings.HasPrefix(got.Problem.Message, host+" cannot be reached, or gave no whole answer") {
		t.Errorf("got %+v", got)
	}

	asked, over := make(chan struct{}), make(chan struct{})
	address, host = site(t, func(http.ResponseWriter, *http.Request) { close(asked); <-over })
	defer close(over)
	h, err := readHost(host)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err = getter{hosts: hosts{h}, open: transport(false), guarded: transport(true)}.get(ctx, tool.Call{}, getArgs{URL: address})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err = getter{hosts: hosts{h}, open: transport(false), guarded: transport(true)}.get(past, tool.Call{}, getArgs{URL: address})
	var e *tool.Error
	if !errors.As(err, &e) || e.Status != tool.Unavailable || e.Kind != tool.KindTimeout {
		t.Errorf("got %v", err)
	}
}

func TestReadHost(t *testing.T) {
	for text, want := range map[string]host{
		"example.com": {name: "example.com"}, "Example.COM": {name: "example.com"}, "*.example.org": {name: "example.org", below: true},
		"localhost:8080": {name: "localhost", port: "8080"}, "*.example.org:8443": {name: "example.org", below: true, port: "8443"},
		"127.0.0.1": {name: "127.0.0.1"}, "[::1]": {name: "::1"}, "[::1]:8080": {name: "::1", port: "8080"}, "a_b.x-y.z": {name: "a_b.x-y.z"},
		"xn--bcher-kva.example": {name: "xn--bcher-kva.example"},
	} {
		if got, err := readHost(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "*", "*.", "**.example.org", "a.*.example.org", "*example.org", "http://example.com", "example.com/x", "example.com/",
		"example.com:", "example.com:x", "me@example.com", "bücher.example", "a b", ".example.com", "example.com.", "-a.example", "::1", "*.127.0.0.1", "a?b", "a#b", "%61"} {
		if got, err := readHost(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestHosts(t *testing.T) {
	var list hosts
	for _, text := range []string{"example.com", "*.example.org", "www.example.org", "localhost:8080", "*.example.net:8443", "10.0.0.1", "[::1]:80"} {
		h, err := readHost(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	for text, want := range map[string]string{
		"http://example.com": "named", "https://EXAMPLE.com/x": "named", "https://example.com:443": "named", "http://example.com:80": "named",
		"http://example.com:443": "", "https://example.com:80": "", "http://example.com:8080": "", "http://www.example.com": "", "http://example.com.evil.example": "",
		"http://a.example.org": "let in", "http://a.b.example.org": "let in", "http://example.org": "", "http://evilexample.org": "", "http://www.example.org": "named",
		"http://localhost:8080": "named", "http://localhost": "", "https://a.example.net:8443": "let in", "https://a.example.net": "",
		"http://10.0.0.1": "named", "http://[::1]": "named", "https://[::1]": "", "http://[::1]:80": "named",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if named, ok := list.find(u); named {
			got = "named"
		} else if ok {
			got = "let in"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1::1": true, "64:ff9b::8.8.8.8": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "198.18.0.1": false, "192.0.0.8": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b:1::1": false,
		"2002:7f00:1::1": false, "2001:0:1::1": false, "2001:4860:4860::8888": true,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

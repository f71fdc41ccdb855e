package machine

import (
	"reflect"
	"strings"
	"testing"
)

func TestServerProblems(t *testing.T) {
	env := func(names ...string) (out Ordered[Text]) {
		for _, name := range names {
			out = append(out, Item[Text]{Name: name})
		}
		return out
	}
	command := []string{"npx", "-y", "@acme/server"}
	tests := []struct {
		server MCPServer
		want   []string // path: words of the message
	}{
		{MCPServer{Command: command}, nil},
		{MCPServer{Command: command, Dir: "tools", Env: env("ACME_KEY", "_x")}, nil},
		{MCPServer{URL: "https://mcp.acme.example/mcp?team=1", Headers: env("Authorization", "X-Key")}, nil},
		{MCPServer{URL: "http://127.0.0.1:8080"}, nil},
		{MCPServer{}, []string{": a server needs command"}},
		{MCPServer{Command: command, URL: "https://x.example"}, []string{"url: remove one of them"}},
		{MCPServer{Command: []string{" "}}, []string{"command[0]: the program is empty"}},
		{MCPServer{Command: []string{"npx", "{{ server }}", "a\x00"}}, []string{"command[1]: fixed text", "command[2]: NUL"}},
		{MCPServer{Command: command, Headers: env("X-Key")}, []string{"headers: belong to a url"}},
		{MCPServer{Command: command, Env: env("ACME KEY", "2x")}, []string{"env.ACME KEY: no name", "env.2x: no name"}},
		{MCPServer{URL: "https://{{ host }}/"}, []string{"url: fixed text"}},
		{MCPServer{URL: "https://x.example/a b"}, []string{"url: cannot be read"}},
		{MCPServer{URL: "https://x.example/#a"}, []string{"url: cannot be read"}},
		{MCPServer{URL: "ftp://x.example/"}, []string{"url: https:// or http://"}},
		{MCPServer{URL: "x.example/mcp"}, []string{"url: https:// or http://"}},
		{MCPServer{URL: "https:///mcp"}, []string{"url: no host"}},
		{MCPServer{URL: "https://me:secret@x.example/"}, []string{"url: as a header"}},
		{MCPServer{URL: "https://x.example", Dir: "a", Env: env("A")}, []string{"dir: belongs to a command", "env: belongs to a command"}},
		{MCPServer{URL: "https://x.example", Headers: env("x-key", "X-Key", "a b", "host", "MCP-Session-Id", "Proxy-Authorization")}, []string{
			"headers.X-Key: twice", "headers.a b: no name", "headers.host: cannot be set", "headers.MCP-Session-Id: cannot be set",
			"headers.Proxy-Authorization: cannot be set"}},
	}
	for _, test := range tests {
		got := test.server.Problems()
		if len(got) != len(test.want) {
			t.Errorf("%+v: got %+v, want %q", test.server, got, test.want)
			continue
		}
		for i, want := range test.want {
			path, words, _ := strings.Cut(want, ": ")
			if got[i].Path != path || !strings.Contains(got[i].Message, words) {
				t.Errorf("%+v: got %+v, want %q", test.server, got[i], want)
			}
		}
	}
}

// A flow file embeds the struct as it is, so each key has its name and its line in the reference.
func TestServerTags(t *testing.T) {
	for f := range reflect.TypeFor[MCPServer]().Fields() {
		if f.Tag.Get("yaml") != strings.ToLower(f.Name) || f.Tag.Get("doc") == "" || strings.HasSuffix(f.Tag.Get("doc"), ".") {
			t.Errorf("%s has the tags %s", f.Name, f.Tag)
		}
	}
}

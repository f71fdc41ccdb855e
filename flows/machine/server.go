package machine

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// MCPServer is a declared MCP server: a program that is started and spoken to over its stdin and stdout (Command), or an
// address that is spoken to by streamable HTTP (URL). Problems says whether it can be used.
type MCPServer struct {
	Command []string      `yaml:"command" doc:"the program and its arguments, one item each, without expressions; a program with a slash is a path that starts from the flow's folder"`
	Dir     string        `yaml:"dir" doc:"folder that the program runs in, relative to the flow file; the flow's folder if left out"`
	Env     Ordered[Text] `yaml:"env" flow:"free,env" doc:"environment variables of the program by name; env(\"NAME\") stands for one of flowctl's own"`
	URL     string        `yaml:"url" doc:"http or https address, instead of command, without expressions"`
	Headers Ordered[Text] `yaml:"headers" flow:"free,env" doc:"headers of every request to the url by name; env(\"NAME\") stands for an environment variable"`
	Timeout Duration      `yaml:"timeout" doc:"how long the server may take to start and to answer for the first time; 30s if left out"`
}

// Problems says what is wrong with the declaration itself. Paths are below the server, such as url or headers.X-Key.
func (s MCPServer) Problems() []ConfigProblem {
	var out []ConfigProblem
	problem := func(path, format string, args ...any) {
		out = append(out, ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case len(s.Command) > 0 && s.URL != "":
		problem("url", "command and url are two ways to reach a server; remove one of them")
	case s.URL != "":
		s.checkURL(problem)
	case len(s.Command) > 0:
		s.checkCommand(problem)
	default:
		problem("", "a server needs command, such as [npx, -y, \"@acme/server\"], or url, such as https://mcp.acme.example/mcp")
	}
	s.checkEnv(problem)
	s.checkHeaders(problem)
	return out
}

func (s MCPServer) checkCommand(problem func(path, format string, args ...any)) {
	if strings.TrimSpace(s.Command[0]) == "" {
		problem("command[0]", "the program is empty; write its name or its path, such as npx or ./server")
	}
	for i, arg := range s.Command {
		path := fmt.Sprintf("command[%d]", i)
		switch {
		case strings.Contains(arg, "{{"):
			problem(path, "the command of a server is fixed text, since one server serves many calls; a value of the environment stands in env")
		case strings.ContainsRune(arg, 0):
			problem(path, "this argument holds a NUL character, which no argument can")
		}
	}
	if len(s.Headers) > 0 {
		problem("headers", "headers belong to a url; a program gets what it needs by env")
	}
}

func (s MCPServer) checkURL(problem func(path, format string, args ...any)) {
	u, err := url.Parse(s.URL)
	switch {
	case strings.Contains(s.URL, "{{"):
		problem("url", "the url of a server is fixed text, since one server serves many calls; a value of the environment stands in headers")
	case err != nil || strings.ContainsAny(s.URL, " #"):
		problem("url", "the url cannot be read; write an address such as https://mcp.acme.example/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		problem("url", "the url must start with https:// or http://")
	case u.Hostname() == "":
		problem("url", "the url has no host")
	case u.User != nil:
		problem("url", "a name or password does not stand in the url; write it as a header, such as Authorization: "+
			`'Bearer {{ env("ACME_KEY") }}'`)
	}
	if s.Dir != "" {
		problem("dir", "dir belongs to a command; a url runs nothing here")
	}
	if len(s.Env) > 0 {
		problem("env", "env belongs to a command; a url gets what it needs by headers")
	}
}

// variableName is what names of environment variables look like.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s MCPServer) checkEnv(problem func(path, format string, args ...any)) {
	for _, v := range s.Env {
		if !variableName.MatchString(v.Name) {
			problem("env."+v.Name, "%q is no name of an environment variable: letters, digits and _, as in ACME_KEY", v.Name)
		}
	}
}

// headerName is what names of headers look like.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// setByClient lists headers that belong to the connection or to the protocol.
var setByClient = []string{"host", "content-length", "content-type", "accept", "accept-encoding", "connection", "keep-alive", "te",
	"trailer", "transfer-encoding", "upgrade", "expect", "last-event-id"}

func (s MCPServer) checkHeaders(problem func(path, format string, args ...any)) {
	var seen []string
	for _, h := range s.Headers {
		path, name := "headers."+h.Name, strings.ToLower(h.Name)
		switch {
		case !headerName.MatchString(h.Name):
			problem(path, "%q is no name of a header: letters, digits and -, as in X-Api-Key", h.Name)
		case slices.Contains(setByClient, name), strings.HasPrefix(name, "mcp-"), strings.HasPrefix(name, "proxy-"):
			problem(path, "%s cannot be set: it belongs to the connection or to the protocol", h.Name)
		case slices.Contains(seen, name):
			problem(path, "%s stands here twice; upper and lower case are one in headers", h.Name)
		}
		seen = append(seen, name)
	}
}

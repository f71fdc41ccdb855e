package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"flowctl/engine/tool"
	"flowctl/engine/tool/program"
	"flowctl/flows/machine"
)

// kindNoKey is the kind of problem of an environment variable that is not set.
const kindNoKey = "no_key"

// declaration is a server as a flow declares it.
type declaration struct {
	machine.MCPServer
	name   string
	dir    string // the flow's folder
	getenv func(string) (string, bool)
}

// definition is a declaration whose texts are made: all that tells one server from another.
type definition struct {
	name    string
	flow    string // the flow's folder, absolute
	command []string
	dir     string // that the program runs in, as it is written
	url     string
	values  []setting // environment variables of a program, headers of a url
	timeout time.Duration
	secrets secrets
}

// setting is an environment variable or a header.
type setting struct{ Name, Value string }

// identity is the same for equal definitions. It does not give away the secrets in them.
type identity [sha256.Size]byte

func (d definition) identity() identity {
	data, err := json.Marshal([]any{d.name, d.flow, d.command, d.dir, d.url, d.values, d.timeout})
	if err != nil {
		panic(fmt.Sprintf("a list of texts cannot be written as JSON: %v", err))
	}
	return sha256.Sum256(data)
}

// define makes the texts of a declaration. They are the one place where the environment is read, so what goes wrong here is
// told without the values.
func (d declaration) define() (definition, error) {
	flow, err := filepath.Abs(d.dir)
	if err != nil {
		return definition{}, tool.Unavailablef("the flow's folder cannot be found: %w", err)
	}
	out := definition{name: d.name, flow: flow, command: d.Command, dir: d.Dir, url: d.URL, timeout: time.Duration(d.Timeout)}
	texts, what := d.Env, "variable"
	if d.URL != "" {
		texts, what = d.Headers, "header"
	}
	missing, source := "", "" // which variable is not set; which one the present text was made of
	facts := machine.Facts{Getenv: func(name string) (string, bool) {
		v := ""
		if d.getenv != nil {
			v, _ = d.getenv(name)
		}
		if source = name; v == "" {
			missing = name
		}
		out.secrets.add(v, name)
		return v, v != ""
	}}
	for _, text := range texts {
		source = ""
		value, err := text.Value.Render(facts)
		switch {
		case missing != "":
			return definition{}, &tool.Error{Status: tool.Unavailable, Kind: kindNoKey, Err: fmt.Errorf("the environment variable %s, "+
				"which the %s %s of the MCP server %s needs, is not set; set it, or write it into a file .env beside the flow, and go on",
				missing, what, text.Name, d.name)}
		case err != nil && source != "":
			return definition{}, tool.Unavailablef("the %s %s of the MCP server %s cannot be made: an expression in it fails on a value "+
				"of the environment", what, text.Name, d.name)
		case err != nil:
			return definition{}, &tool.Error{Status: tool.Unavailable, Err: err}
		case strings.ContainsFunc(value, func(r rune) bool { return r == 0 || d.URL != "" && (r < ' ' && r != '\t' || r == 0x7f) }):
			return definition{}, tool.Unavailablef("the %s %s of the MCP server %s would hold a line break or another control character",
				what, text.Name, d.name)
		}
		if source != "" {
			out.secrets.add(value, source)
		}
		out.values = append(out.values, setting{text.Name, value})
	}
	return out, nil
}

// environment gives all variables of the program.
func (d definition) environment() []string {
	vars := program.Inherited()
	for _, v := range d.values {
		vars[v.Name] = v.Value
	}
	return program.Environ(vars)
}

// minSecret is the number of bytes that a value of the environment has at least to be masked. A shorter one would be found
// in innocent text.
const minSecret = 8

// secrets are texts that no error may show, each followed by what stands for it; longer ones first.
type secrets [][2]string

// add takes note of a text that comes from an environment variable.
func (s *secrets) add(text, name string) {
	if len(text) < minSecret {
		return
	}
	*s = append(*s, [2]string{text, "[secret:" + name + "]"})
	slices.SortStableFunc(*s, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
}

// mask replaces the secrets in a text.
func (s secrets) mask(text string) string {
	var pairs []string
	for _, one := range s {
		pairs = append(pairs, one[0], one[1])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

package builtin

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

var nameRule = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Kind makes the builtin tools. It is safe for concurrent use.
type Kind struct {
	// Now is the clock of current_time. Defaults to time.Now; set it before the first call.
	Now func() time.Time

	more map[string]tool.Function
}

var _ tool.Kind = (*Kind)(nil)

// New makes the kind, with more functions than the ones that it brings. It panics when a function has no proper name, the
// name of another one or nothing to run, since that is a mistake in the program.
func New(more ...tool.Function) *Kind {
	k := &Kind{Now: time.Now, more: map[string]tool.Function{}}
	own := k.functions(setting{})
	for _, f := range more {
		_, taken := own[f.Name]
		_, twice := k.more[f.Name]
		switch {
		case !nameRule.MatchString(f.Name):
			panic(fmt.Sprintf("builtin %q: a name is lower-case letters, digits and _, as in lookup_order", f.Name))
		case taken || twice:
			panic(fmt.Sprintf("builtin %s: there is one of that name", f.Name))
		case f.Run == nil:
			panic(fmt.Sprintf("builtin %s: it has nothing to run", f.Name))
		}
		k.more[f.Name] = f
	}
	return k
}

// setting is what the functions of one declaration work with.
type setting struct {
	dir   folder
	hosts hosts
}

// functions gives all functions by name, as they work in a setting.
func (k *Kind) functions(s setting) map[string]tool.Function {
	all := map[string]tool.Function{}
	for name, f := range k.more {
		all[name] = f
	}
	for _, f := range slices.Concat(s.dir.functions(), memoryFunctions(), []tool.Function{calculator(), currentTime(k), httpGet(s.hosts)}) {
		all[f.Name] = f
	}
	return all
}

// Spec says how `builtin: {…}` is decoded.
func (k *Kind) Spec() machine.ToolKind {
	return machine.ToolKind{
		Doc:    "a tool that comes with flowctl, or a Go function of the program",
		More:   k.reference(),
		Config: func() machine.ToolConfig { return &Config{kind: k} },
	}
}

// Config is the kind's part of a declaration.
type Config struct {
	Name  string   `yaml:"name" flow:"required" doc:"read_file, write_file, append_file, edit_file, list_dir, search_files, http_get, remember, recall, forget, calculator, current_time, or a Go function of the program"`
	Root  string   `yaml:"root" doc:"folder that file tools work in, relative to the flow file; the flow's folder if left out"`
	Hosts []string `yaml:"hosts" doc:"hosts that http_get may ask, such as example.com, \"*.example.org\" for all below example.org, or localhost:8080"`

	kind *Kind
}

// Uses gives what the function says about itself.
func (c *Config) Uses(scope machine.ToolScope) machine.ToolUses {
	all := c.kind.functions(setting{})
	f, ok := all[c.Name]
	if !ok {
		names := machine.SortedNames(all)
		return machine.ToolUses{Problems: []machine.ConfigProblem{{
			Path: "name", Message: fmt.Sprintf("there is no builtin %q; there are %s", c.Name, strings.Join(names, ", ")),
			Suggestion: spell.Nearest(c.Name, names),
		}}}
	}
	uses := machine.ToolUses{Description: f.Description, Effect: f.Effect, Parameters: f.Parameters, Result: f.Result}
	if c.Root != "" && !forFiles(c.Name) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{
			Path: "root", Message: fmt.Sprintf("%s works on no files; remove root", c.Name),
		})
	}
	uses.Problems = append(uses.Problems, c.checkHosts()...)
	if forMemory(c.Name) && (scope.Machine == nil || scope.Machine.Memory == nil) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "name", Rule: "no-memory",
			Message: fmt.Sprintf("%s needs a long-term memory, and the flow has none; add memory: {namespace: …} at the top", c.Name)})
	}
	if scope.Effect == machine.EffectRead && f.Effect != machine.EffectRead {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{
			Path: "name", Message: fmt.Sprintf("%s changes something, so the tool's effect cannot be read; leave it out, or write %s",
				c.Name, f.Effect),
		})
	}
	return uses
}

// checkHosts checks the hosts, which http_get cannot do without and nothing else has.
func (c *Config) checkHosts() []machine.ConfigProblem {
	switch {
	case c.Name != httpGetName && len(c.Hosts) > 0:
		return []machine.ConfigProblem{{Path: "hosts", Message: fmt.Sprintf("%s asks no hosts; remove hosts", c.Name)}}
	case c.Name == httpGetName && len(c.Hosts) == 0:
		return []machine.ConfigProblem{{Path: "", Rule: "missing-key", Message: httpGetName +
			" needs hosts, the hosts that it may ask, such as hosts: [example.com, \"*.example.org\"]"}}
	}
	var problems []machine.ConfigProblem
	for i, pattern := range c.Hosts {
		if _, err := readHost(pattern); err != nil {
			problems = append(problems, machine.ConfigProblem{Path: fmt.Sprintf("hosts[%d]", i), Message: err.Error()})
		}
	}
	return problems
}

// New makes the tool of one declaration.
func (k *Kind) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	config, ok := spec.Config.(*Config)
	if !ok {
		return tool.Tool{}, fmt.Errorf("the tool %s is not of the kind builtin", spec.Name)
	}
	root := config.Root
	if !filepath.IsAbs(root) {
		root = filepath.Join(env.Dir, root)
	}
	s := setting{dir: folder{path: root, flow: env.Dir}}
	for _, pattern := range config.Hosts {
		h, err := readHost(pattern)
		if err != nil {
			return tool.Tool{}, fmt.Errorf("the tool %s: %w", spec.Name, err)
		}
		s.hosts = append(s.hosts, h)
	}
	f, ok := k.functions(s)[config.Name]
	if !ok {
		return tool.Tool{}, fmt.Errorf("the tool %s: there is no builtin %s", spec.Name, config.Name)
	}
	return tool.Tool{Spec: spec, Run: f.Run}, nil
}

// Close does nothing: builtin tools keep nothing open between calls.
func (k *Kind) Close() error { return nil }

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// Listed is a tool as its server describes it.
type Listed struct {
	Name        string // the server's own; Config.Tool
	Suggested   string // a name for it in a flow, unlike that of any other tool of the server
	Description string
	Effect      machine.Effect // as far as the server says; write where it says nothing
	Parameters  []byte         // JSON Schema of the arguments, canonical; nil where the server gives none
	Result      []byte         // JSON Schema of the structured content, canonical; nil where the server gives none
}

// List gives the tools of a server that the machine of env declares, by name. It starts the server where it does not run, and
// waits for the answer no longer than for a start. An error is for people.
func (k *Kind) List(ctx context.Context, env tool.Env, server string) ([]Listed, error) {
	decl, err := k.declaration(server, env)
	if err != nil {
		return nil, err
	}
	if !k.begin() {
		return nil, errClosed
	}
	defer k.running.Done()
	d, err := decl.define()
	if err != nil {
		return nil, err
	}
	s := k.serverOf(d)
	one, err := s.use(ctx, "the list of its tools", func(one *session) (*exchange, error) {
		x := &exchange{}
		bounded, stop := one.bound(carry(ctx, x))
		defer stop()
		bounded, late := context.WithTimeout(bounded, s.patience())
		defer late()
		return x, one.list(bounded)
	})
	switch {
	case one == nil:
		return nil, err
	case errors.Is(err, context.DeadlineExceeded) || err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("the MCP server %s did not list its tools in time", s.label())
	case err != nil:
		return nil, s.noList(err)
	}
	return listed(one.offers()), nil
}

// noList says why a server does not list its tools.
func (s *server) noList(err error) error {
	why := words(err)
	var fault *jsonrpc.Error
	if errors.As(err, &fault) && fault.Code != codeRejected {
		why = fault.Message
	}
	return tool.Unavailablef("the MCP server %s does not list its tools: %s", s.label(), s.secrets.mask(why))
}

func listed(offers map[string]*offer) []Listed {
	names := machine.SortedNames(offers)
	suggested := suggest(names)
	out := make([]Listed, len(names))
	for i, name := range names {
		o := offers[name]
		out[i] = Listed{Name: name, Suggested: suggested[i], Description: o.Description, Effect: effectOf(o.Annotations),
			Parameters: canonical(o.InputSchema), Result: canonical(o.OutputSchema)}
	}
	return out
}

// effectOf reads what a server says a tool does.
func effectOf(a *sdk.ToolAnnotations) machine.Effect {
	switch {
	case a == nil:
		return machine.EffectWrite
	case a.ReadOnlyHint:
		return machine.EffectRead
	case a.IdempotentHint:
		return machine.EffectIdempotent
	}
	return machine.EffectWrite
}

// canonical gives the JSON of a schema.
func canonical(raw any) []byte {
	if raw == nil {
		return nil
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return nil
	}
	v, err := machine.DecodeValue(data)
	if err != nil {
		return nil
	}
	data, err = machine.EncodeValue(v)
	if err != nil {
		return nil
	}
	return data
}

// maxName is the length in bytes of a suggested name; models take no longer ones.
const maxName = 64

// suggest makes names for a flow of the names of a server, which may hold anything: lower-case words, no two alike. The same
// names give the same suggestions.
func suggest(names []string) []string {
	taken := map[string]bool{}
	out := make([]string, len(names))
	for i, name := range names {
		base := word(name)
		one := base
		for n := 2; taken[one]; n++ {
			end := fmt.Sprintf("_%d", n)
			one = base[:min(len(base), maxName-len(end))] + end
		}
		taken[one] = true
		out[i] = one
	}
	return out
}

// word makes a name of a flow: letters become lower-case, a capital begins a word, anything else becomes _.
func word(name string) string {
	var b strings.Builder
	before := rune('_') // the last character that was written
	write := func(r rune) {
		if r != '_' || before != '_' {
			b.WriteRune(r)
			before = r
		}
	}
	capital := true // the last letter was one
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			if !capital {
				write('_')
			}
			write(r - 'A' + 'a')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			write(r)
		default:
			write('_')
		}
		capital = r >= 'A' && r <= 'Z'
	}
	out := strings.TrimRight(b.String(), "_")
	if out == "" || out[0] < 'a' || out[0] > 'z' {
		out = strings.TrimRight("tool_"+out, "_")
	}
	return strings.TrimRight(out[:min(len(out), maxName)], "_")
}

package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"flowctl/engine/model"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/engine/tool/mcp"
	"flowctl/flows/machine"
)

// offersDocument is what ls --server tells programs. Its shape only grows.
type offersDocument struct {
	Server string      `json:"server"`
	Tools  []toolOffer `json:"tools"`
	YAML   string      `json:"yaml"` // the tools that the flow does not have, as it would declare them; "" for none
}

// toolOffer is a tool of an MCP server.
type toolOffer struct {
	Tool        string          `json:"tool"`     // the server's name for it
	Name        string          `json:"name"`     // one for the flow; the flow's own where it has the tool already
	Declared    bool            `json:"declared"` // the flow has it already
	Description string          `json:"description"`
	Effect      machine.Effect  `json:"effect"`     // as far as the server says; write where it says nothing
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema; null where the server gives none
	Result      json.RawMessage `json:"result"`     // JSON Schema; null where the server gives none
}

// toolsServer lists what an MCP server of a flow offers.
func (a *app) toolsServer(ctx context.Context, flow, server string) error {
	kinds := a.toolKinds()
	defer a.closeKinds(kinds)
	m, err := a.readFlow(flow, a.catalog(kinds))
	if err != nil {
		return err
	}
	decl, ok := m.Servers.Get(server)
	switch {
	case !ok && len(m.Servers) == 0:
		return usagef("declare one under mcp, at the top of the flow", "the flow %s has no MCP server", m.Name)
	case !ok:
		return usagef(suggest(server, m.Servers.Names(), "it has: "+strings.Join(m.Servers.Names(), ", ")),
			"the flow %s has no MCP server %q", m.Name, server)
	case len(decl.Command) > 0 && !a.allowCommands:
		return usagef("allow it with --allow-commands", "the MCP server %s is a program: %s", server, strings.Join(decl.Command, " "))
	}
	env, secrets, err := a.toolEnv(m)
	if err != nil {
		return err
	}
	kind, ok := kinds["mcp"].(*mcp.Kind)
	if !ok {
		return usagef("", "this flowctl speaks to no MCP servers")
	}
	listed, err := kind.List(ctx, env, server)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		a.unavailable(secrets.Text(err.Error()))
		return nil
	}
	for i := range listed {
		l := &listed[i]
		l.Description = secrets.Text(l.Description)
		l.Parameters, l.Result = cleanSchema(secrets, l.Parameters), cleanSchema(secrets, l.Result)
	}
	a.printOffers(offersOf(m, server, listed))
	return nil
}

// cleanSchema takes secrets out of a schema, which may be absent.
func cleanSchema(secrets *secret.Redactor, schema []byte) []byte {
	if schema == nil {
		return nil
	}
	return secrets.JSON(schema)
}

// unavailable tells that a server could not be asked.
func (a *app) unavailable(message string) {
	a.code = exitFailed
	a.errln("flowctl: " + a.clean(message, a.Terminal.Err))
	if a.json() {
		a.printed = true
		a.printJSON(errorDocument{Error: errorBody{Code: string(tool.Unavailable), Message: message}})
	}
}

// offersOf gives what a server offers, beside what the flow has of it.
func offersOf(m *machine.Machine, server string, listed []mcp.Listed) offersDocument {
	doc := offersDocument{Server: server, Tools: make([]toolOffer, len(listed))}
	taken := append(m.Tools.Names(), model.FinishTool)
	for i, l := range listed {
		o := toolOffer{Tool: l.Name, Name: l.Suggested, Description: l.Description, Effect: l.Effect, Parameters: l.Parameters, Result: l.Result}
		if name := declaredAs(m, server, l.Name); name != "" {
			o.Name, o.Declared = name, true
		} else {
			for slices.Contains(taken, o.Name) {
				o.Name = server + "_" + o.Name
			}
			taken = append(taken, o.Name)
		}
		doc.Tools[i] = o
	}
	doc.YAML = snippet(doc)
	return doc
}

// declaredAs gives the name by which a flow has a tool of a server already, "" if it has not.
func declaredAs(m *machine.Machine, server, name string) string {
	for _, spec := range m.Tools {
		if cfg, ok := spec.Value.Config.(*mcp.Config); ok && cfg.Server == server && cfg.Tool == name {
			return spec.Name
		}
	}
	return ""
}

// printOffers prints YAML for people, all of it on stdout, so that it can be sent to a file.
func (a *app) printOffers(doc offersDocument) {
	if a.json() {
		a.printJSON(doc)
		return
	}
	fresh := 0
	for _, o := range doc.Tools {
		if !o.Declared {
			fresh++
			continue
		}
		a.outln(a.clean("# "+oneLine(o.Tool)+" is in the flow already, as "+o.Name, a.Terminal.Out))
	}
	if fresh == 0 {
		a.errln("the MCP server " + doc.Server + " offers no tool that the flow does not have")
		return
	}
	a.outln("# " + plural(fresh, "tool") + " of the MCP server " + doc.Server + ". Keep what you need; the effects are what the server says.")
	a.outln(strings.TrimRight(doc.YAML, "\n"))
}

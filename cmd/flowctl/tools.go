package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Look at the tools of a flow, and try them",
		Long: `Look at the tools of a flow, state by state, and try one of them outside of a run, with the same checks and limits as in a
run. What an MCP server offers can be listed too, as tools that are ready to be pasted into the flow.`,
		Example: `  flowctl tools ls flow.yaml
  flowctl tools call flow.yaml lookup_order --args '{"order_id": "A1001"}'
  flowctl tools ls flow.yaml --server files --allow-commands`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.Args = a.unknownCommand(cmd)
	cmd.AddCommand(a.toolsLsCommand(), a.toolsCallCommand())
	return cmd
}

// closeKinds closes what tools keep open. What goes wrong then is told, and changes nothing of what they did.
func (a *app) closeKinds(kinds map[string]tool.Kind) {
	for _, name := range machine.SortedNames(kinds) {
		if err := kinds[name].Close(); err != nil {
			a.errln("flowctl: tools of kind " + name + ": " + err.Error())
		}
	}
}

// completeTools completes the file of a flow, and then the name of one of its tools.
func (a *app) completeTools(_ *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(args, start, func(m *machine.Machine) []cobra.Completion {
		var found []cobra.Completion
		for _, spec := range m.Tools {
			found = append(found, cobra.CompletionWithDesc(spec.Name, oneLine(spec.Value.Description)))
		}
		return found
	})
}

// completeNames completes something that the flow given as first argument has names for.
func (a *app) completeNames(args []string, start string, names func(*machine.Machine) []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return nil, nothing
	}
	m, err := a.readFlow(args[0], a.catalog(a.toolKinds()))
	if err != nil {
		return nil, nothing
	}
	other := func(name cobra.Completion) bool { return !strings.HasPrefix(name, start) }
	return slices.DeleteFunc(names(m), other), nothing
}

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/flows"
	"flowctl/store"
)

func shells() []string { return []string{"bash", "fish", "powershell", "zsh"} }

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long: "Print the script that completes flowctl's commands, flags and run ids in a shell: " +
			strings.Join(shells(), ", ") + ".",
		Example: `  source <(flowctl completion bash)
  flowctl completion zsh > "${fpath[1]}/_flowctl"
  flowctl completion fish > ~/.config/fish/completions/flowctl.fish`,
		Args:      args(1, 1, "SHELL"),
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			}
			hint := suggest(args[0], shells(), "use one of: "+strings.Join(shells(), ", "))
			return usagef(hint, "there is no script for %s", args[0])
		},
	}
}

// completeRuns completes the id of a run, as a first argument.
func (a *app) completeRuns(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 || a.begin(cmd) != nil {
		return nil, nothing
	}
	p, err := a.openExisting(cmd.Context())
	if err != nil {
		return nil, nothing
	}
	defer p.close()
	rows, err := p.db.Runs(cmd.Context(), store.Filter{IDPrefix: start, Limit: 100})
	if err != nil {
		return nil, nothing
	}
	found := make([]cobra.Completion, len(rows))
	for i, row := range rows {
		found[i] = cobra.CompletionWithDesc(row.ID, row.Flow+", "+string(row.Status))
	}
	return found, nothing
}

// completeRules completes the id of a rule.
func completeRules(_ *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, r := range flows.Rules() {
		if len(args) == 0 && strings.HasPrefix(r.ID, start) {
			found = append(found, cobra.CompletionWithDesc(r.ID, r.Title))
		}
	}
	slices.Sort(found)
	return found, cobra.ShellCompDirectiveNoFileComp
}

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"flowctl/flows"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "Explain a rule of flow files, or list them",
		Long: `Explain a rule of flow files: why it is one, a flow that breaks it and the same flow mended. Without RULE, list all
of them.`,
		Example:           "  flowctl explain\n  flowctl explain missing-route",
		Args:              args(0, 1, ""),
		ValidArgsFunction: completeRules,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.listRules()
				return nil
			}
			return a.explain(args[0])
		},
	}
}

// ruleDocument is a rule for programs. Its shape only grows.
type ruleDocument struct {
	Rule     string         `json:"rule"`
	Severity flows.Severity `json:"severity"`
	Title    string         `json:"title"`
	Doc      string         `json:"doc"`
	Wrong    string         `json:"wrong"`
	Right    string         `json:"right"`
}

func newRuleDocument(r flows.Rule) ruleDocument {
	return ruleDocument{Rule: r.ID, Severity: r.Severity, Title: r.Title, Doc: r.Doc, Wrong: r.Wrong, Right: r.Right}
}

func (a *app) listRules() {
	rules := flows.Rules()
	if a.json() {
		docs := make([]ruleDocument, len(rules))
		for i, r := range rules {
			docs[i] = newRuleDocument(r)
		}
		a.printJSON(docs)
		return
	}
	rows := make([][]string, len(rules))
	for i, r := range rules {
		rows[i] = []string{r.ID, string(r.Severity), oneLine(r.Title)}
	}
	a.table([]string{"RULE", "SEVERITY", "WHAT IT SAYS"}, rows)
}

func (a *app) explain(id string) error {
	var ids []string
	for _, r := range flows.Rules() {
		if r.ID == id {
			a.printRule(r)
			return nil
		}
		ids = append(ids, r.ID)
	}
	return usagef(suggest(id, ids, "list them with: flowctl explain"), "there is no rule %s", id)
}

func (a *app) printRule(r flows.Rule) {
	if a.json() {
		a.printJSON(newRuleDocument(r))
		return
	}
	a.outln(a.bold(r.ID + " (" + string(r.Severity) + "): " + r.Title))
	a.outln("")
	a.outln(strings.TrimSpace(r.Doc))
	for _, part := range []struct{ title, flow string }{{"Wrong:", r.Wrong}, {"Right:", r.Right}} {
		if part.flow != "" {
			a.outln("\n" + part.title + "\n")
			a.outln("  " + strings.ReplaceAll(strings.TrimRight(part.flow, "\n"), "\n", "\n  "))
		}
	}
}

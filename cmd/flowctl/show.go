package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/flows/machine"
	"flowctl/store"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run: status, path, variables, what was said",
		Long: `Show one run: its status, the path it took, its variables, what was said, what it waits for and why it stopped.

-o json prints the run's document.`,
		Example:           "  flowctl show 01JD\n  flowctl show 01JD -o json",
		Args:              args(1, 1, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0]) },
	}
}

func (a *app) show(ctx context.Context, id string) error {
	p, row, err := a.openRun(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	doc, err := p.eng.Report(ctx, row.ID)
	if err != nil {
		return err
	}
	if a.json() {
		a.printDocument(doc)
		return nil
	}
	p.showText(row, doc)
	return nil
}

// showText prints the document for a person, one subject per line or block.
func (p *place) showText(row store.Run, doc engine.Report) {
	a := p.app
	line := func(name, text string) {
		if text != "" {
			a.outln(a.bold(padded(name)) + strings.ReplaceAll(a.clean(text, a.Terminal.Out), "\n", "\n"+padded("")))
		}
	}
	line("run", doc.Run)
	line("flow", doc.Flow+" ("+doc.FlowHash+")")
	line("folder", row.Dir)
	line("status", p.status(row))
	line("state", doc.State)
	line("path", strings.Join(doc.Path, " → "))
	line("updated", stamp(row.Updated)+" ("+ago(a.Now(), row.Updated)+")")
	line("usage", usage(doc.Usage))
	for i, name := range machine.SortedNames(doc.Vars) {
		line(first(i, "vars"), name+" = "+short(doc.Vars[name]))
	}
	for i, said := range doc.Said {
		line(first(i, "said"), said.State+": "+said.Text)
	}
	if doc.Output != nil {
		line("output", readable(doc.Output))
	}
	for i, q := range doc.Waiting {
		line(first(i, "waiting"), a.waitingText(q))
		for _, command := range a.goOn(doc, q) {
			line("", "  "+command)
		}
	}
	if doc.Error != nil {
		line("error", string(doc.Error.Code)+": "+doc.Error.Message)
		line("hint", a.local(doc.Error.Hint))
	}
}

// valueColumns is how much of a list or an object in a variable is shown; -o json has all of it.
const valueColumns = 100

// short is a variable's value for people.
func short(v machine.Value) string {
	switch x := v.(type) {
	case string:
		if x == "" {
			return `""`
		}
		return x
	case []machine.Value, machine.Values:
		return shorten(oneLine(machine.FormatValue(v)), valueColumns)
	}
	return machine.FormatValue(v)
}

func (a *app) waitingText(q engine.WaitingFor) string {
	text := q.ID + " " + string(q.Kind) + ": " + q.Question
	if q.Due != nil {
		text += " (" + a.deadline(q) + ")"
	}
	for i, c := range q.Choices {
		text += "\n  " + strconv.Itoa(i+1) + "  " + c.Name + ": " + c.Label
	}
	return text
}

func usage(u store.Usage) string {
	parts := []string{plural(u.Steps, "step"), plural(u.ModelCalls, "model call"), plural(u.ToolCalls, "tool call")}
	if u.PromptTokens+u.CompletionTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d + %d tokens", u.PromptTokens, u.CompletionTokens))
	}
	if u.Cost != nil {
		parts = append(parts, "cost "+costText(*u.Cost))
	}
	return strings.Join(parts, ", ")
}

// first gives the name of a block on its first line.
func first(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

func padded(name string) string { return name + strings.Repeat(" ", max(10-len(name), 1)) }

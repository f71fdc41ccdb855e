package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/store"
)

type lsFlags struct {
	status            []string
	waiting           bool
	flow, since, text string
	limit             int
}

func (a *app) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List runs, newest first",
		Long: `List runs, newest first. A run whose process was lost is shown as running (interrupted); flowctl resume takes it up.

-o json prints an array of the runs' documents, without vars and said.`,
		Example: `  flowctl ls
  flowctl ls --waiting
  flowctl ls --status stopped --status failed --since 24h
  flowctl ls --flow support --text A1001 -o json`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.ls(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.status, "status", nil, "only runs of this `STATUS`: "+strings.Join(statusNames(), ", "))
	flags.BoolVar(&f.waiting, "waiting", false, "only runs that wait for somebody")
	flags.StringVar(&f.flow, "flow", "", "only runs of the flow of this `NAME`")
	flags.StringVar(&f.since, "since", "", "only runs that something happened in since this `TIME` or within this age (90m, 7d)")
	flags.StringVar(&f.text, "text", "", "only runs with this `TEXT` somewhere in their events")
	flags.IntVar(&f.limit, "limit", 0, "list at most `N` runs (0: all)")
	return cmd
}

// interrupted stands for runs whose process was lost.
const interrupted = "interrupted"

func statusNames() []string {
	return []string{string(store.Running), string(store.Waiting), string(store.Stopped), string(store.Succeeded),
		string(store.Failed), string(store.Cancelled), interrupted}
}

func (a *app) ls(ctx context.Context, f lsFlags) error {
	filter, lost, err := a.lsFilter(f)
	if err != nil {
		return err
	}
	p, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.look(); err != nil {
		return err
	}
	if lost {
		filter.Unheld = p.eng.Dead
	}
	rows, err := p.db.Runs(ctx, filter)
	if err != nil {
		return err
	}
	if a.json() {
		return p.lsDocuments(ctx, rows)
	}
	return p.lsTable(ctx, rows)
}

// lsFilter makes the filter of the flags; lost asks for interrupted runs only.
func (a *app) lsFilter(f lsFlags) (filter store.Filter, lost bool, err error) {
	filter = store.Filter{Flow: f.flow, Text: f.text, Limit: f.limit}
	if f.limit < 0 {
		return filter, false, usagef("write --limit 0 for all", "--limit %d is no number of runs", f.limit)
	}
	if f.since != "" {
		if filter.Since, err = parseSince(a.Now(), f.since); err != nil {
			return filter, false, err
		}
	}
	for _, s := range f.status {
		switch {
		case !slices.Contains(statusNames(), s):
			hint := suggest(s, statusNames(), "use one of: "+strings.Join(statusNames(), ", "))
			return filter, false, usagef(hint, "there is no status %s", s)
		case s == interrupted && len(f.status) > 1:
			return filter, false, usagef("list them alone", "--status interrupted is a part of running")
		case s == interrupted:
			filter.Status, lost = append(filter.Status, store.Running), true
		default:
			filter.Status = append(filter.Status, store.Status(s))
		}
	}
	if f.waiting {
		if len(filter.Status) > 0 {
			return filter, false, usagef("use one of the two", "--waiting and --status cannot stand together")
		}
		filter.Status = []store.Status{store.Waiting}
	}
	return filter, lost, nil
}

func (p *place) lsDocuments(ctx context.Context, rows []store.Run) error {
	docs := make([]engine.Report, 0, len(rows))
	for _, row := range rows {
		doc, err := p.eng.Report(ctx, row.ID)
		if err != nil {
			return err
		}
		doc.Vars, doc.Said = nil, nil
		docs = append(docs, doc)
	}
	p.app.printJSON(docs)
	return nil
}

func (p *place) lsTable(ctx context.Context, rows []store.Run) error {
	if len(rows) == 0 {
		p.app.errln("no runs")
		return nil
	}
	var lines [][]string
	for _, row := range rows {
		id, err := p.shortID(ctx, row.ID)
		if err != nil {
			return err
		}
		about, err := p.about(ctx, row)
		if err != nil {
			return err
		}
		lines = append(lines, []string{id, row.Flow, p.status(row), row.State, ago(p.app.Now(), row.Updated), about})
	}
	p.app.table([]string{"RUN", "FLOW", "STATUS", "STATE", "UPDATED", "WAITS FOR"}, lines)
	return nil
}

// status is a run's status for people: one whose process was lost is interrupted.
func (p *place) status(row store.Run) string {
	if row.Status == store.Running && p.eng.Dead(row.Holder) {
		return string(row.Status) + " (" + interrupted + ")"
	}
	return string(row.Status)
}

// about is the beginning of what a run waits for.
func (p *place) about(ctx context.Context, row store.Run) (string, error) {
	if row.Status != store.Waiting {
		return "", nil
	}
	doc, err := p.eng.Report(ctx, row.ID)
	if err != nil || len(doc.Waiting) == 0 {
		return "", err
	}
	q := doc.Waiting[0]
	text := string(q.Kind) + ": " + shorten(oneLine(q.Question), 60)
	if more := len(doc.Waiting) - 1; more > 0 {
		text += " (and " + plural(more, "other") + ")"
	}
	return text, nil
}

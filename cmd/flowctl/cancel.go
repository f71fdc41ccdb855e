package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run",
		Long: `End a run for good. Where a process works on it, that one is told and awaited; calls in flight get five seconds to end.
Cancelling again is no error.`,
		Example:           "  flowctl cancel 01JD",
		Args:              args(1, 1, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.cancel(cmd.Context(), args[0]) },
	}
}

func (a *app) cancel(ctx context.Context, id string) error {
	p, row, err := a.openWork(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	d := drive{place: p, run: row.ID}
	if err := p.eng.Cancel(ctx, row.ID); err != nil {
		return d.failed(ctx, err)
	}
	if err := d.finish(ctx); err != nil {
		return err
	}
	a.code = exitOK // the command did its work
	return nil
}

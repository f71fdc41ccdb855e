package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/store"
)

type resumeFlags struct {
	raise               []string
	restart, redoWrites bool
	flow                string
	renamed             []string
	dir                 string
	all, due            bool
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Take a run up where it stopped",
		Long: `Take a run up where it stopped, or where its process was lost, and work on it until it ends, waits or stops. Of a run
that has ended the document is printed again.

--flow goes on with another version of the flow. Where the present state differs, it begins anew; what it already wrote
is listed first and needs --redo-writes.`,
		Example: `  flowctl resume 01JD
  flowctl resume 01JD --raise steps=20 --raise time=10m
  flowctl resume 01JD --flow flow.yaml --map details=ask_details
  flowctl resume --all
  flowctl resume --due`,
		Args: func(cmd *cobra.Command, given []string) error {
			if f.all || f.due {
				return args(0, 0, "")(cmd, given)
			}
			return args(1, 1, "RUN, --all or --due")(cmd, given)
		},
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.resumeMany(cmd, f)
			}
			return a.resume(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.raise, "raise", nil,
		"allow so much more of a limit, as `LIMIT=N`: "+strings.Join(engine.LimitNames(), ", "))
	flags.BoolVar(&f.restart, "restart-state", false, "begin the present state anew")
	flags.BoolVar(&f.redoWrites, "redo-writes", false, "allow that writes of the state run again")
	flags.StringVar(&f.flow, "flow", "", "go on with this `FLOW`")
	flags.StringArrayVar(&f.renamed, "map", nil, "a state's new name in that flow, as `OLD=NEW`")
	flags.StringVar(&f.dir, "dir", "", "`FOLDER` that the flow's relative paths start from now")
	flags.BoolVar(&f.all, "all", false, "take up all runs whose process was lost")
	flags.BoolVar(&f.due, "due", false, "take up all waiting runs whose time has come")
	a.streamFlag(flags)
	a.allowFlag(flags)
	return cmd
}

func (a *app) resume(ctx context.Context, id string, f resumeFlags) error {
	req, err := a.resumeRequest(f)
	if err != nil {
		return err
	}
	p, row, err := a.openWork(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	if f.flow == "" && req.Dir != "" { // what lies beside the flow now counts, its .env among it
		row.Dir = req.Dir
		if err := p.startFor(ctx, row); err != nil {
			return err
		}
	}
	if f.flow != "" {
		if req.Flow, err = a.readFlow(f.flow, p.cat); err != nil {
			return err
		}
		env, err := a.environment(req.Flow.Dir)
		if err != nil {
			return err
		}
		if err := p.start(workSetup{Env: env, Machine: req.Flow}); err != nil {
			return err
		}
	}
	d := drive{place: p, run: row.ID, ask: a.asksInline()}
	err = p.eng.Resume(ctx, row.ID, req)
	if err != nil && !errors.Is(err, engine.ErrFinished) {
		return d.failed(ctx, err)
	}
	if err != nil && f.changes() {
		a.errln("run " + row.ID + " has ended; nothing of it was changed")
	}
	if err = d.advance(ctx); errors.Is(err, engine.ErrBusy) && f.onlyRaises() {
		a.errln("raised; the process that works on run " + row.ID + " goes by it")
		return nil
	}
	return err
}

// changes says whether the flags ask for more than to take the run up.
func (f resumeFlags) changes() bool {
	return len(f.raise) > 0 || f.restart || f.flow != "" || f.dir != ""
}

// onlyRaises says whether limits are all that is asked for: a run at work takes them from outside.
func (f resumeFlags) onlyRaises() bool {
	return len(f.raise) > 0 && !f.restart && f.flow == "" && f.dir == ""
}

// resumeRequest reads the flags that say how to take a run up; the flow is read later.
func (a *app) resumeRequest(f resumeFlags) (engine.ResumeRequest, error) {
	req := engine.ResumeRequest{Restart: f.restart, RedoWrites: f.redoWrites}
	if f.flow == "" && len(f.renamed) > 0 {
		return req, usagef("add --flow FLOW", "--map is for a switch of the flow")
	}
	for _, pair := range f.renamed {
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return req, usagef("write --map old=new", "--map %s names no two states", pair)
		}
		if req.Map == nil {
			req.Map = map[string]string{}
		}
		req.Map[from] = to
	}
	for _, pair := range f.raise {
		limit, by, err := parseRaise(pair)
		if err != nil {
			return req, err
		}
		if req.Raise == nil {
			req.Raise = map[string]float64{}
		}
		req.Raise[limit] += by
	}
	if f.dir == "" {
		return req, nil
	}
	dir, err := filepath.Abs(a.path(f.dir))
	if info, statErr := os.Stat(dir); err != nil || statErr != nil || !info.IsDir() {
		return req, usagef("name the folder of the flow file", "there is no folder %s", f.dir)
	}
	req.Dir = dir
	return req, nil
}

// parseRaise reads limit=n; time takes a duration and comes back in milliseconds.
func parseRaise(pair string) (limit string, by float64, err error) {
	limit, text, ok := strings.Cut(pair, "=")
	names := engine.LimitNames()
	switch {
	case !ok:
		return "", 0, usagef("write --raise limit=n", "--raise %s has no =", pair)
	case !slices.Contains(names, limit):
		return "", 0, usagef(suggest(limit, names, "the limits are "+strings.Join(names, ", ")), "there is no limit %s", limit)
	case limit == "time":
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return "", 0, usagef("write a duration such as --raise time=10m", "%q is no time to add", text)
		}
		return limit, float64(d) / float64(time.Millisecond), nil
	}
	by, err = strconv.ParseFloat(text, 64)
	if err != nil || by <= 0 || by > 1e15 || limit != "cost" && by != float64(int64(by)) {
		return "", 0, usagef("write how much more is allowed, such as --raise "+limit+"=20", "%q is no number to add", text)
	}
	return limit, by, nil
}

// resumeMany takes up the runs that --all and --due mean, one after the other, oldest first, and lists where they came to.
func (a *app) resumeMany(cmd *cobra.Command, f resumeFlags) error {
	ctx := cmd.Context()
	for _, flag := range []string{"raise", "restart-state", "redo-writes", "flow", "map", "dir"} {
		if cmd.Flags().Changed(flag) {
			return usagef("resume that run by its id", "--%s is for one run", flag)
		}
	}
	p, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	rows, err := p.toResume(ctx, f)
	if err != nil {
		return err
	}
	docs := make([]engine.Report, 0, len(rows))
	for _, row := range rows {
		if ctx.Err() != nil {
			break
		}
		doc, err := p.resumeOne(ctx, row)
		if err != nil {
			return err
		}
		docs = append(docs, doc)
	}
	if ctx.Err() != nil {
		a.code = exitInterrupted
	}
	a.printResumed(docs)
	return nil
}

func (p *place) toResume(ctx context.Context, f resumeFlags) ([]store.Run, error) {
	if err := p.look(); err != nil {
		return nil, err
	}
	var rows []store.Run
	if f.all {
		lost, err := p.eng.Interrupted(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, lost...)
	}
	if f.due {
		due, err := p.eng.DueRuns(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, due...)
	}
	slices.SortFunc(rows, func(a, b store.Run) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return rows, nil
}

// resumeOne works on one of many runs. That another process was quicker, or that this run is damaged, keeps no other run
// waiting; only a failing machine is an error.
func (p *place) resumeOne(ctx context.Context, row store.Run) (engine.Report, error) {
	err := p.startFor(ctx, row)
	if err == nil {
		_, err = p.eng.Advance(ctx, row.ID)
	}
	if err != nil {
		f := failureOf(ctx, err)
		if f.exit == exitMachine {
			return engine.Report{}, err
		}
		p.app.errln("run " + row.ID + ": " + f.message)
	}
	return p.eng.Report(context.WithoutCancel(ctx), row.ID)
}

func (a *app) printResumed(docs []engine.Report) {
	if a.json() {
		a.printJSON(docs)
		return
	}
	if len(docs) == 0 {
		a.errln("nothing to take up")
		return
	}
	var rows [][]string
	for _, doc := range docs {
		why := ""
		switch {
		case doc.Error != nil:
			why = doc.Error.Message
		case len(doc.Waiting) > 0:
			why = doc.Waiting[0].Question
		}
		rows = append(rows, []string{doc.Run, doc.Flow, string(doc.Status), doc.State, shorten(oneLine(why), 80)})
	}
	a.table([]string{"RUN", "FLOW", "STATUS", "STATE", "WHY"}, rows)
}

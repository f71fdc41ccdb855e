package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

type answerFlags struct {
	ask                   string
	yes, no               bool
	json                  string
	done, notDone, giveUp bool
}

func (a *app) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN [VALUE]",
		Short: "Answer what a run asks, and go on",
		Long: `Answer what a run asks, and go on with it. VALUE is read by the question's schema: text, a number, a choice's name or
number, or JSON. --yes and --no without --ask answer all confirmations and approvals that wait; beside --no, VALUE is
the reason. Any other answer needs --ask where several questions wait.

--done, --not-done and --give-up settle a write whose result nobody knows.`,
		Example: `  flowctl answer 01JD A1001
  flowctl answer 01JD --yes
  flowctl answer 01JD --no "the address is wrong"
  flowctl answer 01JD --ask 4.0.1 --json '{"name": "Ada"}'
  flowctl answer 01JD --done --json '{"affected": 1}'`,
		Args:              args(1, 2, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := f.reply(args[1:], cmd.Flags().Changed("json"))
			if err != nil {
				return err
			}
			return a.answer(cmd.Context(), args[0], f.ask, reply)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.ask, "ask", "", "`ID` of the question")
	flags.BoolVar(&f.yes, "yes", false, "confirm, or approve")
	flags.BoolVar(&f.no, "no", false, "reject, or deny; VALUE is the reason")
	flags.StringVar(&f.json, "json", "", "answer with a `JSON` value; with --done, the result of the call")
	flags.BoolVar(&f.done, "done", false, "the call in doubt happened")
	flags.BoolVar(&f.notDone, "not-done", false, "the call in doubt did not happen: run it again")
	flags.BoolVar(&f.giveUp, "give-up", false, "nobody will know of the call in doubt")
	a.streamFlag(flags)
	a.allowFlag(flags)
	return cmd
}

// reply makes the answer of the command line. value has one item at most, which may be empty.
func (f answerFlags) reply(value []string, hasJSON bool) (engine.Reply, error) {
	var r engine.Reply
	var chosen []string
	choose := func(on bool, flag string, set func()) {
		if on {
			chosen = append(chosen, flag)
			set()
		}
	}
	yes, no := true, false
	choose(f.yes, "--yes", func() { r.Yes = &yes })
	choose(f.no, "--no", func() { r.Yes = &no })
	choose(f.done, "--done", func() { r.Verdict = history.Done })
	choose(f.notDone, "--not-done", func() { r.Verdict = history.NotDone })
	choose(f.giveUp, "--give-up", func() { r.Verdict = history.GiveUp })
	choose(hasJSON && r.Verdict == "", "--json", func() {})
	choose(len(value) > 0 && !f.no, "VALUE", func() {})
	switch {
	case len(chosen) == 0:
		return r, usagef("give a VALUE, --yes, --no, --json, --done, --not-done or --give-up", "the answer is missing")
	case len(chosen) > 1:
		return r, usagef("give one of them", "%s cannot stand together", strings.Join(chosen, " and "))
	}
	if len(value) > 0 {
		r.Text = value[0]
	}
	if hasJSON {
		v, err := machine.DecodeValue([]byte(f.json))
		if err != nil {
			return r, usagef(`such as --json '{"name": "Ada"}', or --json '"text"'`, "--json: %v", err)
		}
		r.Value, r.HasValue = v, true
	}
	return r, nil
}

func (a *app) answer(ctx context.Context, id, ask string, reply engine.Reply) error {
	p, row, err := a.openWork(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	d := drive{place: p, run: row.ID}
	doc, err := p.eng.Report(ctx, row.ID)
	if err != nil {
		return err
	}
	if doc.Error != nil && doc.Error.Code == history.CodeCorrupt && !doc.Status.Final() {
		return d.advance(ctx) // which stops it, since what it asks cannot be read
	}
	asks := []string{ask}
	if ask == "" {
		if asks, err = whichAsks(doc, reply); err != nil {
			return d.failed(ctx, err)
		}
	}
	for i, question := range asks {
		reply.Ask = question
		err := p.eng.Answer(ctx, row.ID, reply)
		if err != nil && i == 0 {
			return d.failed(ctx, err)
		}
		if err != nil { // what was answered before counts, so the run goes on; this one is told
			a.errln("question " + question + ": " + err.Error())
		}
	}
	return d.advance(ctx)
}

// whichAsks gives the questions that an answer without --ask is for.
func whichAsks(doc engine.Report, r engine.Reply) ([]string, error) {
	var fitting, all []string
	for _, q := range doc.Waiting {
		all = append(all, q.ID+" ("+string(q.Kind)+" in "+q.State+")")
		if r.Yes == nil || q.Kind == history.KindConfirm || q.Kind == history.KindApproval {
			fitting = append(fitting, q.ID)
		}
	}
	switch {
	case doc.Status.Final():
		return nil, fmt.Errorf("%w: %s has %s", engine.ErrFinished, doc.Run, doc.Status)
	case len(all) == 0:
		return nil, fmt.Errorf("%w: run %s asks nothing now, it is %s", engine.ErrNotPending, doc.Run, doc.Status)
	case len(fitting) == 0 && doc.Waiting[0].Kind == history.KindInDoubt:
		return nil, usagef("answer it with --done, --not-done or --give-up", "run %s asks whether a call happened: %s", doc.Run,
			strings.Join(all, ", "))
	case len(fitting) == 0:
		return nil, usagef("answer it with a VALUE", "what run %s asks is no matter of yes or no: %s", doc.Run,
			strings.Join(all, ", "))
	case len(fitting) > 1 && r.Yes == nil:
		return nil, usagef("choose one with --ask ID", "run %s asks several questions: %s", doc.Run, strings.Join(all, ", "))
	}
	return fitting, nil
}

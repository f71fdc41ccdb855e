package main

import (
	"strings"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/store"
)

// printDocument prints the one document of -o json.
func (a *app) printDocument(doc engine.Report) {
	a.printed = true
	a.printJSON(doc)
}

// printOutcome tells how the work on a run ended. What was said is printed already, as it was said.
func (a *app) printOutcome(doc engine.Report) {
	if a.json() {
		a.printDocument(doc)
		return
	}
	if doc.Status.Final() && doc.Output != nil {
		a.outln(a.clean(readable(doc.Output), a.Terminal.Out))
	}
	switch {
	case doc.Status == store.Waiting:
		a.printWaiting(doc)
	case doc.Status == store.Stopped && doc.Error != nil:
		a.errln("run " + doc.Run + " stopped in state " + doc.State + ": " + a.clean(strings.TrimPrefix(doc.Error.Message, "state "+doc.State+": "), a.Terminal.Err))
		a.printHint(doc.Error.Hint)
	case doc.Status == store.Failed:
		a.errln("run " + doc.Run + " failed in state " + doc.State)
	case doc.Status == store.Cancelled:
		a.errln("run " + doc.Run + " is cancelled")
	case !doc.Status.Final():
		a.errln("run " + doc.Run + " is at work in another process")
	case a.showsProgress():
		a.errln(a.faint("run " + doc.Run + " succeeded"))
	}
}

func (a *app) printHint(hint string) {
	if hint != "" {
		a.errln("  " + a.clean(a.local(hint), a.Terminal.Err))
	}
}

// printWaiting says what a run waits for and which commands go on with it.
func (a *app) printWaiting(doc engine.Report) {
	a.errln("run " + doc.Run + " is waiting in state " + doc.State)
	for _, q := range doc.Waiting {
		a.errln("  " + string(q.Kind) + ": " + strings.ReplaceAll(a.clean(q.Question, a.Terminal.Err), "\n", "\n    "))
		for _, c := range q.Choices {
			a.errln("    " + c.Name + ": " + a.clean(c.Label, a.Terminal.Err))
		}
		if q.Due != nil {
			a.errln("    " + a.deadline(q))
		}
		for _, line := range a.goOn(doc, q) {
			a.errln("    " + line)
		}
	}
}

// deadline says until when a question with a due time can be answered.
func (a *app) deadline(q engine.WaitingFor) string {
	if a.expired(q) {
		return "its time ran out at " + stamp(*q.Due)
	}
	return "until " + stamp(*q.Due)
}

func (a *app) expired(q engine.WaitingFor) bool { return q.Due != nil && !a.Now().Before(*q.Due) }

// goOn gives the commands that go on with a question, ready to paste.
func (a *app) goOn(doc engine.Report, q engine.WaitingFor) []string {
	if a.expired(q) {
		return []string{a.command("resume", doc.Run)}
	}
	words := []string{"answer", doc.Run}
	if len(doc.Waiting) > 1 {
		words = append(words, "--ask", q.ID)
	}
	with := func(more ...string) string { return a.command(append(append([]string{}, words...), more...)...) }
	switch {
	case q.Kind == history.KindConfirm, q.Kind == history.KindApproval:
		return []string{with("--yes"), with("--no", "REASON")}
	case q.Kind == history.KindInDoubt:
		return []string{with("--done"), with("--not-done"), with("--give-up")}
	case len(q.Choices) > 0:
		return []string{with(q.Choices[0].Name)}
	case asksForObject(q.Schema):
		return []string{with("--json") + " '{…}'"}
	}
	return []string{with("VALUE")}
}

package main

import (
	"fmt"
	"sync"

	"flowctl/engine/history"
)

// watcher looks at every event of the runs that this call works on: it prints what is said, shows progress and writes the
// log.
type watcher struct {
	app *app
	mu  sync.Mutex // the engine calls from the goroutine of each run
	log projector
}

func (a *app) watcher() *watcher { return &watcher{app: a, log: projector{}} }

func (w *watcher) observe(run string, ev history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if said, ok := ev.Data.(*history.Said); ok && !w.app.json() {
		w.app.outln(w.app.clean(said.Text, w.app.Terminal.Out))
	}
	if w.app.showsProgress() {
		if line := progressLine(run, ev); line != "" {
			w.app.errln(w.app.faint(line))
		}
	}
	if entry := w.log.entry(run, ev); entry != nil {
		w.app.log.write(entry)
	}
}

// showsProgress says whether somebody wants to see what a run does while it does it. Where the log goes to stderr, that
// shows it.
func (a *app) showsProgress() bool {
	if a.flags.Verbose {
		return a.flags.Log != ""
	}
	return a.Terminal.Err && !a.json()
}

// progressLine is one line of progress, "" for an event that is no news.
func progressLine(run string, ev history.Event) string {
	switch d := ev.Data.(type) {
	case *history.RunStarted:
		return "run " + run + " of flow " + d.Flow
	case *history.StateEntered:
		line := "→ " + ev.State
		if ev.Visit > 1 {
			line += fmt.Sprintf(" (visit %d)", ev.Visit)
		}
		return line
	case *history.ToolFinished:
		line := fmt.Sprintf("  %s: %s (%d ms)", oneLine(d.Tool), d.Result.Status, d.MS)
		if msg := d.Result.Problem.Message; msg != "" {
			line += ": " + shorten(oneLine(msg), 120)
		}
		return line
	case *history.AttemptFailed:
		return "  " + oneLine(d.Tool) + ": tried in vain: " + shorten(oneLine(d.Problem.Message), 120)
	case *history.Transition:
		return "  " + string(d.Outcome)
	}
	return ""
}

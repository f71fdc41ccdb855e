package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// watcher looks at every event of the runs that this call works on: it prints what is said, shows progress and writes the
// log.
type watcher struct {
	app  *app
	mu   sync.Mutex // the engine calls from the goroutine of each run
	log  projector
	live liveText
}

func (a *app) watcher(m *machine.Machine) *watcher {
	return &watcher{app: a, log: projector{}, live: liveText{app: a, machine: m}}
}

func (w *watcher) observe(run string, ev history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.live.event(ev) && plainAnswer(ev)
	if said, ok := ev.Data.(*history.Said); ok && !w.app.json() {
		w.app.outln(w.app.clean(said.Text, w.app.Terminal.Out))
	}
	if !seen && w.app.showsProgress() || w.app.streams && triedModel(ev) {
		if line := progressLine(run, ev); line != "" {
			w.app.errln(w.app.faint(line))
		}
	}
	if entry := w.log.entry(run, ev); entry != nil {
		w.app.log.write(entry)
	}
}

// stream gives what takes the text of models as it comes; nil where nobody wants it.
func (w *watcher) stream() func(run, state, text string) {
	if !w.app.streams {
		return nil
	}
	return func(run, state, text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.live.text(run, state, text)
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
	case *history.ModelCalled:
		return "  " + shorten(modelLine(d), 120)
	case *history.AttemptFailed:
		who := oneLine(d.Tool)
		if d.Model != "" {
			who = "model " + d.Model
		}
		return "  " + who + ": tried in vain: " + shorten(oneLine(d.Problem.Message), 120)
	case *history.Transition:
		return "  " + string(d.Outcome)
	}
	return ""
}

// triedModel says whether an event is a failed try of a model.
func triedModel(ev history.Event) bool {
	d, ok := ev.Data.(*history.AttemptFailed)
	return ok && d.Model != ""
}

// plainAnswer says whether an event is an answer of a model whose text is all that there is to it.
func plainAnswer(ev history.Event) bool {
	d, ok := ev.Data.(*history.ModelCalled)
	return ok && len(d.Calls) == 0 && d.Wrong == "" && d.Problem.None()
}

// modelLine is the answer of a model in one line: what it cost, and what it came to.
func modelLine(d *history.ModelCalled) string {
	facts := []string{strconv.FormatInt(d.MS, 10) + " ms"}
	if d.PromptTokens+d.CompletionTokens > 0 {
		facts = append(facts, fmt.Sprintf("%d + %d tokens", d.PromptTokens, d.CompletionTokens))
	}
	if d.Cost != nil {
		facts = append(facts, "cost "+costText(*d.Cost))
	}
	if d.Cached {
		facts = []string{"from the cache"}
	}
	line := fmt.Sprintf("model %s (%s, %s): ", d.Name, d.Label, strings.Join(facts, ", "))
	switch {
	case !d.Problem.None():
		return line + "no answer: " + oneLine(d.Problem.Message)
	case d.Wrong != "":
		return line + "asked again: " + oneLine(d.Wrong)
	case d.Thought != "":
		line += oneLine(d.Thought) + " "
	}
	var calls []string
	for _, c := range d.Calls {
		calls = append(calls, oneLine(c.Tool+" "+c.Args))
	}
	switch {
	case len(calls) > 0:
		return line + "→ " + strings.Join(calls, ", ")
	case d.Answer != nil:
		return line + "→ " + oneLine(machine.FormatValue(d.Answer))
	}
	return line + "→ " + oneLine(d.Text)
}

// costText writes a cost without the digits that adding up parts of it leaves behind.
func costText(cost float64) string {
	text := strconv.FormatFloat(cost, 'f', 6, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

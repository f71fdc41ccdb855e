package main

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

func (a *app) streamFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&a.streams, "stream", false, "show what models answer on stderr, as it comes")
}

// liveText shows the text of models on stderr as it comes, each exchange below a line that says who speaks.
type liveText struct {
	app     *app
	machine *machine.Machine // of the run at work; nil where it is not known

	showing    bool   // some text is being shown
	run, state string // whose it is
	midLine    bool   // the last character shown was no line break
}

// text shows the next piece.
func (l *liveText) text(run, state, text string) {
	if l.showing && (l.run != run || l.state != state) {
		l.end("")
	}
	if !l.showing {
		l.run, l.state, l.showing = run, state, true
		l.app.errln(l.app.faint(l.speaker()))
	}
	l.write(text)
}

// speaker is the line above an exchange.
func (l *liveText) speaker() string {
	if l.machine != nil {
		if s, ok := l.machine.State(l.state); ok && s.ModelName != "" {
			return l.state + " · " + s.ModelName
		}
	}
	return l.state
}

// event ends what is being shown, and says whether anything was: the run has gone on. Of a try that failed it tells that
// there was to be more.
func (l *liveText) event(ev history.Event) bool {
	if !l.showing {
		return false
	}
	mark := ""
	if triedModel(ev) {
		mark = " … [broken off]"
	}
	l.end(mark)
	return true
}

func (l *liveText) end(mark string) {
	l.showing = false
	if mark != "" || l.midLine {
		l.app.errln(mark)
	}
	l.midLine = false
}

func (l *liveText) write(text string) {
	if text == "" {
		return
	}
	_, _ = io.WriteString(l.app.Stderr, l.app.clean(text, l.app.Terminal.Err)) // nobody can be told when that fails
	l.midLine = !strings.HasSuffix(text, "\n")
}

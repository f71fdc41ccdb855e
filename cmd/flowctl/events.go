package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/store"
)

type eventsFlags struct {
	log    string
	follow bool
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events RUN",
		Short: "List the events of a run",
		Long: `List the events of a run, the only truth about it. --log shows one of the logs instead, as --log FILE of a run writes
it: decision (model calls), execution (tool calls) or state (entries, transitions, variables).`,
		Example: `  flowctl events 01JD
  flowctl events 01JD --log execution
  flowctl events 01JD -f -o jsonl`,
		Args:              args(1, 1, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.events(cmd.Context(), args[0], f) },
	}
	// The flag of this name that all commands have names a file; here --log chooses what is read, and nothing is logged.
	cmd.Flags().StringVar(&f.log, "log", "", "`LOG` to show: "+strings.Join(logNames(), ", "))
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with new events until the run ends")
	return cmd
}

func (a *app) events(ctx context.Context, id string, f eventsFlags) error {
	if f.log != "" && !slices.Contains(logNames(), f.log) {
		return usagef(suggest(f.log, logNames(), "the logs are "+strings.Join(logNames(), ", ")), "there is no log %s", f.log)
	}
	if f.follow && a.flags.Output == outputJSON {
		return usagef("use -o jsonl", "one JSON document cannot be followed")
	}
	p, row, err := a.openRun(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	printer := &eventPrinter{app: a, run: row.ID, kind: logKind(f.log), log: projector{}, whole: []json.RawMessage{}}
	if err := p.eachEvent(ctx, row.ID, f.follow, printer.event); err != nil {
		return err
	}
	if a.flags.Output == outputJSON {
		a.printed = true
		a.printJSON(printer.whole)
	}
	return nil
}

// pollEvents is the time between two looks for new events.
const pollEvents = 200 * time.Millisecond

// eachEvent hands out the events of a run in order, masked; following, until the run has ended or ctx does.
func (p *place) eachEvent(ctx context.Context, run string, follow bool, do func(store.Event) error) error {
	var after int64
	var mask *history.Mask
	for {
		rows, err := p.db.Runs(ctx, store.Filter{ID: run})
		if err != nil || len(rows) == 0 {
			return fmt.Errorf("%w: run %s cannot be read: %w", engine.ErrStore, run, orNotFound(err))
		}
		events, err := p.db.Events(ctx, run, after, 0)
		if err != nil {
			return fmt.Errorf("%w: %w", engine.ErrStore, err)
		}
		mask = mask.AfterRows(events)
		for _, ev := range events {
			if err := do(mask.Row(ev)); err != nil {
				return err
			}
			after = ev.Seq
		}
		if !follow || rows[0].Status.Final() && after >= rows[0].Seq {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvents):
		}
	}
}

func orNotFound(err error) error {
	if err == nil {
		return store.ErrNotFound
	}
	return err
}

// eventPrinter prints events in the form that is wanted.
type eventPrinter struct {
	app   *app
	run   string
	kind  logKind // "": all events as they are
	log   projector
	whole []json.RawMessage // of -o json
}

// eventDocument is the shape of an event for programs. It only grows.
type eventDocument struct {
	Seq   int64           `json:"seq"`
	At    string          `json:"at"`
	Type  string          `json:"type"`
	State string          `json:"state"`
	Visit int64           `json:"visit"`
	Step  int64           `json:"step"`
	Key   string          `json:"key,omitempty"`
	Data  json.RawMessage `json:"data"`
}

func (p *eventPrinter) event(ev store.Event) error {
	if p.kind != "" {
		return p.logged(ev)
	}
	if !p.app.json() {
		p.app.outln(eventLine(ev, eventText(ev)))
		return nil
	}
	data := json.RawMessage(ev.Data)
	if !json.Valid(data) { // a damaged event does not make the whole list unreadable
		data, _ = json.Marshal(string(ev.Data))
	}
	return p.emit(eventDocument{Seq: ev.Seq, At: stamp(ev.At), Type: ev.Type, State: ev.State, Visit: ev.Visit,
		Step: ev.Step, Key: ev.Key, Data: data})
}

// logged prints what a log says of an event, if it is of the wanted one.
func (p *eventPrinter) logged(row store.Event) error {
	ev, err := history.Decode(row)
	if err != nil {
		return err
	}
	e := p.log.entry(p.run, ev)
	if e == nil || e.kind != p.kind {
		return nil
	}
	if !p.app.json() {
		text := string(e.data)
		if called, ok := ev.Data.(*history.ModelCalled); ok {
			text = modelLine(called)
		}
		p.app.outln(eventLine(row, text))
		return nil
	}
	var caught entryCatcher
	e.emit(zerolog.New(&caught))
	for _, line := range caught.lines {
		if err := p.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func (p *eventPrinter) emit(doc any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return err
	}
	if p.app.flags.Output == outputJSON {
		p.whole = append(p.whole, json.RawMessage(strings.TrimSpace(b.String())))
		return nil
	}
	_, err := io.WriteString(p.app.Stdout, b.String())
	return err
}

// eventText is what an event says, for people: its data as it is, but for those of models, which begin with what only a
// program wants.
func eventText(row store.Event) string {
	ev, err := history.Decode(row)
	if err != nil {
		return string(row.Data)
	}
	switch d := ev.Data.(type) {
	case *history.ModelCalled:
		return modelLine(d)
	case *history.AttemptFailed:
		if d.Model != "" {
			return fmt.Sprintf("model %s, try %d: %s: %s", d.Model, d.Attempt, d.Problem.Kind, d.Problem.Message)
		}
	}
	return string(row.Data)
}

// eventColumns is how much of an event's data one line shows.
const eventColumns = 110

// eventLine is an event as one line for people.
func eventLine(ev store.Event, data string) string {
	place := "-" // the start of a run is in no state
	if ev.State != "" {
		place = fmt.Sprintf("%s#%d", ev.State, ev.Visit)
	}
	line := fmt.Sprintf("%4d  %s  %-20s  %-16s  %-8s  %s", ev.Seq, stamp(ev.At), place, ev.Type,
		ev.Key, shorten(oneLine(data), eventColumns))
	return strings.TrimRight(line, " ")
}

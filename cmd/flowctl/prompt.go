package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// lineReader reads lines that a person types, without keeping the program from ending while it waits for one.
type lineReader struct{ in *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{in: bufio.NewReader(r)} }

// read gives the next line without its end. io.EOF: there is none; the context's error: it ended first.
func (l *lineReader) read(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := l.in.ReadString('\n')
		if text != "" && errors.Is(err, io.EOF) {
			err = nil
		}
		got <- line{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case in := <-got:
		return in.text, in.err
	}
}

// asksInline says whether questions are asked at the terminal.
func (a *app) asksInline() bool { return a.Terminal.In && a.Terminal.Err && !a.json() }

// prompt asks one question at the terminal until an answer fits. It is false when there is nobody to answer any more.
func (d *drive) prompt(ctx context.Context, q history.Question) (bool, error) {
	d.app.showQuestion(q)
	for {
		r, err := d.app.readReply(ctx, q)
		if err != nil {
			d.app.errln("")
			return false, nil // end of input or an interrupt: the run goes on waiting
		}
		if r == nil {
			continue
		}
		r.Ask = q.ID
		err = d.eng.Answer(ctx, d.run, *r)
		var unfit *engine.UsageError
		if errors.As(err, &unfit) {
			d.app.errln(d.app.clean(unfit.Error(), true))
			continue
		}
		if errors.Is(err, engine.ErrNotPending) {
			d.app.errln("the question is no longer open")
		}
		return taken(err)
	}
}

// showQuestion prints a question and what can be answered.
func (a *app) showQuestion(q history.Question) {
	a.errln(a.clean(q.Question, true))
	for i, c := range q.Choices {
		line := fmt.Sprintf("  %d  %s", i+1, c.Name)
		if c.Label != "" && c.Label != c.Name {
			line += ": " + a.clean(c.Label, true)
		}
		a.errln(line)
	}
	if len(q.Choices) == 0 && asksForObject(q.Schema) {
		a.errln("Answer with a JSON object: " + strings.Join(fieldsOf(q.Schema), ", "))
	}
}

// readReply reads one answer. It is nil where the line says nothing that could be one.
func (a *app) readReply(ctx context.Context, q history.Question) (*engine.Reply, error) {
	switch q.Kind {
	case history.KindConfirm, history.KindApproval:
		line, err := a.promptLine(ctx, "[y/N] ")
		if err != nil {
			return nil, err
		}
		return readYesNo(line), nil
	case history.KindInDoubt:
		line, err := a.promptLine(ctx, "[done/not-done/give-up] ")
		if err != nil {
			return nil, err
		}
		return a.readVerdict(line), nil
	}
	line, err := a.promptLine(ctx, "> ")
	if err != nil {
		return nil, err
	}
	return &engine.Reply{Text: line}, nil
}

func (a *app) promptLine(ctx context.Context, mark string) (string, error) {
	_, _ = fmt.Fprint(a.Stderr, mark)
	return a.lines.read(ctx)
}

// readYesNo reads yes or no; what stands beside a no is its reason. An empty line is a no.
func readYesNo(line string) *engine.Reply {
	if strings.TrimSpace(line) == "" {
		no := false
		return &engine.Reply{Yes: &no}
	}
	return &engine.Reply{Text: line}
}

func (a *app) readVerdict(line string) *engine.Reply {
	switch strings.ReplaceAll(strings.TrimSpace(line), "-", "_") {
	case string(history.Done):
		return &engine.Reply{Verdict: history.Done}
	case string(history.NotDone):
		return &engine.Reply{Verdict: history.NotDone}
	case string(history.GiveUp):
		return &engine.Reply{Verdict: history.GiveUp}
	}
	a.errln("answer done (it happened), not-done (run it again) or give-up (nobody knows)")
	return nil
}

// asksForObject says whether a schema wants an object.
func asksForObject(schema machine.Value) bool {
	object, _ := schema.(machine.Values)
	return object["type"] == "object"
}

// fieldsOf lists the fields of an object's schema, such as "name (string, required)", by name.
func fieldsOf(schema machine.Value) []string {
	object, _ := schema.(machine.Values)
	properties, _ := object["properties"].(machine.Values)
	required, _ := object["required"].([]machine.Value)
	var fields []string
	for _, name := range machine.SortedNames(properties) {
		field, _ := properties[name].(machine.Values)
		kind := machine.FormatValue(field["type"])
		if kind == "" {
			kind = "any"
		}
		if slices.Contains(required, machine.Value(name)) {
			kind += ", required"
		}
		fields = append(fields, name+" ("+kind+")")
	}
	return fields
}

package engine

import (
	"context"
	"errors"
	"time"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Report is the document of a run, as `-o json` prints it. Its shape only grows.
type Report struct {
	Run      string         `json:"run"`
	Flow     string         `json:"flow"`
	FlowHash string         `json:"flow_hash"`
	Status   store.Status   `json:"status"`
	State    string         `json:"state"`
	Seq      int64          `json:"seq"`
	Path     []string       `json:"path"`          // every step's state
	Vars     machine.Values `json:"vars,omitzero"` // those that have a value
	Said     []SaidLine     `json:"said,omitzero"` // everything said in the run, in order
	Output   machine.Value  `json:"output"`
	Waiting  []WaitingFor   `json:"waiting"`
	Usage    store.Usage    `json:"usage"`
	Error    *ReportError   `json:"error"`
}

// SaidLine is something that was said to the human.
type SaidLine struct {
	State string `json:"state"`
	Text  string `json:"text"`
}

// WaitingFor is a pending question.
type WaitingFor struct {
	ID       string               `json:"id"`
	Run      string               `json:"run"`
	State    string               `json:"state"`
	Kind     history.QuestionKind `json:"kind"`
	Question string               `json:"question"`
	Schema   machine.Value        `json:"schema"`
	Choices  []history.Choice     `json:"choices,omitempty"`
	Tool     string               `json:"tool,omitempty"`
	Args     machine.Value        `json:"args,omitempty"`
	Due      *time.Time           `json:"due"`
}

// ReportError says why a run stopped or failed.
type ReportError struct {
	Code    history.StopCode `json:"code"`
	Message string           `json:"message"`
	State   string           `json:"state"`
	Step    int64            `json:"step"`
	Hint    string           `json:"hint"`
}

// History reads the whole history of a run.
func (e *Engine) History(ctx context.Context, run string) ([]history.Event, error) {
	rows, err := e.cfg.Store.Events(ctx, run, 0, 0)
	if err != nil {
		return nil, readError(ctx, err)
	}
	return history.DecodeAll(rows, 0)
}

// Report gives the document of a run, folded from its first event. Of a run whose history cannot be read it gives what
// its row says, with the damage as its error.
func (e *Engine) Report(ctx context.Context, run string) (Report, error) {
	row, err := e.row(ctx, run)
	if err != nil {
		return Report{}, err
	}
	events, err := e.History(ctx, run)
	var damaged *history.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return Report{}, err
	}
	var snap *history.Snapshot
	if err == nil {
		snap, err = history.Fold(history.New(run), events)
	}
	if err != nil {
		h := corrupt(run, err)
		snap = rowSnapshot(row)
		snap.Stop = &h.stop
		return NewReport(snap, nil), nil
	}
	return NewReport(snap, events), nil
}

// NewReport makes the document of a snapshot and the events that it was folded from. It is masked: what secret variables
// hold is not in it.
func NewReport(s *history.Snapshot, events []history.Event) Report {
	r := Report{Run: s.Run.ID, Flow: s.Run.Flow, FlowHash: s.Run.FlowHash, Status: s.Status, State: s.Now.State, Seq: s.Seq,
		Path: s.Now.Path, Vars: s.Mask.Vars(s.Vars), Said: []SaidLine{}, Waiting: []WaitingFor{}, Usage: s.Spent.Usage, Error: reportError(s)}
	if r.Path == nil {
		r.Path = []string{}
	}
	if r.Vars == nil {
		r.Vars = machine.Values{}
	}
	if s.Finish != nil {
		r.Output = s.Mask.Value(s.Finish.Output)
	}
	for _, ev := range events {
		if d, ok := ev.Data.(*history.Said); ok {
			r.Said = append(r.Said, SaidLine{State: ev.State, Text: s.Mask.Text(d.Text)})
		}
	}
	for _, q := range s.Pending {
		q = s.Mask.Question(q)
		r.Waiting = append(r.Waiting, WaitingFor{ID: q.ID, Run: s.Run.ID, State: q.State, Kind: q.Kind, Question: q.Question,
			Schema: q.Schema, Choices: q.Choices, Tool: q.Tool, Args: q.Args, Due: q.Due})
	}
	return r
}

func reportError(s *history.Snapshot) *ReportError {
	switch {
	case s.Stop != nil:
		return &ReportError{Code: s.Stop.Code, Message: s.Mask.Text(s.Stop.Message), State: s.Now.State, Step: s.Now.Step,
			Hint: s.Mask.Text(s.Stop.Hint)}
	case s.Status == store.Failed:
		msg := machine.FormatValue(s.Finish.Output)
		if msg == "" {
			msg = "the flow ended in state " + s.Now.State
			if reason := s.Last.Error.Message; reason != "" {
				msg += ": " + reason
			}
		}
		return &ReportError{Code: history.CodeFailed, Message: s.Mask.Text(msg), State: s.Now.State, Step: s.Now.Step}
	}
	return nil
}

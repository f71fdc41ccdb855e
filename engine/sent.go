package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/view"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Sent is a request that a run has made, as it was sent. A summary is told of like any other answer.
type Sent struct {
	Event   history.Event
	Called  *history.ModelCalled
	Request model.Request
}

// asCalled gives what a model was called for, nil where an event is of something else.
func asCalled(d history.Data) *history.ModelCalled {
	switch d := d.(type) {
	case *history.ModelCalled:
		return d
	case *history.Summarised:
		return d.Called()
	}
	return nil
}

// Sent puts a request together again from what is stored of it; seq is that of its model_called or summarised event, 0 for
// the newest. A seq of something else is a *UsageError that names the nearest ones. What is missing from the store is a
// *history.DamagedError.
func (e *Engine) Sent(ctx context.Context, run string, seq int64) (Sent, error) {
	if _, err := e.row(ctx, run); err != nil {
		return Sent{}, err
	}
	rows, err := e.cfg.Store.Events(ctx, run, 0, 0)
	if err != nil {
		return Sent{}, readError(ctx, err)
	}
	evs, err := history.DecodeAll(rows, 0)
	if err != nil {
		return Sent{}, err
	}
	at, err := calledAt(run, evs, seq)
	if err != nil {
		return Sent{}, err
	}
	out := Sent{Event: evs[at], Called: asCalled(evs[at].Data)}
	before, err := history.Fold(history.New(run), evs[:at])
	if err != nil {
		return Sent{}, err
	}
	r := recorded{eng: e, ctx: ctx, run: run, seq: out.Event.Seq, mask: (*history.Mask)(nil).AfterRows(rows)}
	out.Request, err = r.request(out.Called.Request, before, answersBefore(evs[:at], out.Event))
	if err != nil {
		return Sent{}, err
	}
	out.Request.Origin = model.Origin{Run: run, State: out.Event.State, Visit: out.Event.Visit, Turn: out.Called.Turn}
	if out.Called.Request.Protocol == history.ProtocolJSON {
		out.Request = (&model.JSONProtocol{}).Sent(out.Request)
	}
	out.Request.Messages, out.Request.HowTo = out.Request.Native(), ""
	return out, nil
}

// calledAt finds the event of a call.
func calledAt(run string, evs []history.Event, seq int64) (int, error) {
	var calls []int64
	newest := -1
	for i, ev := range evs {
		if asCalled(ev.Data) == nil {
			continue
		}
		if ev.Seq == seq {
			return i, nil
		}
		calls, newest = append(calls, ev.Seq), i
	}
	switch {
	case newest < 0:
		return 0, usagef("see: flowctl events "+run, "no model has answered in run %s", run)
	case seq == 0:
		return newest, nil
	}
	slices.SortStableFunc(calls, func(a, b int64) int { return int(abs(a-seq) - abs(b-seq)) })
	var near []string
	for _, n := range calls[:min(3, len(calls))] {
		near = append(near, fmt.Sprint(n))
	}
	return 0, usagef("the nearest are: "+strings.Join(near, ", "), "event %d of run %s is no model call", seq, run)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// answersBefore gives the answers of the same exchange before the one of an event, which stand behind its messages.
func answersBefore(evs []history.Event, of history.Event) []history.ModelCalled {
	if _, summary := of.Data.(*history.Summarised); summary {
		return nil
	}
	exchange, _, _ := strings.Cut(of.Key, "/")
	var out []history.ModelCalled
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ModelCalled); ok && belongs(ev.Key, exchange) {
			out = append(out, *d)
		}
	}
	return out
}

// recorded reads what is stored of a request.
type recorded struct {
	eng *Engine
	ctx context.Context
	run string
	seq int64

	mask *history.Mask
}

func (r recorded) request(ref history.Request, before *history.Snapshot, again []history.ModelCalled) (model.Request, error) {
	parts := view.Parts{Talk: slices.Clone(view.Pick(before.Talk.Messages, ref.Messages)), Again: again, Flat: ref.Tools == "", GoOn: ref.GoOn}
	req := model.Request{NoSchema: ref.NoSchema}
	var answer string
	err := errors.Join(r.text(ref.System, &parts.System), r.text(ref.Task, &parts.Task), r.text(ref.Answer, &answer), r.text(ref.HowTo, &req.HowTo),
		r.text(ref.Summary, &parts.Summary), r.list(ref.Examples, &parts.Examples), r.list(ref.Tools, &req.Tools))
	for _, c := range ref.Cut {
		for i := range parts.Talk {
			if parts.Talk[i].N == c.N {
				parts.Talk[i].Content = history.Content{}
				err = errors.Join(err, r.list(c.Hash, &parts.Talk[i].Content))
			}
		}
	}
	if err != nil {
		return req, err
	}
	if answer != "" {
		req.Answer = json.RawMessage(answer)
	}
	req.Messages = r.mask.Request(view.Messages(parts))
	return req, nil
}

func (r recorded) text(hash string, into *string) error {
	if hash == "" {
		return nil
	}
	data, err := r.eng.cfg.Store.Blob(r.ctx, r.run, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &history.DamagedError{Seq: r.seq, Type: string(history.TypeModelCalled), Err: fmt.Errorf("its text %s is missing", hash)}
	case err != nil:
		return readError(r.ctx, err)
	}
	*into = string(data)
	return nil
}

func (r recorded) list(hash string, into any) error {
	var text string
	if err := r.text(hash, &text); err != nil || text == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return &history.DamagedError{Seq: r.seq, Type: string(history.TypeModelCalled), Err: err}
	}
	return nil
}

// leftovers stops a run that is about to end while scripts that stood for its models have answers that nobody asked for:
// then the run was not the one that they were written for.
func (st *Step) leftovers() error {
	if st.s.eng.cfg.Models == nil {
		return nil
	}
	var asked map[string][]model.Origin
	var left []string
	for _, spec := range st.s.m.Models {
		if !st.s.asked(spec.Name) {
			continue
		}
		open, err := st.s.eng.cfg.Models.Open(st.s.m, model.Use{Name: spec.Name, Script: st.s.head.Run.Scripts[spec.Name]})
		if err != nil || open.Leftovers == nil {
			continue // a model that cannot be opened has no answers left
		}
		if asked == nil {
			if asked, err = st.origins(); err != nil {
				return st.failed(err)
			}
		}
		left = append(left, open.Leftovers(asked[spec.Name])...)
	}
	if len(left) == 0 {
		return nil
	}
	return st.kill(stopped(history.CodeOutage, "take them out of the script and go on with: flowctl resume "+st.s.id+"; where the run went another way says: flowctl events "+st.s.id,
		"the run is at its end, and its script has answers left: %s", strings.Join(left, "; ")))
}

// asked says whether some state asks a model. One that only stands in for another is never asked by its own name.
func (s *session) asked(name string) bool {
	return slices.ContainsFunc(s.m.States, func(st machine.Item[*machine.State]) bool { return st.Value.ModelName == name })
}

// origins gives the requests that the run has made, by model.
func (st *Step) origins() (map[string][]model.Origin, error) {
	rows, err := st.s.eng.cfg.Store.Events(context.Background(), st.s.id, 0, 0)
	if err != nil {
		return nil, err
	}
	evs, err := history.DecodeAll(rows, 0)
	if err != nil {
		return nil, err
	}
	asked := map[string][]model.Origin{}
	add := func(name string, ev history.Event, turn, attempt int64) {
		asked[name] = append(asked[name], model.Origin{Run: st.s.id, State: ev.State, Visit: ev.Visit, Turn: turn, Attempt: attempt})
	}
	for _, ev := range evs {
		if called := asCalled(ev.Data); called != nil {
			add(called.Name, ev, called.Turn, 0)
		}
		if d, ok := ev.Data.(*history.AttemptFailed); ok && d.Model != "" {
			add(d.Model, ev, d.Turn, d.Attempt)
		}
	}
	return asked, nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// StartRequest is a run to be made.
type StartRequest struct {
	Machine *machine.Machine // of the flow, fully checked
	Inputs  machine.Values
	ID      string // "" for a new one
	Owner   string // who may see the run, "" for everybody

	// Scripts are files whose answers stand for models, by the name of the model: for the whole run, whoever goes on with it.
	Scripts map[string]string
}

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Start makes a run and enters its first state; Advance then works on it. Until Advance the run belongs to this engine,
// and Close gives it back.
//
// An id that exists with the same flow and inputs is no error: that run's id is given, with exists true. With others it
// is a *UsageError, as are inputs that the flow does not take. ErrBusy: another call is starting a run of that id. A
// store that fails is ErrStore.
func (e *Engine) Start(ctx context.Context, req StartRequest) (id string, exists bool, err error) {
	m := req.Machine
	if err := e.noSecrets(m, "", req.ID); err != nil {
		return "", false, err
	}
	for _, name := range slices.Sorted(maps.Keys(req.Scripts)) {
		if err := e.noSecrets(nil, req.Scripts[name], ""); err != nil {
			return "", false, err
		}
	}
	inputs, err := checkInputs(m, req.Inputs)
	if err != nil {
		return "", false, err
	}
	if id = req.ID; id == "" {
		id = e.cfg.NewID()
	} else if exists, err := e.startedBefore(ctx, id, StartRequest{Machine: m, Inputs: inputs, Scripts: req.Scripts}); exists || err != nil {
		return id, exists, err
	}
	if err := e.prepare(ctx, m); err != nil {
		return "", false, err
	}
	err = e.create(ctx, id, req, inputs)
	if errors.Is(err, store.ErrExists) {
		exists, err = e.startedBefore(ctx, id, StartRequest{Machine: m, Inputs: inputs, Scripts: req.Scripts})
		if err == nil && !exists {
			err = fmt.Errorf("%w: %s is being started", ErrBusy, id)
		}
	}
	return id, exists, err
}

// noSecrets refuses what is stored as it stands, and would therefore show the value of a secret. m may be nil.
func (e *Engine) noSecrets(m *machine.Machine, dir, id string) error {
	source := ""
	if m != nil {
		source, dir = string(m.Source), m.Dir+"\n"+dir
	}
	for _, place := range []struct{ what, text string }{
		{"the flow file", source}, {"a path", dir}, {"the run's id", id},
	} {
		if e.cfg.Secrets.Text(place.text) != place.text {
			return usagef("secrets come from the environment only; take it out and change it, since it was written down",
				"%s holds the value of a secret", place.what)
		}
	}
	return nil
}

// startedBefore says whether there is a run of an id; one of another flow or with other inputs is an error.
func (e *Engine) startedBefore(ctx context.Context, id string, req StartRequest) (bool, error) {
	if !runIDPattern.MatchString(id) {
		return false, usagef("use 1 to 100 letters, digits, dots, dashes and underscores, a letter or digit first",
			"%q cannot be a run's id", id)
	}
	row, err := e.row(ctx, id)
	if errors.Is(err, ErrUnknownRun) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, e.sameRun(ctx, row, req)
}

// prepare makes what the flow's tools need before the first state, and keeps the definition.
func (e *Engine) prepare(ctx context.Context, m *machine.Machine) error {
	for _, name := range machine.SortedNames(e.cfg.Tools) {
		if p, ok := e.cfg.Tools[name].(tool.Preparer); ok {
			if err := p.Prepare(ctx, m); err != nil {
				return err
			}
		}
	}
	if err := e.cfg.Store.PutFlow(ctx, m.Hash, m.Source); err != nil {
		return readError(ctx, err)
	}
	e.remember(m.Hash, m.Dir, m)
	return nil
}

// create commits the first events of a run: its start and the entry of its first state. Errors are store.ErrExists, that
// of ctx, and the classes of Start.
func (e *Engine) create(ctx context.Context, id string, req StartRequest, inputs machine.Values) error {
	m := req.Machine
	s := e.newSession(id)
	s.epoch, s.head = 1, history.New(id)
	s.owner = req.Owner
	s.head.Run.Scripts = req.Scripts
	s.m = m
	vars := machine.Values{}
	for _, v := range m.Vars {
		if v.Value.Default != nil {
			vars[v.Name] = v.Value.Default
		}
	}
	if !e.keep(s) {
		return store.ErrExists
	}
	e.beatAgain()
	start := history.Event{Data: &history.RunStarted{Flow: m.Name, FlowHash: m.Hash, Dir: m.Dir, Inputs: inputs, Vars: vars, Message: m.Message,
		Scripts: req.Scripts, Secrets: m.Secrets()}}
	err := context.Cause(ctx)
	if err == nil {
		_, err = e.commitSurely(ctx, s, change{events: []history.Event{start, s.entry(m.Start, false)}})
	}
	if err != nil {
		e.forgetSession(s)
		return err
	}
	if h := s.setMachine(m); h != nil {
		_, err = e.commitSurely(ctx, s, s.stopChange(h))
	}
	if err != nil || s.released {
		e.drop(s)
		return err
	}
	e.park(s)
	return nil
}

// sameRun says whether a run was started from this flow and these inputs, and goes by the scripts that are asked for.
func (e *Engine) sameRun(ctx context.Context, row store.Run, req StartRequest) error {
	first, err := e.cfg.Store.Events(ctx, row.ID, 0, 1)
	if err != nil {
		return readError(ctx, err)
	}
	evs, err := history.DecodeAll(first, 0)
	if err != nil || len(evs) == 0 {
		return usagef("choose another id", "run %s exists, and its first event cannot be read", row.ID)
	}
	started, ok := evs[0].Data.(*history.RunStarted)
	if !ok || started.FlowHash != req.Machine.Hash {
		return usagef("choose another id, or go on with it: flowctl resume "+row.ID,
			"run %s exists, of another flow or another version of it", row.ID)
	}
	mine, err := e.stored(req.Inputs)
	if err != nil {
		return err
	}
	if !machine.EqualValues(mine, machine.Value(started.Inputs)) {
		return usagef("choose another id, or go on with it: flowctl resume "+row.ID, "run %s exists, with other inputs", row.ID)
	}
	if len(req.Scripts) > 0 && !maps.Equal(req.Scripts, started.Scripts) {
		return usagef("choose another id, or go on with it as it was started: flowctl resume "+row.ID,
			"run %s exists, and its models are not played by these scripts", row.ID)
	}
	return nil
}

// stored gives a value as it would be stored.
func (e *Engine) stored(v machine.Value) (machine.Value, error) {
	data, err := machine.EncodeValue(v)
	if err != nil {
		return nil, err
	}
	if redact := e.redact(); redact != nil {
		data = redact(data)
	}
	return machine.DecodeValue(data)
}

// checkInputs fills defaults and checks inputs against their schemas. All that is wrong is said at once.
func checkInputs(m *machine.Machine, given machine.Values) (machine.Values, error) {
	inputs := machine.Values{}
	var wrong []string
	for _, item := range m.Inputs {
		v, ok := given[item.Name]
		switch {
		case !ok && item.Value.HasDefault:
			if item.Value.Default != nil {
				inputs[item.Name] = item.Value.Default
			}
			continue
		case !ok:
			wrong = append(wrong, missingInput(item.Name, item.Value))
			continue
		}
		v, err := machine.Normalize(v)
		if err == nil {
			err = item.Value.Check(v)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("input %s: %v", item.Name, err))
			continue
		}
		inputs[item.Name] = v
	}
	for _, name := range machine.SortedNames(given) {
		if _, ok := m.Inputs.Get(name); !ok {
			wrong = append(wrong, noInput(m, name))
		}
	}
	if len(wrong) > 0 {
		return nil, usagef("", "%s", strings.Join(wrong, "; "))
	}
	return inputs, nil
}

func noInput(m *machine.Machine, name string) string {
	msg := fmt.Sprintf("flow %s has no input %s", m.Name, name)
	if len(m.Inputs) == 0 {
		return msg + ", it takes none"
	}
	return msg + " (it has: " + strings.Join(m.Inputs.Names(), ", ") + ")"
}

func missingInput(name string, v machine.Variable) string {
	msg := "input " + name + " is missing"
	if v.Schema != nil {
		if d := v.Schema.Info().Description; d != "" {
			msg += " (" + d + ")"
		}
	}
	return msg + "; give it with -i " + name + "=VALUE"
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/sqlite"
)

// place is an open database and, once work needs it, an engine on it. The caller closes it.
type place struct {
	app   *app
	db    *sqlite.DB
	kinds map[string]tool.Kind
	eng   *engine.Engine
	cat   flows.Catalog
}

// openExisting opens the database of a command that needs one that is there. It is not made: a mistyped path would look
// like a database without runs.
func (a *app) openExisting(ctx context.Context) (*place, error) {
	if _, err := os.Stat(a.path(a.flags.DB)); errors.Is(err, os.ErrNotExist) {
		return nil, usagef("start a run with: flowctl run FLOW, or name the right one with --db",
			"there is no database %s", a.flags.DB)
	}
	return a.open(ctx)
}

// open opens the database and makes it when it is not there.
func (a *app) open(ctx context.Context) (*place, error) {
	db, err := sqlite.Open(ctx, a.path(a.flags.DB), sqlite.Options{Durability: sqlite.Durability(a.flags.Durability), Now: a.Now})
	if err != nil {
		return nil, err
	}
	p := &place{app: a, db: db, kinds: a.toolKinds()}
	p.cat = a.catalog(p.kinds)
	return p, nil
}

// toolKinds makes the kinds of tools with this call's clock.
func (a *app) toolKinds() map[string]tool.Kind {
	kinds := a.Tools(toolSetup{AllowCommands: a.allowCommands, Log: zerolog.New(lateLog{a})})
	if b, ok := kinds["builtin"].(*builtin.Kind); ok {
		b.Now = a.Now
	}
	return kinds
}

// lateLog is the log of the call, which is opened after the tools are made.
type lateLog struct{ app *app }

// Write drops lines while no log is wanted.
func (l lateLog) Write(line []byte) (int, error) {
	if l.app.log == nil {
		return len(line), nil
	}
	return l.app.log.clean.Write(line)
}

// allowFlag lets flows start programs.
func (a *app) allowFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&a.allowCommands, "allow-commands", false, "let the flow's tools start programs on this machine")
}

// checkTools says before a run is made what would stop it at once: a tool that cannot be made here.
func (p *place) checkTools(m *machine.Machine, env environment) error {
	for _, spec := range m.Tools {
		kind, ok := p.kinds[spec.Value.Kind]
		if !ok {
			continue // which the compiler has refused
		}
		if _, err := kind.New(spec.Value, tool.Env{Machine: m, Dir: m.Dir, Getenv: env.get}); err != nil {
			return usagef("", "tool %s: %v", spec.Name, err)
		}
	}
	return nil
}

// catalog is what flows are made of, for the compiler: the same handlers and tools that the engine gets.
func (a *app) catalog(kinds map[string]tool.Kind) flows.Catalog {
	cat := flows.Catalog{
		Handlers:   make(map[string]func() machine.HandlerSpec, len(a.Handlers)),
		ToolKinds:  make(map[string]machine.ToolKind, len(kinds)),
		ModelKinds: modelKinds(),
	}
	for name, h := range a.Handlers {
		cat.Handlers[name] = h.Spec
	}
	for name, k := range kinds {
		cat.ToolKinds[name] = k.Spec()
	}
	return cat
}

// workSetup is what the engine must know of the runs that it shall work on.
type workSetup struct {
	Env        environment
	Machine    *machine.Machine // nil: nothing is worked on
	ApproveAll bool
}

// start makes the engine. One that is there already is closed.
func (p *place) start(s workSetup) error {
	if p.eng != nil {
		p.eng.Close()
	}
	secrets, err := secretsOf(s.Machine, s.Env)
	if err != nil {
		return err
	}
	if err := p.app.openLog(secrets); err != nil {
		return err
	}
	watch := p.app.watcher(s.Machine)
	p.eng, err = engine.New(engine.Config{
		Store: p.app.around(p.db),
		Compile: func(source []byte, dir string) (*machine.Machine, error) {
			return flows.CompileStored(source, dir, p.cat)
		},
		Handlers:   p.app.Handlers,
		Tools:      p.kinds,
		Models:     p.app.models(s.Env, secrets),
		Stream:     watch.stream(),
		ApproveAll: s.ApproveAll,
		Secrets:    secrets,
		Getenv:     s.Env.get,
		Observe:    watch.observe,
		Log:        p.app.log.engineLog(),
		Now:        p.app.Now,
		Sleep:      p.app.Sleep,
		NewID:      p.app.NewID,
	})
	return err
}

// around gives the store as the engine is to see it.
func (a *app) around(db store.Store) store.Store {
	if a.Around == nil {
		return db
	}
	return a.Around(db)
}

// look makes an engine that only reads.
func (p *place) look() error { return p.start(workSetup{Env: environment{getenv: p.app.Getenv}}) }

// startFor makes the engine for one stored run: its flow says which secrets there are.
func (p *place) startFor(ctx context.Context, row store.Run) error {
	env, err := p.app.environment(row.Dir)
	if err != nil {
		return err
	}
	m, err := p.definition(ctx, row)
	if err != nil {
		return err
	}
	return p.start(workSetup{Env: env, Machine: m})
}

// definition compiles the flow that a run goes by. It is nil where it cannot be compiled: the engine then says why, in the
// run's own document.
func (p *place) definition(ctx context.Context, row store.Run) (*machine.Machine, error) {
	source, err := p.db.Blob(ctx, "", row.FlowHash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engine.ErrStore, err)
	}
	m, _ := flows.CompileStored(source, row.Dir, p.cat)
	return m, nil
}

// close gives back the runs that are still held and closes everything. Errors of a database that is not needed any more
// are told, for they may say that the disk fails.
func (p *place) close() {
	if p.eng != nil {
		p.eng.Close()
	}
	for _, name := range machine.SortedNames(p.kinds) {
		if err := p.kinds[name].Close(); err != nil {
			p.app.errln("flowctl: tools of kind " + name + ": " + err.Error())
		}
	}
	if err := p.db.Close(); err != nil {
		p.app.errln("flowctl: " + err.Error())
	}
}

// checked is a flow file that was read and checked.
type checked struct {
	file     string // as it is shown
	source   []byte
	machine  *machine.Machine // nil where a finding is an error
	findings []flows.Finding
}

// checkFlow reads and checks a flow file, and the scripts that it names; a folder stands for the flow.yaml in it.
func (a *app) checkFlow(name string, cat flows.Catalog) (checked, error) {
	if info, err := os.Stat(a.path(name)); err == nil && info.IsDir() {
		name = filepath.Join(name, "flow.yaml")
	}
	source, err := os.ReadFile(a.path(name))
	if err != nil {
		return checked{}, usagef("write one with: flowctl init", "the flow %s cannot be read: %v", name, reason(err))
	}
	m, found := flows.Check(source, flows.Place{File: name, Dir: filepath.Dir(a.path(name))}, readingScripts(cat))
	return checked{file: name, source: source, machine: m, findings: found}, nil
}

// readFlow reads a flow file that shall run. Errors in it are a *flows.Error with all findings.
func (a *app) readFlow(name string, cat flows.Catalog) (*machine.Machine, error) {
	c, err := a.checkFlow(name, cat)
	if err != nil {
		return nil, err
	}
	if c.machine == nil {
		return nil, &flows.Error{Findings: c.findings}
	}
	return c.machine, nil
}

// reason is what the system said of a file, without the path, which the message names already.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

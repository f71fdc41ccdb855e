package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/flows/machine"
	"flowctl/flows/match"
	"flowctl/store"
)

type toolsCallFlags struct {
	args, namespace string
	yes             bool
	given           func(flag string) bool // whether a flag stands in the command line, be it empty
}

func (a *app) toolsCallCommand() *cobra.Command {
	var f toolsCallFlags
	cmd := &cobra.Command{
		Use:   "call FLOW TOOL",
		Short: "Try one tool of a flow, outside of a run",
		Long: `Call one tool of a flow as a model would, outside of a run: the arguments are read, coerced and checked, the call runs
within its timeout and is tried again where the tool says so, and the result is printed as a model would read it.
Databases that are missing are made, as at the start of a run. Nothing is recorded; what the call does is done.

A tool that changes something, or that needs approval, asks first on a terminal; elsewhere it needs --yes. A tool for the
long-term memory needs --namespace, since a run's own is made of its variables.

Exit code 0 when the result is ok, 1 when the call was refused or failed, when the tool is out of order, and when nobody
knows what happened. -o json prints {tool, args, effect, status, value, error, ms, attempts}, with the arguments as they
were checked; ms is the time of the last attempt.`,
		Example: `  flowctl tools call flow.yaml list_orders
  flowctl tools call flow.yaml lookup_order --args '{"order_id": "A1001"}'
  flowctl tools call flow.yaml refund_order --args @refund.json --yes -o json
  flowctl tools call flow.yaml recall --args '{"query": "shoes"}' --namespace customer/ann`,
		Args:              args(2, 2, "FLOW or TOOL"),
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags().Changed
			return a.toolsCall(cmd.Context(), args[0], args[1], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.args, "args", "", "the arguments as a `JSON` object; @FILE reads a file, - standard input")
	flags.BoolVar(&f.yes, "yes", false, "call the tool without asking")
	flags.StringVar(&f.namespace, "namespace", "", "`NAME` of the namespace that a tool for the long-term memory works in")
	a.allowFlag(flags)
	return cmd
}

// callDocument is what a call tells programs. Its shape only grows.
type callDocument struct {
	Tool     string           `json:"tool"`
	Args     json.RawMessage  `json:"args"` // as checked; as given where the check refused them
	Effect   machine.Effect   `json:"effect"`
	Status   tool.Status      `json:"status"`
	Value    json.RawMessage  `json:"value"`
	Error    *machine.Problem `json:"error"`
	MS       int64            `json:"ms"`       // of the last attempt
	Attempts int              `json:"attempts"` // 0: the tool was never called
}

// toolsCall tries a tool and prints its result.
func (a *app) toolsCall(ctx context.Context, flow, name string, f toolsCallFlags) error {
	kinds := a.toolKinds()
	defer a.closeKinds(kinds)
	m, err := a.readFlow(flow, a.catalog(kinds))
	if err != nil {
		return err
	}
	spec, ok := m.Tools.Get(name)
	if !ok {
		return usagef(suggest(name, m.Tools.Names(), "list them with: flowctl tools ls "+shellQuote(flow)),
			"the flow %s has no tool %q", m.Name, name)
	}
	given, err := a.readArgs(f, spec)
	if err != nil {
		return err
	}
	env, secrets, err := a.toolEnv(m)
	if err != nil {
		return err
	}
	t := trial{app: a, machine: m, kind: kinds[spec.Kind], secrets: secrets}
	made, err := t.kind.New(spec, env)
	if err != nil {
		return usagef("", "tool %s: %s", name, secrets.Text(err.Error()))
	}
	if t.memory, err = a.trialMemory(ctx, m, spec, f); err != nil {
		return err
	}
	defer t.memory.close()
	set, err := tool.NewSet(map[string]tool.Tool{name: made}, []string{name})
	if err != nil {
		return err
	}
	if given != nil {
		given = secrets.JSON(given)
	}
	prepared, refused := set.Prepare(name, given)
	if refused != nil {
		return t.print(callDocument{Tool: name, Args: given, Effect: spec.Effect}, *refused)
	}
	t.prepared = prepared
	return t.finish(ctx, f.yes)
}

// toolEnv gives what a flow's tools are made with outside of a run, and its secrets, and opens the log.
func (a *app) toolEnv(m *machine.Machine) (tool.Env, *secret.Redactor, error) {
	env, err := a.environment(m.Dir)
	if err != nil {
		return tool.Env{}, nil, err
	}
	secrets, err := secretsOf(m, env)
	if err != nil {
		return tool.Env{}, nil, err
	}
	return tool.Env{Machine: m, Dir: m.Dir, Getenv: env.get}, secrets, a.openLog(secrets)
}

// readArgs reads the arguments of a call, nil where none are given. They are JSON; whether they fit is for the tool to say.
func (a *app) readArgs(f toolsCallFlags, spec machine.ToolSpec) (json.RawMessage, error) {
	if !f.given("args") {
		return nil, nil
	}
	hint := "write one JSON object in single quotes, such as: --args " + shellQuote(exampleArgs(spec))
	data := []byte(f.args)
	file, named := strings.CutPrefix(f.args, "@")
	if f.args == "-" || named {
		var err error
		if data, err = a.readAll(file); err != nil {
			return nil, usagef("", "the arguments in %q cannot be read: %v", file, reason(err))
		}
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return nil, usagef("give UTF-8 text", "the arguments are not UTF-8 text")
	}
	if len(bytes.TrimSpace(data)) == 0 { // an unset shell variable must not call a tool with nothing
		return nil, usagef("leave --args out for a call without arguments", "the arguments are empty")
	}
	if _, err := machine.DecodeValue(data); err != nil {
		return nil, usagef(hint, "the arguments cannot be read: %v", err)
	}
	return data, nil
}

// exampleArgs makes arguments that look like those of a tool: its required ones, else all.
func exampleArgs(spec machine.ToolSpec) string {
	example := machine.Values{}
	schema, err := machine.DecodeValue(spec.Parameters.JSON())
	if err != nil {
		return "{}"
	}
	properties, _ := schema.(machine.Values)["properties"].(machine.Values)
	info := spec.Parameters.Info()
	names := info.Required
	if len(names) == 0 {
		names = info.Properties
	}
	for _, name := range names {
		property, _ := properties[name].(machine.Values)
		switch property["type"] {
		case "integer", "number":
			example[name] = int64(1)
		case "boolean":
			example[name] = true
		case "array":
			example[name] = []machine.Value{}
		case "object":
			example[name] = machine.Values{}
		default:
			example[name] = "text"
		}
	}
	return machine.FormatValue(example)
}

// trialMemory is the part of the long-term memory that a call works in. The zero value is none.
type trialMemory struct {
	place *place
	of    *tool.Memory
}

// trialMemory opens the memory for a tool that needs it.
func (a *app) trialMemory(ctx context.Context, m *machine.Machine, spec machine.ToolSpec, f toolsCallFlags) (trialMemory, error) {
	cfg, ok := spec.Config.(*builtin.Config)
	needed, given := ok && cfg.NeedsMemory(), f.given("namespace")
	switch {
	case !needed && !given:
		return trialMemory{}, nil
	case !needed:
		return trialMemory{}, usagef("leave --namespace out", "%s has nothing to do with the long-term memory", spec.Name)
	case !given:
		return trialMemory{}, usagef("name the one to work in: --namespace NAME",
			"%s works in a run's namespace of the long-term memory (here: %s), and there is no run", spec.Name, m.Memory.Source())
	}
	if err := checkNamespace(f.namespace); err != nil {
		return trialMemory{}, err
	}
	open := a.open
	if spec.Effect == machine.EffectRead {
		open = a.openExisting
	}
	p, err := open(ctx)
	if err != nil {
		return trialMemory{}, err
	}
	return trialMemory{place: p, of: &tool.Memory{Namespace: f.namespace, Store: p.db}}, nil
}

func (m trialMemory) close() {
	if m.place != nil {
		m.place.close()
	}
}

// keep stores what a call has written, as the commit of its result does in a run. The result says so where an entry has
// another version than the call expected.
func (m trialMemory) keep(ctx context.Context, r tool.Result, secrets *secret.Redactor) (tool.Result, error) {
	writes := append([]store.MemoryWrite(nil), m.of.Written(r)...)
	if len(writes) == 0 {
		return r, nil
	}
	for i, w := range writes {
		writes[i].Namespace, writes[i].Key = secrets.Text(w.Namespace), secrets.Text(w.Key)
		if w.Value != nil {
			writes[i].Value = secrets.JSON(w.Value)
		}
	}
	err := m.place.db.Memorize(context.WithoutCancel(ctx), writes)
	var conflict *store.MemoryConflict
	if errors.As(err, &conflict) {
		return tool.Conflict(conflict).Result(), nil
	}
	return r, err
}

// trial is one call outside of a run.
type trial struct {
	app      *app
	machine  *machine.Machine
	kind     tool.Kind
	secrets  *secret.Redactor
	memory   trialMemory
	prepared tool.Prepared
}

// trialRun stands in a call's texts where a run's id would.
const trialRun = "tools-call"

// finish asks where that is needed, makes the call and prints its result.
func (t *trial) finish(ctx context.Context, yes bool) error {
	spec := t.prepared.Tool.Spec
	doc := callDocument{Tool: spec.Name, Args: t.prepared.Args, Effect: spec.Effect}
	agreed, err := t.agreed(ctx, yes)
	if err != nil {
		return err
	}
	if !agreed {
		return t.print(doc, tool.Result{Status: tool.Refused,
			Problem: machine.Problem{Kind: "denied", Message: "a human did not approve " + spec.Name}})
	}
	if p, ok := t.kind.(tool.Preparer); ok {
		if err := p.Prepare(ctx, t.machine); err != nil {
			return err
		}
	}
	result, err := t.call(ctx, &doc)
	if err != nil {
		return err
	}
	err = t.print(doc, result)
	if ctx.Err() != nil && result.Status != tool.OK {
		t.app.code = exitInterrupted
	}
	return err
}

// agreed says whether the call may be made. A human is asked about what changes something, and about what would need
// approval in a run.
func (t *trial) agreed(ctx context.Context, yes bool) (bool, error) {
	a, spec := t.app, t.prepared.Tool.Spec
	asks := !yes && t.asks()
	if asks && !a.asksInline() {
		why := "it changes something"
		if t.prepared.Read() {
			why = "it needs approval"
		}
		return false, usagef("add --yes to call it", "%s is not called unasked: %s", spec.Name, why)
	}
	if !t.prepared.Read() && !a.json() {
		a.errln("no run is made: what " + spec.Name + " does (" + string(spec.Effect) + ") is done, and nothing of it is recorded")
	}
	if !asks {
		return true, nil
	}
	for {
		a.errln(a.clean("Approve "+t.described()+"?", true))
		line, err := a.promptLine(ctx, "[y/N] ")
		switch {
		case errors.Is(err, io.EOF), err == nil && strings.TrimSpace(line) == "":
			return false, nil
		case err != nil:
			return false, err
		}
		if agreed, ok := match.YesNo(line, t.machine.Language); ok {
			return agreed, nil
		}
		a.errln("answer yes or no")
	}
}

// described shows the call with all of its arguments, as they were checked.
func (t *trial) described() string {
	name := t.prepared.Tool.Spec.Name
	if len(t.prepared.Values) == 0 {
		return name
	}
	return name + " (" + engine.ArgsText(t.prepared.Values, "en") + ")"
}

// asks says whether a human is asked. Whether a call needs approval may depend on variables of a run; where that cannot be
// told, it does.
func (t *trial) asks() bool {
	approval := t.prepared.Tool.Spec.Approval
	if !t.prepared.Read() || approval.Required {
		return true
	}
	if approval.When == nil {
		return false
	}
	needed, err := approval.When.Eval(machine.Facts{Args: t.prepared.Values, RunID: trialRun, StartedAt: t.app.Now()})
	return err != nil || needed != false
}

// call makes the call and takes down how it went.
func (t *trial) call(ctx context.Context, doc *callDocument) (tool.Result, error) {
	a := t.app
	job := tool.Job{Prepared: t.prepared,
		Call: tool.Call{Key: trialRun + "/" + a.newKey(), RunID: trialRun, StartedAt: a.Now(), Memory: t.memory.of}}
	failed := 0
	runner := tool.Runner{Now: a.Now, Sleep: a.Sleep}
	outcomes, err := runner.Batch(ctx, []tool.Job{job}, tool.Hooks{
		Again: func(_ int, out tool.Outcome, try int, wait time.Duration) error {
			failed = try
			if !a.json() {
				a.errln(a.clean(t.secrets.Text(fmt.Sprintf("attempt %d: %s; again in %s", try, out.Result.Problem.Message,
					wait.Round(time.Millisecond))), a.Terminal.Err))
			}
			return nil
		},
	})
	if err != nil { // ctx ended before the call began
		return tool.Result{}, err
	}
	out := outcomes[0]
	if out.Stack != "" {
		log := a.log.engineLog()
		log.Error().Str("tool", doc.Tool).Str("stack", t.secrets.Text(out.Stack)).Msg("a tool broke down")
	}
	doc.MS, doc.Attempts = out.Duration.Milliseconds(), failed
	if out.Ran {
		doc.Attempts++
	}
	result, err := t.memory.keep(ctx, out.Result, t.secrets)
	result.Value = t.secrets.Value(result.Value)
	result.Problem.Message = t.secrets.Text(result.Problem.Message)
	return result, err
}

// newKey makes what is unlike in every call.
func (a *app) newKey() string {
	if a.NewID != nil {
		return a.NewID()
	}
	return ulid.MustNew(ulid.Timestamp(a.Now()), rand.Reader).String()
}

// shownArgs is how many columns of a call's arguments the line below its result shows.
const shownArgs = 100

// print prints a result and sets the exit code by its status. For people, what a model would read goes to stdout, and how
// it came about to stderr.
func (t *trial) print(doc callDocument, r tool.Result) error {
	a := t.app
	if a.code = exitOK; r.Status != tool.OK {
		a.code = exitFailed
	}
	if a.json() {
		doc.Status = r.Status
		if !r.Problem.None() {
			doc.Error = &r.Problem
		}
		var err error
		if doc.Value, err = machine.EncodeValue(r.Value); err != nil {
			return err
		}
		a.printJSON(doc)
		return nil
	}
	a.outln(a.clean(history.ResultText(r), a.Terminal.Out))
	line := doc.Tool
	if doc.Attempts > 0 {
		line = shorten(oneLine(t.described()), shownArgs)
	}
	line += ": " + string(r.Status)
	if doc.Attempts > 1 {
		line += fmt.Sprintf(" after %d attempts", doc.Attempts)
	}
	if doc.Attempts > 0 {
		line += fmt.Sprintf(" (%d ms)", doc.MS)
	}
	a.errln(a.faint(line))
	return nil
}

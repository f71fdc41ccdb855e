package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/flows/machine"
)

type runFlags struct {
	inputs     []string
	id         string
	yes        bool
	approveAll bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FLOW",
		Short: "Start a run and work on it until it ends, waits or stops",
		Long: `Start a run of a flow file and work on it until it ends, waits or stops. On a terminal, questions are asked right
there; elsewhere the run waits (exit code 4) and stderr says how to answer.

What the flow says and its output go to stdout.`,
		Example: `  flowctl run flow.yaml -i message="I want my money back"
  flowctl run flow.yaml -i inputs.json --id order-17
  flowctl run flow.yaml -i text=@letter.txt -i sign=@@ -o json`,
		Args: args(1, 1, "FLOW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.id == "" && cmd.Flags().Changed("id") { // an unset shell variable must not start another run
				return usagef("leave --id out for an id of flowctl's own", "the run's id is empty")
			}
			return a.run(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.inputs, "input", "i", nil,
		"an input as `NAME=VALUE` (=@FILE reads a file, =@@ is an at sign), or a file with a JSON object of inputs")
	flags.StringVar(&f.id, "id", "", "`ID` of the run; one that exists with the same flow and inputs is taken up")
	flags.BoolVar(&f.yes, "yes", false, "answer confirmations with yes")
	flags.BoolVar(&f.approveAll, "approve-all", false, "approve every tool call that asks for approval")
	return cmd
}

func (a *app) run(ctx context.Context, flow string, f runFlags) error {
	kinds := a.toolKinds()
	m, err := a.readFlow(flow, a.catalog(kinds))
	if err != nil {
		return err
	}
	inputs, err := a.readInputs(m, f.inputs)
	if err != nil {
		return err
	}
	env, err := a.environment(m.Dir)
	if err != nil {
		return err
	}
	if _, err := secretsOf(m, env); err != nil {
		return err
	}
	p, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.start(workSetup{Env: env, Machine: m, ApproveAll: f.approveAll}); err != nil {
		return err
	}
	a.warnModels(m, env)
	run, _, err := p.eng.Start(ctx, engine.StartRequest{Machine: m, Inputs: inputs, ID: f.id})
	if err != nil {
		return err
	}
	d := drive{place: p, run: run, yes: f.yes, ask: a.asksInline()}
	return d.advance(ctx)
}

// warnModels says before the first state that a model cannot be called: rules may do without it, or the run will stop.
func (a *app) warnModels(m *machine.Machine, env environment) {
	for _, spec := range missingModels(m, env) {
		a.errln("warning: no key for model " + spec.Name + " is set (" + strings.Join(keysOf(spec), " or ") +
			"); a state that cannot do without it will stop the run")
	}
}

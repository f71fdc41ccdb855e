package main

import (
	"context"

	"github.com/spf13/cobra"

	"flowctl/engine"
)

type runFlags struct {
	inputs     []string
	id         string
	yes        bool
	approveAll bool
	modelFlags
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FLOW",
		Short: "Start a run and work on it until it ends, waits or stops",
		Long: `Start a run of a flow file and work on it until it ends, waits or stops. On a terminal, questions are asked right
there; elsewhere the run waits (exit code 4) and stderr says how to answer.

What the flow says and its output go to stdout.

With --offline no model is asked: each goes by the script that the flow gives it (offline: FILE). --model names such a
file for one model. The run goes by these scripts to its end, also when it is answered or resumed later.`,
		Example: `  flowctl run flow.yaml -i message="I want my money back"
  flowctl run flow.yaml -i inputs.json --id order-17
  flowctl run flow.yaml -i text=@letter.txt -i sign=@@ -o json
  flowctl run flow.yaml --offline
  flowctl run flow.yaml --model default=script:answers.yaml --stream`,
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
	flags.BoolVar(&f.offline, "offline", false, "let the flow's offline scripts answer for its models")
	flags.StringArrayVar(&f.models, "model", nil, "let a script answer for a model, as `NAME=script:FILE`")
	a.streamFlag(flags)
	a.allowFlag(flags)
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
	scripts, err := a.scripts(m, f.modelFlags)
	if err != nil {
		return err
	}
	secrets, err := secretsOf(m, env)
	if err != nil {
		return err
	}
	if err := a.checkModels(a.models(env, secrets), m, env, scripts); err != nil {
		return err
	}
	p, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.checkTools(m, env); err != nil {
		return err
	}
	if err := p.start(workSetup{Env: env, Machine: m, ApproveAll: f.approveAll}); err != nil {
		return err
	}
	run, _, err := p.eng.Start(ctx, engine.StartRequest{Machine: m, Inputs: inputs, ID: f.id, Scripts: scripts})
	if err != nil {
		return err
	}
	d := drive{place: p, run: run, yes: f.yes, ask: a.asksInline()}
	return d.advance(ctx)
}

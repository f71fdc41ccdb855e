package states

import (
	"context"
	"fmt"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// call makes one tool call, without a model.
type call struct{}

type callWith struct {
	Tool   machine.ToolRef               `yaml:"tool" flow:"required" doc:"The tool"`
	Args   machine.Ordered[machine.Tree] `yaml:"args" flow:"secret" doc:"Its arguments by name"`
	Expect machine.Expr                  `yaml:"expect" flow:"expr:result" doc:"Expression over the result of a call that went well; where it is false, the state fails"`
	Into   machine.VarRef                `yaml:"into" flow:"write,secret" doc:"Variable for the result; null where there is none"`
}

func (call) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Call one tool, without a model.", With: &callWith{},
		Outcomes: "success, fail"}
}

func (c *callWith) Uses(s machine.Scope) machine.Uses {
	uses := machine.Uses{
		Outcomes: []machine.OutcomeUse{
			{Name: machine.Success, Writes: written(c.Into)},
			{Name: machine.Fail, Writes: written(c.Into)},
		},
		Tools: []string{string(c.Tool)},
	}
	spec, _ := s.Machine.Tools.Get(string(c.Tool))
	uses.Problems = append(argProblems(s, spec, "args", c.Args), secretProblems(s.Machine, spec, c.Args)...)
	if c.Into != "" {
		uses.Holds = []machine.Hold{{Path: "into", Var: string(c.Into), Type: resultType(spec), Named: "the result of " + spec.Name}}
	}
	return uses
}

// shower is the config of a tool that would keep or show an argument in clear.
type shower interface {
	// Shows says where an argument would be seen, and what to do instead: "in the url; put it into headers". It is "" for an
	// argument that only reaches whom the tool asks.
	Shows(arg string) string
}

// secretProblems finds secret variables in arguments that the tool would keep or show in clear.
func secretProblems(m *machine.Machine, spec machine.ToolSpec, args machine.Ordered[machine.Tree]) []machine.ConfigProblem {
	config, ok := spec.Config.(shower)
	if !ok {
		return nil
	}
	var found []machine.ConfigProblem
	for _, arg := range args {
		where := config.Shows(arg.Name)
		if where == "" {
			continue
		}
		for _, name := range arg.Value.Reads() {
			if v, _ := m.Variable(name); v.Secret {
				found = append(found, machine.ConfigProblem{Path: "args." + arg.Name, Rule: "secret-shown",
					Message: fmt.Sprintf("%s is secret, and %s would show it %s", name, spec.Name, where)})
			}
		}
	}
	return found
}

// resultType gives the one JSON type that a tool's results have, "" where that is open.
func resultType(spec machine.ToolSpec) string {
	if spec.Result == nil {
		return ""
	}
	if types := spec.Result.Info().Types; len(types) == 1 {
		return types[0]
	}
	return ""
}

func (call) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*callWith](step)
	args, err := computeArgs(step, with.Args)
	if err != nil {
		return "", err
	}
	results, err := step.Call(engine.Call{Tool: string(with.Tool), Args: args, Direct: true,
		SecretArgs: secretArgs(step, with.Args), SecretResult: isSecret(step, with.Into)})
	if err != nil {
		return "", err
	}
	result := results[0]
	if result.Status == tool.Unavailable {
		return machine.Error, result.Problem
	}
	problem, err := judge(step, result, with.Expect, isSecret(step, with.Into))
	if err != nil {
		return "", err
	}
	if err := storeResult(step, with.Into, result.Value); err != nil && problem.None() {
		return machine.Fail, err
	}
	if !problem.None() {
		return machine.Fail, problem
	}
	return machine.Success, nil
}

// storeResult writes what a call gave. What the variable does not take leaves it without value, and is the reason that is
// returned.
func storeResult(step *engine.Step, name machine.VarRef, value machine.Value) error {
	err := write(step, name, value)
	if err == nil {
		return nil
	}
	if unset := write(step, name, nil); unset != nil {
		return unset
	}
	return err
}

// judge says why a direct call that was no outage did not end well; no problem where it did. A secret result is not shown.
func judge(step *engine.Step, result tool.Result, expect machine.Expr, secret bool) (machine.Problem, error) {
	if result.Status != tool.OK {
		problem := result.Problem
		if problem.Kind == "" {
			problem.Kind = string(result.Status)
		}
		return problem, nil
	}
	if expect == nil {
		return machine.Problem{}, nil
	}
	holds := step.Holds
	if secret {
		holds = step.HoldsUnseen
	}
	met, err := holds(expect, result.Value)
	if err != nil || met {
		return machine.Problem{}, err
	}
	if secret {
		return problemf(kindExpect, language(step).pick("the result is not as expected (%s)", "结果不符合预期（%s）"), expect.Source()), nil
	}
	return problemf(kindExpect, language(step).pick("the result is not as expected (%s): %s", "结果不符合预期（%s）：%s"), expect.Source(),
		shorten(machine.FormatValue(result.Value), maxShown)), nil
}

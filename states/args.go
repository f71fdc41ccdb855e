package states

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// computeArgs evaluates the arguments of a call.
func computeArgs(step *engine.Step, args machine.Ordered[machine.Tree]) (machine.Values, error) {
	out := make(machine.Values, len(args))
	for _, arg := range args {
		v, err := step.Compute(arg.Value)
		if err != nil {
			return nil, err
		}
		out[arg.Name] = v
	}
	return out, nil
}

// secretArgs names the arguments that are made of secret variables.
func secretArgs(step *engine.Step, args machine.Ordered[machine.Tree]) []string {
	var names []string
	for _, arg := range args {
		if slices.ContainsFunc(arg.Value.Reads(), func(name string) bool { return isSecret(step, machine.VarRef(name)) }) {
			names = append(names, arg.Name)
		}
	}
	return names
}

// argProblems says what is wrong with the arguments of a call as they are written: names that the tool does not have,
// required ones that are missing, and values without expression that it does not take. path is that of the arguments.
func argProblems(s machine.Scope, spec machine.ToolSpec, path string, args machine.Ordered[machine.Tree]) []machine.ConfigProblem {
	if spec.Parameters == nil {
		return nil
	}
	var found []machine.ConfigProblem
	info := spec.Parameters.Info()
	for _, arg := range args {
		if !slices.Contains(info.Properties, arg.Name) && !tool.TakesMore(spec.Parameters) {
			message := fmt.Sprintf("%s has no parameter %s", spec.Name, arg.Name)
			near := spell.Nearest(arg.Name, info.Properties)
			switch {
			case near != "":
			case len(info.Properties) == 0:
				message += "; it takes none"
			default:
				message += "; it takes " + strings.Join(info.Properties, ", ")
			}
			found = append(found, machine.ConfigProblem{Path: path + "." + arg.Name, Message: message, Suggestion: near})
		}
	}
	filled, _ := spec.Parameters.Coerce(machine.Values{}).(machine.Values)
	for _, name := range info.Required {
		_, byDefault := filled[name]
		if _, given := args.Get(name); !given && !byDefault {
			found = append(found, machine.ConfigProblem{Path: path,
				Message: fmt.Sprintf("%s needs the argument %s, and args does not give it", spec.Name, name)})
		}
	}
	return append(found, constantProblems(s, spec, path, args)...)
}

// constantProblems checks the arguments whose value is known before the flow runs.
func constantProblems(s machine.Scope, spec machine.ToolSpec, path string, args machine.Ordered[machine.Tree]) []machine.ConfigProblem {
	constants := machine.Values{}
	for _, arg := range args {
		if v, ok := constant(s, arg.Value); ok && v != nil && slices.Contains(spec.Parameters.Info().Properties, arg.Name) {
			constants[arg.Name] = v
		}
	}
	var unfit *machine.SchemaError
	if !errors.As(spec.Parameters.Check(spec.Parameters.Coerce(constants)), &unfit) {
		return nil
	}
	var found []machine.ConfigProblem
	for _, fault := range unfit.Faults {
		name := fault.Path
		if i := strings.IndexAny(name, ".["); i >= 0 {
			name = name[:i]
		}
		if _, given := constants[name]; given {
			found = append(found, machine.ConfigProblem{Path: path + "." + name, Message: fmt.Sprintf("%s does not take this: %s",
				spec.Name, (&machine.SchemaError{Faults: []machine.SchemaFault{fault}}).Error())})
		}
	}
	return found
}

// constant gives the value of a tree that is the same in every run: it reads no variable, and neither the run, nor the
// visits, nor how the last step ended makes a difference.
func constant(s machine.Scope, tree machine.Tree) (machine.Value, bool) {
	if len(tree.Reads()) > 0 {
		return nil, false
	}
	visits := map[string]int64{}
	for _, name := range s.Machine.States.Names() {
		visits[name] = 1000
	}
	last := machine.Last{Outcome: machine.Fail, Error: problemf(kindInvalid, "another run")}
	one, err := tree.Value(machine.Facts{})
	other, otherErr := tree.Value(machine.Facts{RunID: "another run", StartedAt: time.Unix(1, 0), Visits: visits, Last: last})
	return one, err == nil && otherErr == nil && machine.EqualValues(one, other)
}

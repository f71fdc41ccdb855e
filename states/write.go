package states

import (
	"errors"
	"fmt"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// The kinds of problems that handlers name themselves. Those of a tool's result keep the kind that the tool gave.
const (
	kindInvalid   = "invalid"    // a value that does not fit
	kindExpect    = "expect"     // a result that is not as the flow expects
	kindNoneFound = "none_found" // nothing that fits
	kindSeveral   = "several"    // more than one that fits
	kindTurns     = "turns"      // the state's turns are used up
	kindExpired   = "expired"    // nobody answered in time
)

func problemf(kind, format string, args ...any) machine.Problem {
	return machine.Problem{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// write writes a variable that may be left out of a config. A value that the variable does not take is a problem of kind
// invalid, and the variable keeps its value.
func write(step *engine.Step, name machine.VarRef, value machine.Value) error {
	if name == "" {
		return nil
	}
	err := step.Set(string(name), value)
	var unfit *machine.SchemaError
	if errors.As(err, &unfit) {
		return problemf(kindInvalid, language(step).pick("%s does not take what came: %v", "%s 不能保存得到的值：%v"), name, unfit)
	}
	return err
}

// written lists the variables that are given, for OutcomeUse.Writes.
func written(names ...machine.VarRef) []string {
	var out []string
	for _, name := range names {
		if name != "" {
			out = append(out, string(name))
		}
	}
	return out
}

// language gives the engine's own words in the language of the step's flow.
func language(step *engine.Step) words { return words{zh: step.Machine().Language == "zh"} }

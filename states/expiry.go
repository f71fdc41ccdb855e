package states

import (
	"fmt"
	"strings"

	"flowctl/flows/machine"
)

// expiry is what a state says about a human who does not answer: `timeout` and `default`.
type expiry struct {
	Timeout machine.Duration
	Default string
}

// addTo adds to what a config says of its state: the outcome expired where a timeout can lead to it, and what is wrong with
// the default. The outcomes that are declared so far are those that a default can name.
func (e expiry) addTo(uses *machine.Uses) {
	switch {
	case e.Default != "" && e.Timeout == 0:
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "default",
			Message: "default is the outcome when the time runs out, and there is no timeout; add one, such as timeout: 24h"})
	case e.Default != "" && !declares(uses.Outcomes, e.Default):
		names := make([]string, len(uses.Outcomes))
		for i, o := range uses.Outcomes {
			names[i] = string(o.Name)
		}
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "default",
			Message: fmt.Sprintf("default names the outcome when the time runs out, and the state never ends with %s; it can end with %s",
				e.Default, strings.Join(names, ", "))})
	case e.Timeout > 0 && e.Default == "":
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Expired})
	}
}

func declares(outcomes []machine.OutcomeUse, name string) bool {
	for _, o := range outcomes {
		if string(o.Name) == name {
			return true
		}
	}
	return false
}

// outcome is how the state ends when the time has run out.
func (e expiry) outcome() machine.Outcome {
	if e.Default != "" {
		return machine.Outcome(e.Default)
	}
	return machine.Expired
}

// expired ends a state whose question nobody answered. A default may lead to an outcome that needs a reason.
func (e expiry) expired(w words) (machine.Outcome, error) {
	o := e.outcome()
	if o == machine.Fail || o == machine.Incomplete {
		return o, problemf(kindExpired, "%s", w.pick("nobody answered in time", "无人按时回答"))
	}
	return o, nil
}

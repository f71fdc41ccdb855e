package flows

import (
	"fmt"

	"flowctl/flows/machine"
)

// fact is a part of machine.Facts that a program can load.
type fact int

const (
	factVar fact = iota
	factOutcome
	factError
	factKind
	factMessage
	factLast
	factRun
	factRunID
	factStarted
	factResult
	factArgs
	factVisits
	factEnv
)

// factRef is one name that a program loads. The dotted names stand for a whole access such as last.error.kind, so that
// no object has to be made for it; no name in a source has a dot.
type factRef struct {
	name string
	fact fact
}

var factRefs = []factRef{
	{"last.outcome", factOutcome}, {"last.error", factError}, {"last.error.kind", factKind},
	{"last.error.message", factMessage}, {"last", factLast},
	{"run", factRun}, {"run.id", factRunID}, {"run.started_at", factStarted},
	{"result", factResult}, {"args", factArgs}, {"visits", factVisits}, {"env", factEnv},
}

func findFact(name string) (factRef, bool) {
	for _, ref := range factRefs {
		if ref.name == name {
			return ref, true
		}
	}
	return factRef{}, false
}

// builtinTypes are the types of the names that every expression sees.
func builtinTypes(outcomes []string) map[string]*exprType {
	outcome := &exprType{kind: "string"}
	if len(outcomes) > 0 {
		outcome.enum = append(outcome.enum, "") // before the first step has ended
		for _, o := range outcomes {
			outcome.enum = append(outcome.enum, o)
		}
	}
	return map[string]*exprType{
		"last": {kind: "object", fields: map[string]*exprType{
			"outcome": outcome,
			"error":   {kind: "object", fields: map[string]*exprType{"kind": errorKindType, "message": textType}},
		}},
		"run": {kind: "object", fields: map[string]*exprType{"id": textType, "started_at": textType}},
	}
}

// timeLayout is RFC 3339 with milliseconds, as all times of a run are written.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// of loads the fact.
func (r factRef) of(f *machine.Facts) machine.Value {
	switch r.fact {
	case factVar:
		return f.Values[r.name]
	case factOutcome:
		return string(f.Last.Outcome)
	case factError:
		return lastError(f)
	case factKind:
		return f.Last.Error.Kind
	case factMessage:
		return f.Last.Error.Message
	case factLast:
		return machine.Values{"outcome": string(f.Last.Outcome), "error": lastError(f)}
	case factRun:
		return machine.Values{"id": f.RunID, "started_at": f.StartedAt.UTC().Format(timeLayout)}
	case factRunID:
		return f.RunID
	case factStarted:
		return f.StartedAt.UTC().Format(timeLayout)
	case factResult:
		return f.Result
	case factArgs:
		if f.Args == nil {
			return machine.Values{}
		}
		return f.Args
	case factVisits:
		return f.Visits
	case factEnv:
		return f.Getenv
	}
	panic(fmt.Sprintf("flows: no fact %d", r.fact)) // a case is missing above
}

func lastError(f *machine.Facts) machine.Values {
	return machine.Values{"kind": f.Last.Error.Kind, "message": f.Last.Error.Message}
}

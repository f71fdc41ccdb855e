package flows

import (
	"sort"

	"github.com/expr-lang/expr/builtin"
)

// functionNames are all functions that an expression may call, sorted.
func functionNames() []string {
	names := []string{"visits", "env"}
	for _, f := range builtin.Builtins {
		if _, disabled := disabledFunctions[f.Name]; !disabled && f.Name != "last" {
			names = append(names, f.Name)
		}
	}
	sort.Strings(names)
	return names
}

// predicateFunctions take a condition for the items of a list.
var predicateFunctions = map[string]bool{
	"all": true, "any": true, "one": true, "none": true, "map": true, "filter": true, "find": true, "findIndex": true,
	"findLast": true, "findLastIndex": true, "count": true, "sum": true, "groupBy": true, "sortBy": true, "reduce": true,
}

// disabledFunctions and why: an expression gives the same answer on every look at the same facts.
var disabledFunctions = map[string]string{
	"now":      "the answer of an expression must not change with the clock; run.started_at is when the run began",
	"date":     "texts in ISO form (2026-01-31) compare in order as they are",
	"duration": "an expression knows no times; let a tool calculate",
	"timezone": "an expression knows no times; let a tool calculate",
}

// forbiddenOperators and why.
var forbiddenOperators = map[string]string{
	"..": "a range has no place in a flow",
	"/":  "a flow compares and counts; let a tool calculate",
	"%":  "a flow compares and counts; let a tool calculate",
	"**": "a flow compares and counts; let a tool calculate",
	"^":  "a flow compares and counts; let a tool calculate",
}

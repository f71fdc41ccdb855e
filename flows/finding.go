package flows

import (
	"fmt"
	"sort"
	"strings"

	"flowctl/flows/machine"
)

// Severity of a finding: errors keep a flow from running, warnings do not.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one thing wrong in a flow file.
type Finding struct {
	Rule       string   `json:"rule"` // id of the rule, see Rules
	Severity   Severity `json:"severity"`
	File       string   `json:"-"`
	Line       int      `json:"line"` // 1-based
	Col        int      `json:"col"`  // 1-based, in runes
	Path       string   `json:"path"` // of the place in the file, such as states.details.with.fields[0]
	Message    string   `json:"message"`
	Got        string   `json:"got,omitempty"`        // what stands there, where that helps
	Suggestion string   `json:"suggestion,omitempty"` // what was probably meant
	Fix        string   `json:"fix,omitempty"`        // what to write instead, ready to paste
}

// String is the finding as compilers print it: file:line:col: message [rule].
func (f Finding) String() string {
	msg := f.Message
	if f.Suggestion != "" {
		msg += fmt.Sprintf("; did you mean %s?", f.Suggestion)
	}
	if f.Fix != "" {
		msg += "; write " + f.Fix
	}
	if f.Severity == SeverityWarning {
		msg = "warning: " + msg
	}
	return fmt.Sprintf("%s:%d:%d: %s [%s]", f.File, f.Line, f.Col, msg, f.Rule)
}

// at gives the finding a place.
func (f Finding) at(p machine.Pos) Finding {
	f.File, f.Line, f.Col = p.File, p.Line, p.Col
	return f
}

// SortFindings orders findings by file, line, column, rule and message, and drops repetitions: what stands behind an anchor
// is found once for each of its aliases.
func SortFindings(fs []Finding) []Finding {
	sort.SliceStable(fs, func(i, j int) bool {
		a, b := fs[i], fs[j]
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Line != b.Line:
			return a.Line < b.Line
		case a.Col != b.Col:
			return a.Col < b.Col
		case a.Rule != b.Rule:
			return a.Rule < b.Rule
		}
		return a.Message < b.Message
	})
	out := fs[:0]
	for i, f := range fs {
		if n := len(out); n > 0 && i > 0 {
			last := out[n-1]
			last.Path = f.Path
			if f == last {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// Error is a flow that cannot be compiled. Findings are sorted and hold at least one of severity error.
type Error struct {
	Findings []Finding
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

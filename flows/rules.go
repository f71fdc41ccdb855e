package flows

import (
	"fmt"
	"slices"
)

// Rule is one thing that is checked, with what `explain` says about it.
type Rule struct {
	ID       string
	Severity Severity
	Title    string
	Doc      string // why it is wrong, and what to do
	Wrong    string // a flow that breaks this rule and no other
	Right    string // the same flow, mended
	// Lint is a rule that judges a flow which could run. A stored run is resumed in spite of it, so that a rule that is
	// added later never strands one.
	Lint bool
}

// Rules gives all rules, sorted by group. The slice is the caller's.
func Rules() []Rule {
	return slices.Concat(yamlRules, shapeRules, nameRules, valueRules, graphRules, modelRules, adviceRules)
}

// The ids of the rules, as they stand in brackets behind a message.
const (
	ruleSyntax         = "yaml-syntax"
	ruleEmptyFile      = "empty-file"
	ruleSecondDocument = "second-document"
	ruleDuplicateKey   = "duplicate-key"
	ruleNullKey        = "null-key"
	ruleKeyType        = "key-type"
	ruleAlias          = "alias"
	ruleNumber         = "number"
	ruleYesNo          = "yes-no"
	ruleTag            = "tag"
	ruleCut            = "cut-value"
	ruleBareBraces     = "bare-braces"

	ruleUnknownKey  = "unknown-key"
	ruleMissingKey  = "missing-key"
	ruleNoValue     = "no-value"
	ruleWrongType   = "wrong-type"
	ruleVersion     = "version"
	ruleToolKind    = "tool-kind"
	ruleWithInvalid = "with-invalid"

	ruleUnknownHandler  = "unknown-handler"
	ruleUnknownState    = "unknown-state"
	ruleUnknownVariable = "unknown-variable"
	ruleUnknownTool     = "unknown-tool"
	ruleUnknownModel    = "unknown-model"
	ruleUnknownWord     = "unknown-word"
	ruleBadName         = "bad-name"
	ruleReservedName    = "reserved-name"
	ruleNameClash       = "name-clash"
	ruleReadOnly        = "read-only"

	ruleBadSchema  = "bad-schema"
	ruleBadPattern = "bad-pattern"
	ruleBadValue   = "bad-value"
	ruleNoFile     = "missing-file"
	ruleCannotHold = "cannot-hold"

	ruleSecretShown = "secret-shown"

	ruleMissingRoute   = "missing-route"
	ruleUnknownOutcome = "unknown-outcome"
	ruleUnusedDefault  = "unused-default"
	ruleGuardOrder     = "guard-order"
	ruleUnreachable    = "unreachable"
	ruleDeadEnd        = "dead-end"

	ruleBadExample    = "bad-example"
	ruleFallbackCycle = "fallback-cycle"
	ruleNoModel       = "no-model"
	ruleNoPrices      = "no-prices"
	ruleNoMemory      = "no-memory"
	ruleSmallBudget   = "small-budget"

	ruleOpenObject     = "open-object"
	ruleManyTools      = "many-tools"
	ruleTooManyTools   = "too-many-tools"
	ruleUnusedVariable = "unused-variable"
	ruleUnusedTool     = "unused-tool"
	ruleCommentInText  = "comment-in-text"
	ruleBraceTypo      = "brace-typo"
	ruleAmbiguous      = "ambiguous-keyword"
	ruleUnknownKind    = "unknown-kind"
	ruleNothingHeard   = "nothing-heard"
)

// problem makes a finding that keeps the flow from running.
func problem(rule, format string, args ...any) Finding {
	return Finding{Rule: rule, Severity: SeverityError, Message: fmt.Sprintf(format, args...)}
}

// advice makes a finding that does not.
func advice(rule, format string, args ...any) Finding {
	return Finding{Rule: rule, Severity: SeverityWarning, Message: fmt.Sprintf(format, args...)}
}

// severityOf gives the severity of a rule. One that is not listed is an error.
func severityOf(id string) Severity {
	for _, r := range Rules() {
		if r.ID == id {
			return r.Severity
		}
	}
	return SeverityError
}

// structural drops the findings of lint rules.
func structural(found []Finding) []Finding {
	lint := map[string]bool{}
	for _, r := range Rules() {
		lint[r.ID] = r.Lint
	}
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return lint[f.Rule] })
}

package flows

import (
	"fmt"
	"slices"
	"strings"
)

// languageReference is the part of the reference that no shape holds: outcomes, expressions and names.
func languageReference() string {
	var b strings.Builder
	b.WriteString(outcomesReference)
	b.WriteString(wrap(fmt.Sprintf(expressionsReference, codes(functionNames(), ", "), codes(sortedKeys(disabledFunctions), " "),
		codes(sortedKeys(forbiddenOperators), " "))))
	b.WriteString("### Kinds of `last.error`\n\nA Go handler or tool may name kinds of its own. flowctl knows these:\n\n")
	for _, k := range ErrorKinds() {
		fmt.Fprintf(&b, "- `%s`: %s\n", k.Name, k.Doc)
	}
	b.WriteByte('\n')
	b.WriteString(wrap(secretsReference))
	b.WriteString(wrap(fmt.Sprintf(namesReference, codes(reserved, " "), codes(reservedOutcomes, " "))))
	return b.String()
}

// lineWidth is how long a line of the reference's running text may be, in bytes.
const lineWidth = 120

// wrap fills the paragraphs of a text anew; lists and titles stay as they are.
func wrap(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if p == "" || strings.ContainsAny(p[:1], "-#\n") {
			continue
		}
		var b strings.Builder
		width := 0
		for j, word := range strings.Fields(p) {
			switch {
			case j == 0:
			case width+1+len(word) > lineWidth:
				b.WriteByte('\n')
				width = 0
			default:
				b.WriteByte(' ')
				width++
			}
			b.WriteString(word)
			width += len(word)
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// codes writes words as code.
func codes(words []string, between string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, between)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

const outcomesReference = `### Outcomes and their lines

For the outcome of a state this line is taken: the state's own; for an intent without one, that of ` + "`success`" + `; the state's
` + "`else`" + `; the line in ` + "`defaults.transitions`" + `. An outcome that finds none is an error when the flow is checked. Three outcomes
are the engine's own. They never fall under ` + "`else`" + ` and need no line:

| outcome | when | without a line |
|---|---|---|
| ` + "`error`" + ` | a tool or a model is out of order after its retries, or a model's key is missing | the run stops and can be resumed |
| ` + "`timeout`" + ` | the state's ` + "`limits.time`" + ` is used up | the run stops and can be resumed |
| ` + "`limit`" + ` | the state was entered more than ` + "`limits.visits`" + ` times | the line of ` + "`fail`" + `, else the run stops |

An answer that an interrupt recognises leads where the interrupt says. Limits of the run, an expression that fails, a value
that a variable does not take and a panic always stop the run; ` + "`resume`" + ` goes on.

`

const expressionsReference = `### Expressions

Guards (` + "`when`, `expect`" + `) are expressions of [expr](https://expr-lang.org), and so is what stands in ` + "`{{ }}`" + `. A text that is
exactly one ` + "`{{ expression }}`" + ` keeps the value's type; any other is text. They see:

- inputs and variables by name; one without value is ` + "`null`" + ` (also ` + "`nil`" + `), and empty in a text: ` + "`remark ?? \"none\"`" + `
- ` + "`visits(\"state\")`" + `: entries of a state in this run, the present one counted
- ` + "`last.outcome`" + `: in transitions that of this step, elsewhere that of the one before, "" at first;
  ` + "`last.error.kind` and `last.error.message`" + `, "" where there was no failure
- ` + "`run.id` and `run.started_at`" + `, a text in RFC 3339
- ` + "`result`" + ` in ` + "`expect`" + `: what the tool gave; ` + "`args`" + ` in the texts of a tool and in ` + "`approval.when`" + `: its arguments

Operators: ` + "`== != < <= > >= and or not in contains startsWith endsWith matches + - * ?? ?: ?.`" + `

Functions: %s

There is no %s, since answers must not change with the clock, no operator %s, and no condition inside the condition of
another function.

Types come from the schemas and are checked when the flow is read; at run time, a comparison such as
` + "`<`" + ` with ` + "`null`" + ` fails and stops the run.

`

const secretsReference = `### Secret variables

An input or variable of type string with ` + "`secret: true`" + ` holds what nobody is shown, such as a typed code. It is filled by ` +
	"`ask`, `collect`, `call`" + ` or ` + "`set`" + `, and stands only in the arguments of ` + "`call`" + `, in ` + "`when`, `expect`" + ` and ` +
	"`approval.when`" + `, and in what ` + "`set`" + ` writes into another secret variable. Anywhere else, as in a view, a prompt, a question,
` + "`say`" + `, an output, the memory or the steps of a plan, it is an error when the flow is checked. It has no default, since the flow
is read by many. Keys and passwords of the flow itself are no variables: they come from the environment.

The value stands in the run's database, where a run that goes on needs it, and is ` + "`***`" + ` in every output and log. A value of 6 ` +
	`characters or more is also found wherever it appears in text, such as the message of a tool; a shorter one is hidden as a variable, ` +
	`as an argument, as a result and as an answer, and not in other text: give it minLength: 6 where you can. No model is shown it, nor what a human answers to a question ` +
	`for a secret: the answers of a ` + "`collect`" + ` with a secret field are read by rules alone, and no other state reads them. The views ` +
	"`execution_log` and `event_log`" + ` of the database show what is stored.

`

const namesReference = `### Names

Names are lower-case letters, digits and ` + "`_`" + `, a letter first. Inputs and variables share one namespace, and are none of %s.

Intents, choices and outcomes of an agent are none of %s.

No model is called ` + "`none`" + `, and no tool ` + "`finish`" + `.
`

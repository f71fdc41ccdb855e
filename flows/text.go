package flows

import (
	"slices"
	"strings"

	"flowctl/flows/machine"
)

// text is a compiled text: a string with {{ expression }} in it. It is immutable and safe for concurrent use.
type text struct {
	source string
	parts  []textPart
	reads  []string
}

// textPart is a piece of a text: either an expression, or a string as it stands.
type textPart struct {
	fixed string
	expr  *expression
	start int // byte of the source that it begins with
}

// compileText checks and compiles a text. The text is nil when a finding is an error.
func (s *exprScope) compileText(src string, at spot) (machine.Text, []Finding) {
	t, found := s.text(src, at)
	if hasErrors(found) {
		return nil, found
	}
	return t, found
}

func (s *exprScope) text(src string, at spot) (*text, []Finding) {
	t := &text{source: src}
	var found []Finding
	for i := 0; i < len(src); {
		start := strings.Index(src[i:], "{{")
		if start < 0 {
			t.parts = append(t.parts, textPart{fixed: src[i:], start: i})
			break
		}
		if start > 0 {
			t.parts = append(t.parts, textPart{fixed: src[i : i+start], start: i})
		}
		open := i + start
		length, inQuotes := expressionLength(src[open+2:])
		if length < 0 {
			found = append(found, s.unclosed(src, at, open, inQuotes))
			break
		}
		e, wrong := s.compile(src[open+2:open+2+length], open+2, at, wantAny)
		found = append(found, wrong...)
		if e != nil {
			t.parts = append(t.parts, textPart{expr: e, start: open})
			t.reads = append(t.reads, e.reads...)
		}
		i = open + 2 + length + 2
	}
	slices.Sort(t.reads)
	t.reads = slices.Compact(t.reads)
	return t, append(found, s.braceTypos(t, at)...)
}

func (s *exprScope) unclosed(src string, at spot, open, inQuotes int) Finding {
	f := problem(ruleTextSyntax, `{{ is not closed by }}; a pair of braces as text is {{ "{{" }}`)
	if inQuotes >= 0 {
		open += 2 + inQuotes
		f = problem(ruleTextSyntax, "a text in quotes inside {{ }} is not closed")
	}
	f.Path = at.Path
	return f.at(s.pos(at, open))
}

// expressionLength finds the }} that ends an expression: the first outside of quotes and of the braces of objects. It
// gives -1 if there is none, and then where an open quote stands, or -1.
func expressionLength(src string) (length, inQuotes int) {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '"', '\'', '`':
			end := quoteEnd(src[i:])
			if end < 0 {
				return -1, i
			}
			i += end
		case '{':
			depth++
		case '}':
			if depth == 0 && strings.HasPrefix(src[i:], "}}") {
				return i, -1
			}
			depth = max(depth-1, 0)
		}
	}
	return -1, -1
}

// quoteEnd finds the quote that ends the literal at the start of src, -1 if there is none.
func quoteEnd(src string) int {
	quote := src[0]
	for i := 1; i < len(src); i++ {
		switch {
		case src[i] == '\\' && quote != '`':
			i++
		case src[i] == quote && quote == '`' && strings.HasPrefix(src[i:], "``"):
			i++ // two of them stand for one
		case src[i] == quote:
			return i
		}
	}
	return -1
}

// Source is the text as written.
func (t *text) Source() string { return t.source }

// Reads gives the inputs and variables that it names, sorted. The slice must not be changed.
func (t *text) Reads() []string { return t.reads }

// Parts gives the pieces in the order written.
func (t *text) Parts() []machine.TextPart {
	parts := make([]machine.TextPart, len(t.parts))
	for i, part := range t.parts {
		parts[i].Fixed = part.fixed
		if part.expr != nil {
			parts[i].Expr = part.expr
		}
	}
	return parts
}

// Value gives the text over facts; a text that is exactly one expression gives that one's value with its type. An error
// is a *machine.ExprError.
func (t *text) Value(f machine.Facts) (machine.Value, error) {
	if len(t.parts) == 1 && t.parts[0].expr != nil {
		return t.parts[0].expr.Eval(f)
	}
	return t.Render(f)
}

// Render gives the text over facts as a string. What is inserted is data and never looked at again. An error is a
// *machine.ExprError.
func (t *text) Render(f machine.Facts) (string, error) {
	if len(t.parts) == 1 && t.parts[0].expr == nil {
		return t.parts[0].fixed, nil
	}
	var b strings.Builder
	for _, part := range t.parts {
		if part.expr == nil {
			b.WriteString(part.fixed)
			continue
		}
		v, err := part.expr.Eval(f)
		if err != nil {
			return "", err
		}
		b.WriteString(machine.FormatValue(v))
	}
	return b.String(), nil
}

// textConst gives a text that holds no expression.
func textConst(t machine.Text) (string, bool) {
	own, ok := t.(*text)
	if !ok {
		return "", false
	}
	for _, part := range own.parts {
		if part.expr != nil {
			return "", false
		}
	}
	return own.source, true
}

package flows

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
)

// pos gives the place in the file of a byte offset into the value of a scalar. Where the two cannot be matched it is the
// place where the scalar starts.
func (s *exprScope) pos(at spot, offset int) machine.Pos {
	n := at.Node
	if n == nil {
		return machine.Pos{File: at.File}
	}
	start := machine.Pos{File: at.File, Line: n.Line, Col: n.Column}
	if n.Kind != yaml.ScalarNode || offset < 0 || offset > len(n.Value) {
		return start
	}
	if len(s.Lines) == 0 {
		return guessPos(start, n, offset)
	}
	w, ok := newScalarWalk(s.Lines, n)
	if !ok || !w.walk(n.Value[:offset]) {
		return start
	}
	return machine.Pos{File: at.File, Line: w.line + 1, Col: w.col + 1}
}

// guessPos does without the file: in a scalar of one line without escapes, value and file run side by side.
func guessPos(start machine.Pos, n *yaml.Node, offset int) machine.Pos {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.ContainsAny(n.Value, "\n") {
		return start
	}
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0 && strings.ContainsAny(n.Value[:offset], "\"\\\t"),
		n.Style&yaml.SingleQuotedStyle != 0 && strings.Contains(n.Value[:offset], "'"):
		return start
	case quoted:
		start.Col++
	}
	start.Col += utf8.RuneCountInString(n.Value[:offset])
	return start
}

// scalarWalk goes through the text of a scalar in the file beside its value. A run of white space that has a line end in
// the file stands for one run of white space in the value, whatever folding made of it.
type scalarWalk struct {
	lines     []string
	line, col int    // 0-based, of the next rune in the file
	runes     []rune // of the line
	style     yaml.Style
}

// newScalarWalk stands at the first rune of the scalar's content.
func newScalarWalk(lines []string, n *yaml.Node) (*scalarWalk, bool) {
	w := &scalarWalk{lines: lines, style: n.Style}
	if n.Line < 1 || n.Line > len(lines) {
		return nil, false
	}
	w.goTo(n.Line-1, n.Column-1)
	for w.peek() == '&' || w.peek() == '!' { // an anchor or a tag before it
		for r := w.peek(); r != ' ' && r != '\t' && r != '\n' && r != 0; r = w.peek() {
			w.step()
		}
		w.space()
	}
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		w.step()
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		w.block(n.Value)
	}
	return w, true
}

// goTo stands at a rune of a line.
func (w *scalarWalk) goTo(line, col int) {
	w.line, w.col, w.runes = line, col, nil
	if line < len(w.lines) {
		text := strings.TrimSuffix(w.lines[line], "\r")
		if line == 0 {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		w.runes = []rune(text)
	}
}

// block stands at the first rune of a | or > scalar: behind its header, the lines before its value and its indentation.
func (w *scalarWalk) block(value string) {
	w.goTo(w.line+1, 0)
	if leading(value, "\n") == 0 {
		for w.peek() != 0 && strings.TrimSpace(string(w.runes)) == "" {
			w.goTo(w.line+1, 0)
		}
	}
	for _, written := range w.lines[min(w.line, len(w.lines)):] {
		if strings.TrimSpace(written) != "" {
			indent := leading(written, " ") - leading(strings.TrimLeft(value, "\n"), " ")
			w.col = min(max(indent, 0), len(w.runes))
			return
		}
	}
}

// leading counts how often a sign stands at the start of a text.
func leading(text, sign string) int { return len(text) - len(strings.TrimLeft(text, sign)) }

const lineEnd = '\n'

// peek gives the next rune, lineEnd between lines, 0 behind the last one.
func (w *scalarWalk) peek() rune {
	switch {
	case w.line >= len(w.lines):
		return 0
	case w.col < len(w.runes):
		return w.runes[w.col]
	}
	return lineEnd
}

func (w *scalarWalk) step() {
	if w.line >= len(w.lines) {
		return
	}
	if w.col++; w.col > len(w.runes) {
		w.goTo(w.line+1, 0)
	}
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == lineEnd }

// space passes a run of white space and says whether a line ended in it.
func (w *scalarWalk) space() (ended bool) {
	for isSpace(w.peek()) {
		ended = ended || w.peek() == lineEnd
		w.step()
	}
	return ended
}

// walk passes the part of the file that stands for value. It gives false where the two do not match.
func (w *scalarWalk) walk(value string) bool {
	runes := []rune(value)
	for i := 0; i < len(runes); {
		if w.continued() {
			continue
		}
		if isSpace(runes[i]) && w.foldsHere() {
			w.space()
			for i < len(runes) && isSpace(runes[i]) {
				i++
			}
			continue
		}
		if w.next() != runes[i] {
			return false
		}
		i++
	}
	for w.continued() {
	}
	return true
}

// foldsHere says whether a line ends before the next rune that is no white space.
func (w *scalarWalk) foldsHere() bool {
	ahead := *w
	return ahead.space()
}

// continued passes a line end that a backslash in double quotes makes vanish.
func (w *scalarWalk) continued() bool {
	if w.style&yaml.DoubleQuotedStyle == 0 || w.peek() != '\\' || w.col+1 != len(w.runes) {
		return false
	}
	w.step()
	w.space()
	return true
}

// next passes one rune of the value and gives it.
func (w *scalarWalk) next() rune {
	r := w.peek()
	w.step()
	switch {
	case w.style&yaml.SingleQuotedStyle != 0 && r == '\'':
		w.step() // the second of two
	case w.style&yaml.DoubleQuotedStyle != 0 && r == '\\':
		return w.escape()
	}
	return r
}

var shortEscapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escape passes what follows a backslash in double quotes.
func (w *scalarWalk) escape() rune {
	r := w.peek()
	w.step()
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
	if digits == 0 {
		if short, ok := shortEscapes[r]; ok {
			return short
		}
		return r
	}
	var code rune
	for range digits {
		d := strings.IndexRune("0123456789abcdef", w.peek()|0x20)
		if d < 0 {
			return -1
		}
		code = code<<4 | rune(d)
		w.step()
	}
	return code
}

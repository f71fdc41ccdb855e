package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"flowctl/flows/machine"
)

// Word finds a word or phrase. It is immutable and safe for concurrent use.
type Word struct {
	source string
	runes  []rune // folded, with single spaces
}

// Regexp finds a regular expression. It is immutable and safe for concurrent use.
type Regexp struct {
	source  string
	pattern *regexp.Regexp
}

var (
	_ machine.Keyword = (*Word)(nil)
	_ machine.Pattern = (*Regexp)(nil)
)

// Keyword makes a matcher for a word or phrase. Between its words any white space will do.
func Keyword(word string) (*Word, error) {
	fields := strings.FieldsFunc(string(fold(word, foldCase).runes), unicode.IsSpace)
	switch {
	case len(fields) == 0:
		return nil, errors.New("the keyword is empty; write a word or phrase that a human would use")
	case !strings.ContainsFunc(word, isWordSign):
		return nil, fmt.Errorf("the keyword %s has no letter or digit; write a word or phrase that a human would use", word)
	}
	return &Word{source: word, runes: []rune(strings.Join(fields, " "))}, nil
}

// isWordSign says whether a rune can carry a keyword by itself: letters and digits, and pictures such as emoji.
func isWordSign(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r)
}

// Source is the keyword as written.
func (w *Word) Source() string { return w.source }

// Folded is the keyword as it is compared: equal keywords have equal ones.
func (w *Word) Folded() string { return string(w.runes) }

// Find gives the hits as written in text, left to right; hits do not overlap.
func (w *Word) Find(text string) []string {
	f := fold(text, foldCase)
	var hits []string
	for _, at := range w.spans(&f) {
		hits = append(hits, f.cut(at[0], at[1]))
	}
	return hits
}

// Meant gives the hits that the text does not deny directly before: refund is found but not meant in "no refund" and "I do
// not want a refund", 质量问题 neither in 不是质量问题. What denies is a closed list of words (see denied), for English and
// Chinese in any text; a denial that comes behind the hit, or further before it, is not seen.
func (w *Word) Meant(text string) []string {
	f := fold(text, foldCase)
	var hits []string
	for _, at := range w.spans(&f) {
		if !denied(&f, at[0]) {
			hits = append(hits, f.cut(at[0], at[1]))
		}
	}
	return hits
}

// spans gives where the word stands, from rune to rune.
func (w *Word) spans(f *folded) [][2]int {
	var spans [][2]int
	for i := 0; i < len(f.runes); {
		j := w.matchAt(f, i)
		if j < 0 || !f.stands(i, j) {
			i++
			continue
		}
		spans = append(spans, [2]int{i, j})
		i = j
	}
	return spans
}

// matchAt gives the end of the word when it stands at rune i, else -1.
func (w *Word) matchAt(f *folded, i int) int {
	for _, want := range w.runes {
		if want != ' ' {
			if i >= len(f.runes) || f.runes[i] != want {
				return -1
			}
			i++
			continue
		}
		start := i
		for i < len(f.runes) && unicode.IsSpace(f.runes[i]) {
			i++
		}
		if i == start {
			return -1
		}
	}
	return i
}

// maxShorter bounds how often a blocked hit of a pattern is looked at again with an earlier end.
const maxShorter = 64

// Pattern makes a matcher for a regular expression (RE2). Case and width make no difference; ^ and $ at its ends are
// dropped, since it is looked for inside of what a human wrote.
func Pattern(pattern string) (*Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return nil, fmt.Errorf("the pattern %s is no regular expression (RE2): %s", pattern, reason(err))
	}
	parsed = widen(dropEnds(parsed, true, true))
	compiled, err := regexp.Compile(parsed.String())
	if err != nil {
		return nil, fmt.Errorf("the pattern %s is no regular expression (RE2): %s", pattern, reason(err))
	}
	if parsed.Op == syntax.OpEmptyMatch || parsed.Op == syntax.OpNoMatch {
		return nil, fmt.Errorf("the pattern %q finds nothing; write what a human would type, such as A[0-9]{4}", pattern)
	}
	compiled.Longest() // refund|refunds shall find refunds
	return &Regexp{source: pattern, pattern: compiled}, nil
}

func reason(err error) string {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return bad.Code.String() + " at " + bad.Expr
	}
	return err.Error()
}

// dropEnds takes ^ and $ from the ends of a pattern, in each of its alternatives.
func dropEnds(re *syntax.Regexp, start, end bool) *syntax.Regexp {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpBeginLine:
		if start {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
	case syntax.OpEndText, syntax.OpEndLine:
		if end {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
	case syntax.OpCapture, syntax.OpAlternate:
		for i, sub := range re.Sub {
			re.Sub[i] = dropEnds(sub, start, end)
		}
	case syntax.OpConcat:
		if start {
			re.Sub = dropFirst(re.Sub, end)
		}
		if end {
			re.Sub = dropLast(re.Sub)
		}
		if len(re.Sub) == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
	}
	return re
}

// dropFirst drops from the front of a sequence until something stays; end says whether its last part is an end as well.
func dropFirst(parts []*syntax.Regexp, end bool) []*syntax.Regexp {
	for len(parts) > 0 {
		parts[0] = dropEnds(parts[0], true, end && len(parts) == 1)
		if parts[0].Op != syntax.OpEmptyMatch {
			break
		}
		parts = parts[1:]
	}
	return parts
}

func dropLast(parts []*syntax.Regexp) []*syntax.Regexp {
	for len(parts) > 0 {
		last := len(parts) - 1
		parts[last] = dropEnds(parts[last], false, true)
		if parts[last].Op != syntax.OpEmptyMatch {
			break
		}
		parts = parts[:last]
	}
	return parts
}

// widen makes a pattern fit text whose width has been folded.
func widen(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpLiteral:
		for i, r := range re.Rune {
			re.Rune[i] = foldWidth(r)
		}
	case syntax.OpCharClass:
		var more []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			// A range that leaves the forms behind, as in [^x], holds the usual ones already.
			if lo, hi := re.Rune[i], re.Rune[i+1]; hi-lo < 0x100 {
				for r := lo; r <= hi; r++ {
					if usual := foldWidth(r); usual != r {
						more = append(more, usual, usual)
					}
				}
			}
		}
		re.Rune = append(re.Rune, more...)
	}
	for i, sub := range re.Sub {
		re.Sub[i] = widen(sub)
	}
	return re
}

// Source is the pattern as written.
func (p *Regexp) Source() string { return p.source }

// Find gives the hits as written in text, left to right; hits do not overlap and are never empty.
func (p *Regexp) Find(text string) []string {
	f := fold(text)
	flat := string(f.runes)
	offsets := f.offsets()
	var hits []string
	for i := 0; i < len(f.runes); {
		at := p.pattern.FindStringIndex(flat[offsets[i]:])
		if at == nil {
			break
		}
		from := indexOf(offsets, offsets[i]+at[0])
		to := p.end(&f, flat, offsets, from, indexOf(offsets, offsets[i]+at[1]))
		if to < 0 {
			i = from + 1
			continue
		}
		hits = append(hits, f.cut(from, to))
		i = to
	}
	return hits
}

// end gives the end of the longest hit from rune i to at most j that cuts no token, -1 if there is none.
func (p *Regexp) end(f *folded, flat string, offsets []int, i, j int) int {
	if j <= i || !f.opens(i) {
		return -1
	}
	if f.closes(j) {
		return j
	}
	for tries := 0; tries < maxShorter; tries++ {
		for j--; j > i && (!f.closes(j) || f.splits(j)); j-- {
		}
		if j <= i {
			return -1
		}
		at := p.pattern.FindStringIndex(flat[offsets[i]:offsets[j]])
		if at == nil || at[0] != 0 {
			return -1
		}
		if j = indexOf(offsets, offsets[i]+at[1]); j > i && f.closes(j) && !f.splits(j) {
			return j
		}
	}
	return -1
}

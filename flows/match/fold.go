package match

import (
	"sort"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// folded is a text with all differences of width taken out, and the way back to the original.
type folded struct {
	original string
	runes    []rune
	starts   []int // byte offset of each rune in original, and the length at the end
}

// foldWidth makes the wide forms of ASCII and the narrow forms of Kana and Hangul into the usual ones.
func foldWidth(r rune) rune {
	if r == '\u3000' {
		return ' '
	}
	if r < utf8.RuneSelf {
		return r
	}
	if usual := width.LookupRune(r).Folded(); usual != 0 {
		return usual
	}
	return r
}

// foldCase gives one letter for all its cases.
func foldCase(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

func fold(text string, also ...func(rune) rune) folded {
	f := folded{original: text}
	for i, r := range text { // a byte that is no UTF-8 becomes U+FFFD, and its offset is still its own
		r = foldWidth(r)
		for _, change := range also {
			r = change(r)
		}
		f.runes = append(f.runes, r)
		f.starts = append(f.starts, i)
	}
	f.starts = append(f.starts, len(text))
	return f
}

// cut gives the original of the runes from i to j.
func (f *folded) cut(i, j int) string { return f.original[f.starts[i]:f.starts[j]] }

// runeAt gives the rune with index i; outside of the text it is a line end.
func (f *folded) runeAt(i int) rune {
	if i < 0 || i >= len(f.runes) {
		return '\n'
	}
	return f.runes[i]
}

// offsets gives the byte offset of each rune in string(f.runes), and the length at the end.
func (f *folded) offsets() []int {
	out := make([]int, 0, len(f.runes)+1)
	n := 0
	for _, r := range f.runes {
		out = append(out, n)
		n += max(utf8.RuneLen(r), 1)
	}
	return append(out, n)
}

// indexOf finds the rune that starts at a byte offset.
func indexOf(offsets []int, offset int) int { return sort.SearchInts(offsets, offset) }

// kind says what a rune is for the rule of neighbours.
type kind int

const (
	kindFree kind = iota // signs, spaces, and scripts without spaces: never blocks
	kindDigit
	kindMark  // belongs to the letter before it
	kindOther // a letter of a script that is not listed below
	kindFirst // the first of letterKinds
)

// letterKinds are scripts whose letters are kept apart: a Cyrillic neighbour does not block a Latin word.
var letterKinds = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic, unicode.Devanagari,
	unicode.Bengali, unicode.Tamil, unicode.Thai, unicode.Georgian, unicode.Ethiopic,
}

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case '0' <= r && r <= '9':
			return kindDigit
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			return kindFirst
		}
		return kindFree
	case isFree(r):
		return kindFree
	case unicode.Is(unicode.Nd, r):
		return kindDigit
	case unicode.Is(unicode.M, r):
		return kindMark
	case !unicode.IsLetter(r):
		return kindFree
	}
	for i, script := range letterKinds {
		if unicode.Is(script, r) {
			return kindFirst + kind(i)
		}
	}
	return kindOther
}

// isFree says whether a rune belongs to a script that is written without spaces. U+30FC, the long vowel, is used in Kana
// only but counted to no script.
func isFree(r rune) bool {
	return r == '\u30FC' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// stands says whether the runes from i to j touch no letter or digit of their own kind.
func (f *folded) stands(i, j int) bool { return f.opens(i) && f.closes(j) }

// opens says whether something may start at rune i.
func (f *folded) opens(i int) bool {
	first, before := kindOf(f.runeAt(i)), kindOf(f.runeAt(i-1))
	if first == kindMark {
		return before == kindFree || before == kindDigit
	}
	return first == kindFree || before != first && !(before == kindMark && f.letterBefore(i) == first)
}

// letterBefore gives the kind of the letter that the marks before rune i belong to.
func (f *folded) letterBefore(i int) kind {
	for i--; kindOf(f.runeAt(i)) == kindMark; i-- {
	}
	return kindOf(f.runeAt(i))
}

// closes says whether something may end before rune j.
func (f *folded) closes(j int) bool {
	last, after := kindOf(f.runeAt(j-1)), kindOf(f.runeAt(j))
	if last == kindMark {
		last = f.letterBefore(j)
	}
	switch last {
	case kindFree:
		return true
	case kindDigit:
		return after != kindDigit
	}
	return after != last && after != kindMark
}

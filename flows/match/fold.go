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
	kindFree  kind = iota // signs, spaces, and scripts without spaces: never blocks
	kindMark              // belongs to the letter before it
	kindToken             // Latin letters and digits, which make one token: A1001, 5kg
	kindOther             // a letter of a script that is not listed below
	kindFirst             // the first of letterKinds
)

// letterKinds are scripts whose letters are kept apart: a Cyrillic neighbour does not block a Latin word.
var letterKinds = []*unicode.RangeTable{
	unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic, unicode.Devanagari,
	unicode.Bengali, unicode.Tamil, unicode.Thai, unicode.Georgian, unicode.Ethiopic,
}

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if isASCIIDigit(r) || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return kindToken
		}
		return kindFree
	case isFree(r):
		return kindFree
	case unicode.Is(unicode.Nd, r) || unicode.Is(unicode.Latin, r):
		return kindToken
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

// isJoint says whether a sign makes one token of what stands on its two sides without a space: B-A1001, a1001@b.co.
func isJoint(r rune) bool {
	return r == '-' || r == '@' || r == '.' || r == '\u2010' || r == '\u2011'
}

// kindAt is the kind of rune i as a neighbour: a mark counts as the letter before it, and _ as a letter.
func (f *folded) kindAt(i int) kind {
	for ; kindOf(f.runeAt(i)) == kindMark; i-- {
	}
	if f.runeAt(i) == '_' {
		return kindToken
	}
	return kindOf(f.runeAt(i))
}

// same says whether the runes i and j could stand in one token.
func (f *folded) same(i, j int) bool {
	k := f.kindAt(i)
	return k != kindFree && k == f.kindAt(j)
}

// glued says whether rune i goes on with the token of the rune before it.
func (f *folded) glued(i int) bool {
	if kindOf(f.runeAt(i)) == kindMark {
		before := f.runeAt(i - 1)
		return kindOf(before) != kindFree && !unicode.IsDigit(before)
	}
	return f.same(i-1, i)
}

// stands says whether the runes from i to j are no piece of a longer token.
func (f *folded) stands(i, j int) bool { return f.opens(i) && f.closes(j) }

// opens says whether something may start at rune i.
func (f *folded) opens(i int) bool {
	return !f.glued(i) && !(isJoint(f.runeAt(i-1)) && f.same(i-2, i))
}

// closes says whether something may end before rune j.
func (f *folded) closes(j int) bool {
	return !f.glued(j) && !(isJoint(f.runeAt(j)) && f.same(j-1, j+1))
}

// splits says whether the place before rune j lies in a token, behind a sign that joins it.
func (f *folded) splits(j int) bool { return isJoint(f.runeAt(j-1)) && f.same(j-2, j) }

package tokens

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// headParts of headParts+tailParts of what is kept stands at the beginning.
	headParts = 2
	tailParts = 1
	// precision is the part of what is kept, as one of so many, that a search may fall short of the most that fits.
	precision = 100
	// tries is how often a result is measured as a whole, should it have more tokens than its parts.
	tries = 4
)

// Cut shortens a text to limit tokens. What fits is given as it is. Of a longer text it keeps the beginning and, half as
// long, the end, and puts a marker in the place of the rest that says how much that was:
//
//	The first lines … [cut: 1,234 of 5,678 tokens left out] … the last words
//
// The result, with its marker, has at most limit tokens, and up to about 1 % less than would fit. It is cut between
// characters as people see them: not inside an emoji of several parts, nor before an accent of its own. Bytes that are no
// UTF-8 become replacement characters, so that the result is valid. ok is false, and the result empty, where the limit is
// too small for the marker alone.
func Cut(c Counter, text string, limit int64) (cut string, ok bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	total := c.Count(text)
	if total <= limit {
		return text, true
	}
	bare := marker(total, total)
	bareCost := c.Count(bare)
	if bareCost > limit {
		return "", false
	}
	s := search{counter: c, text: text, total: total}
	budget := limit
	for range tries {
		kept := s.longest(budget, bareCost)
		if kept == 0 {
			break
		}
		cut, _ = s.keep(kept)
		over := c.Count(cut) - limit
		if over <= 0 {
			return cut, true
		}
		budget -= over
	}
	return bare, true
}

// search looks for the longest cut of a text within a budget.
type search struct {
	counter Counter
	text    string
	total   int64 // tokens of the text
}

// longest gives the most bytes that can be kept while the parts of the cut have at most budget tokens together. Where
// none are kept, the cut costs bare tokens. It measures some ten texts of about the size of the cut.
func (s search) longest(budget, bare int64) int {
	fits, cost := 0, bare                       // bytes that can be kept, and the tokens of that cut
	over, overCost := len(s.text), s.total+bare // bytes that cannot
	for try := 0; over-fits > 1+fits/precision; try++ {
		// Tokens are spread about evenly, so that a straight line mostly comes near at once; halving sees to the rest.
		size := fits + (over-fits)/2
		if try%2 == 0 && cost < budget && budget < overCost {
			part := float64(budget-cost) / float64(overCost-cost)
			size = fits + int(part*float64(over-fits))
			size = min(max(size, fits+1), over-1)
		}
		if _, n := s.keep(size); n <= budget {
			fits, cost = size, n
		} else {
			over, overCost = size, n
		}
	}
	return fits
}

// keep gives the cut that keeps at most some bytes of the text, and the tokens of its parts.
func (s search) keep(size int) (cut string, tokens int64) {
	first := size * headParts / (headParts + tailParts)
	head := s.text[:before(s.text, first)]
	tail := s.text[after(s.text, len(s.text)-(size-first)):]
	kept := s.counter.Count(head) + s.counter.Count(tail)
	m := marker(max(s.total-kept, 1), s.total)
	return head + m + tail, kept + s.counter.Count(m)
}

func marker(left, total int64) string {
	return fmt.Sprintf("… [cut: %s of %s tokens left out] …", grouped(left), grouped(total))
}

// grouped writes a number that is not negative with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// clusterRunes is how many runes of one visible character are held together. Longer ones are cut like others.
const clusterRunes = 32

// before gives the last place up to i where the text can be cut.
func before(text string, i int) int {
	i = runeStart(text, i)
	for place, n := i, 0; n < clusterRunes; n++ {
		if !joined(text, place) {
			return place
		}
		_, w := utf8.DecodeLastRuneInString(text[:place])
		place -= w
	}
	return i
}

// after gives the first place from i on where the text can be cut.
func after(text string, i int) int {
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	for place, n := i, 0; n < clusterRunes; n++ {
		if !joined(text, place) {
			return place
		}
		_, w := utf8.DecodeRuneInString(text[place:])
		place += w
	}
	return i
}

func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// joined says whether the runes on both sides of a place are parts of one visible character.
func joined(text string, i int) bool {
	if i <= 0 || i >= len(text) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	next, _ := utf8.DecodeRuneInString(text[i:])
	switch {
	case last == '\r':
		return next == '\n'
	case last == zeroWidthJoiner, next == zeroWidthJoiner, unicode.IsMark(next):
		return true
	case skinToneFirst <= next && next <= skinToneLast, tagFirst <= next && next <= tagLast:
		return true
	case flagLetter(last) && flagLetter(next):
		return flagLettersBefore(text, i)%2 == 1
	}
	return false
}

const (
	zeroWidthJoiner = '\u200D'
	skinToneFirst   = '\U0001F3FB'
	skinToneLast    = '\U0001F3FF'
	tagFirst        = '\U000E0020' // tags spell the flags of regions behind a black flag
	tagLast         = '\U000E007F'
)

// flagLetter says whether a rune is one of the letters of which two make a flag.
func flagLetter(r rune) bool { return '\U0001F1E6' <= r && r <= '\U0001F1FF' }

// flagLettersBefore counts the flag letters that stand in a row before a place.
func flagLettersBefore(text string, i int) int {
	for n := 0; ; n++ {
		r, w := utf8.DecodeLastRuneInString(text[:i])
		if !flagLetter(r) {
			return n
		}
		i -= w
	}
}

package tokens

import (
	"unicode"
	"unicode/utf8"
)

// The estimate reads a text in runs of one kind, as the encodings do: a word, a number, punctuation, space. Costs were
// fitted to the o200k encoding, with the doubt on the side of more: other encodings know fewer words of most languages.
//
//	word          a token per five letters. A capital behind a small letter begins a new word; further capitals in a row
//	              count double, and so do a-z behind the twelfth letter, which are no language any more. An accented Latin
//	              letter counts as five, one of another alphabet as two or three
//	coded data    sixteen or more of a-z, A-Z and 0-9 in a row, with all three among them: two tokens per three characters
//	Han, Kana, Hangul, their punctuation, full-width forms
//	              a token each; rare Han three or four
//	digits        a token per two
//	punctuation   a token per two signs, per one from the fifth in a row; a line such as ---- a token per eight
//	space         one space before a word or a sign is free, before a digit a token; line ends are a token per eight in a row,
//	              further spaces one per sixteen
//	emoji         two tokens or three, and one for each character that joins them or picks a form
//	others        by their block of Unicode; scripts that few models know, and private characters, up to a token per byte
const (
	wordPoints   = 5  // letters that a token of a word holds
	wordLength   = 12 // letters of the longest word that counts as language
	codedLength  = 16 // characters of the shortest run that counts as coded data
	numberDigits = 2  // digits that a token holds
	denseSigns   = 4  // signs in a row of which a token holds two
	lineLength   = 8  // equal signs in a row that a token holds
	endsLength   = 8  // line ends in a row that a token holds
	indentLength = 16 // spaces in a row that a token holds
)

// kind tells bytes apart.
type kind uint8

const (
	control kind = iota
	small
	capital
	digit
	sign
	blank   // space and tab
	newline // CR and LF
	foreign // part of a character that is not ASCII
	allKinds
)

// kinds is the kind of each byte.
var kinds = func() (table [256]kind) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z':
			table[c] = small
		case 'A' <= c && c <= 'Z':
			table[c] = capital
		case '0' <= c && c <= '9':
			table[c] = digit
		case c == ' ' || c == '\t':
			table[c] = blank
		case c == '\n' || c == '\r':
			table[c] = newline
		case '!' <= c && c <= '~':
			table[c] = sign
		case c >= utf8.RuneSelf:
			table[c] = foreign
		}
	}
	return table
}()

// estimate counts by the kinds of characters alone. It needs no memory and reads a text once.
type estimate struct{}

// Count implements Counter.
func (estimate) Count(text string) int64 {
	var n int64
	for i := 0; i < len(text); {
		size, cost := run(text[i:])
		i += size
		n += cost
	}
	return n
}

// run gives the length in bytes of the first run of a text that is not empty, and its tokens.
func run(text string) (size int, cost int64) {
	switch k := kinds[text[0]]; k {
	case small, capital, digit:
		return alphanumeric(text)
	case sign:
		return signs(text)
	case blank:
		return blanks(text)
	case newline:
		size = span(text, k)
		return size, ceil(size, endsLength)
	case foreign:
		return character(text)
	default:
		return 1, 1
	}
}

func ceil(n, per int) int64 { return int64((n + per - 1) / per) }

// span gives the length of the characters of one kind that a text begins with.
func span(text string, k kind) int {
	i := 0
	for i < len(text) && kinds[text[i]] == k {
		i++
	}
	return i
}

// alphanumeric reads words and numbers up to the end of a-z, A-Z and 0-9 in a row, or of the word that is there.
func alphanumeric(text string) (size int, cost int64) {
	end, seen := 0, [allKinds]bool{}
	for ; end < len(text); end++ {
		k := kinds[text[end]]
		if k != small && k != capital && k != digit {
			break
		}
		seen[k] = true
	}
	if end >= codedLength && seen[small] && seen[capital] && seen[digit] {
		return end, ceil(2*end, 3)
	}
	for size < end {
		var n int
		var c int64
		if kinds[text[size]] == digit {
			n = span(text[size:], digit)
			c = ceil(n, numberDigits)
		} else {
			n, c = word(text[size:])
		}
		size += n
		cost += c
	}
	return size, cost
}

// word reads the letters of one word.
func word(text string) (size int, cost int64) {
	points, letters, lower := 0, 0, false
reading:
	for ; size < len(text); letters++ {
		p, w := 1, 1
		switch kinds[text[size]] {
		case small:
			lower = true
		case capital:
			if lower {
				break reading
			}
			if letters > 0 {
				p = 2
			}
		case foreign:
			var r rune
			r, w = utf8.DecodeRuneInString(text[size:])
			if p = letterPoints(r); p == 0 {
				break reading
			}
		default:
			break reading
		}
		if w == 1 && letters >= wordLength {
			p *= 2
		}
		size += w
		points += p
	}
	return size, ceil(points, wordPoints)
}

// signs reads punctuation.
func signs(text string) (size int, cost int64) {
	size = span(text, sign)
	half := 0 // in half tokens
	for i := 0; i < size; {
		equal := i + 1
		for equal < size && text[equal] == text[i] {
			equal++
		}
		n := equal - i
		switch {
		case n > 2 && drawsLines(text[i]):
			half += 1 + 2*int(ceil(n, lineLength))
		case i < denseSigns:
			half += min(n, denseSigns-i) + 2*max(n-(denseSigns-i), 0)
		default:
			half += 2 * n
		}
		i = equal
	}
	return size, ceil(half, 2)
}

// drawsLines says whether encodings have tokens for many of a sign in a row.
func drawsLines(c byte) bool {
	switch c {
	case '-', '=', '_', '*', '#', '.', '~', '/', '+':
		return true
	}
	return false
}

// blanks reads spaces and tabs. The last one is part of what follows, unless that is a number.
func blanks(text string) (size int, cost int64) {
	size = span(text, blank)
	if size == len(text) || kinds[text[size]] == digit {
		return size, ceil(size, indentLength)
	}
	return size, ceil(size-1, indentLength)
}

// character reads a character that is not ASCII, or the word that it begins.
func character(text string) (size int, cost int64) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r == utf8.RuneError:
		return size, 1
	case letterPoints(r) > 0:
		return word(text)
	}
	return size, blockOf(r).cost
}

// letterPoints gives how many letters of a word a rune counts as, 0 if it is not read as part of a word.
func letterPoints(r rune) int {
	if b := blockOf(r); b.points > 0 && (unicode.IsLetter(r) || unicode.IsMark(r)) {
		return b.points
	}
	return 0
}

// block is a range of runes that cost the same, up to and with its last: as letters of words in points where they are
// letters and points is not 0, else in tokens.
type block struct {
	last   rune
	points int
	cost   int64
}

// blocks covers the runes that are not ASCII, in their order. CJK characters cost a token or more, and no points.
var blocks = []block{
	{0x00BF, 0, 1}, // signs
	{0x024F, 5, 1}, // Latin
	{0x03FF, 3, 1}, // phonetic letters, accents, Greek
	{0x052F, 2, 1}, // Cyrillic
	{0x0EFF, 3, 2}, // Armenian, Hebrew, Arabic, scripts of India, Thai, Lao
	{0x0FFF, 0, 2}, // Tibetan
	{0x10FF, 3, 2}, // Myanmar, Georgian
	{0x11FF, 0, 3}, // Hangul in parts
	{0x139F, 0, 2}, // Ethiopic
	{0x177F, 0, 3}, // scripts that few models know
	{0x17FF, 3, 2}, // Khmer
	{0x1DFF, 0, 3}, // scripts that few models know
	{0x1EFF, 4, 2}, // Latin of Vietnam
	{0x1FFF, 0, 2}, // old Greek
	{0x21FF, 0, 1}, // punctuation, currencies, arrows
	{0x24FF, 0, 2}, // mathematics
	{0x25FF, 0, 1}, // boxes
	{0x2BFF, 0, 2}, // symbols
	{0x2FFF, 0, 3}, // old scripts, parts of Han
	{0x30FF, 0, 1}, // CJK punctuation, Kana
	{0x4DBF, 0, 3}, // Bopomofo, CJK in circles and squares, rare Han
	{0x9FFF, 0, 1}, // Han
	{0xABFF, 0, 3}, // scripts that few models know
	{0xD7A3, 0, 1}, // Hangul
	{0xFDFF, 0, 3}, // private use, forms of Han and Arabic
	{0xFE0F, 0, 1}, // choice of a form
	{0xFEFF, 0, 3}, // forms of CJK punctuation and of Arabic
	{0xFFEF, 0, 1}, // full-width forms
	{0xFFFF, 0, 1}, // the replacement character
	{0x1EFFF, 0, 4},
	{0x1F8FF, 0, 2},         // emoji
	{0x1FAFF, 0, 3},         // newer emoji
	{unicode.MaxRune, 0, 4}, // rarest Han, private use
}

// blockOf finds the block of a rune.
func blockOf(r rune) block {
	from, to := 0, len(blocks)-1
	for from < to {
		if mid := (from + to) / 2; blocks[mid].last < r {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return blocks[from]
}

package match

import (
	"regexp"
	"strings"
	"unicode"

	"flowctl/flows/machine"
)

// Found is something found by its type.
type Found struct {
	Text  string        // as it stands in the text
	Value machine.Value // what it means
}

// Integers finds whole numbers that stand for themselves: "2", "-5", "1,000", "1 000", "我要2个". Numbers that are part of a
// larger token (A1001, 2024-001, 1.5, 10:30, 5kg), dates and numbers with leading zeros are none. Nor is the number behind
// a capital letter that stands alone, since "A 1001" is more likely an identifier; I and X, which are words, do not count.
// Groups of three digits with a space between them are one number where they cannot be several: 1 000, not 2 500. Values
// are int64.
func Integers(text string) []Found {
	var out []Found
	for _, hit := range numbers(text) {
		if whole, ok := hit.Value.(int64); ok && !strings.Contains(hit.Text, ".") {
			out = append(out, Found{hit.Text, whole})
		}
	}
	return out
}

// Numbers finds what Integers finds, and decimal fractions with a point: "1.5", "1,000.25". Values are int64 or float64.
func Numbers(text string) []Found { return numbers(text) }

var (
	plainNumber   = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	groupedNumber = regexp.MustCompile(`^[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?$`)

	// spacedNumber is a number in groups with spaces or apostrophes between them.
	spacedNumber = regexp.MustCompile(`[1-9][0-9]{0,2}(?:[ \x{A0}\x{2009}\x{202F}'’][0-9]{3})+(?:\.[0-9]+)?`)
	// oneReading is in such a number what keeps its groups from being several numbers.
	oneReading = regexp.MustCompile(`[\x{A0}\x{2009}\x{202F}'’]| 0`)
	separators = regexp.MustCompile(`[, \x{A0}\x{2009}\x{202F}'’]`)
)

func numbers(text string) []Found {
	f := fold(text)
	dates, spaced := dateSpans(&f), spacedNumbers(&f)
	var out []Found
	for i := 0; i < len(f.runes); {
		if !isWordRune(f.runes[i]) {
			i++
			continue
		}
		j := tokenEnd(&f, i)
		parts := numberParts(&f, i, j)
		if end, ok := spaced[i]; ok {
			j, parts = end, [][2]int{{i, end}}
		}
		if !inSpans(dates, i) && !f.named(i) {
			for _, part := range parts {
				if hit, ok := numberAt(&f, part[0], part[1]); ok {
					out = append(out, hit)
				}
			}
		}
		i = j
	}
	return out
}

// spacedNumbers gives the end of each number in groups with spaces between them, by its start.
func spacedNumbers(f *folded) map[int]int {
	flat := string(f.runes)
	offsets := f.offsets()
	ends := map[int]int{}
	for _, at := range spacedNumber.FindAllStringIndex(flat, -1) {
		i, j := indexOf(offsets, at[0]), indexOf(offsets, at[1])
		more := unicode.IsSpace(f.runeAt(i-1)) && isASCIIDigit(f.runeAt(i-2)) || unicode.IsSpace(f.runeAt(j)) && isASCIIDigit(f.runeAt(j+1))
		if !more && alone(f, i, j) && oneReading.MatchString(flat[at[0]:at[1]]) {
			ends[i] = j
		}
	}
	return ends
}

// named says whether a number that starts at rune i is more likely a name: A 1001, 第5.
func (f *folded) named(i int) bool {
	before := f.runeAt(i - 1)
	letter := f.runeAt(i - 2)
	return before == '第' || unicode.IsSpace(before) && 'A' <= letter && letter <= 'Z' && letter != 'I' && letter != 'X' &&
		f.opens(i-2)
}

// isWordRune says whether a rune makes a token: a digit, or a letter of a script with spaces.
func isWordRune(r rune) bool { return kindOf(r) != kindFree }

func isASCIIDigit(r rune) bool { return '0' <= r && r <= '9' }

// tokenEnd gives the end of the token that starts at rune i: letters and digits, and the signs that join them.
func tokenEnd(f *folded, i int) int {
	for i < len(f.runes) {
		if isWordRune(f.runes[i]) || joins(f, i) {
			i++
			continue
		}
		break
	}
	return i
}

// joins says whether the sign at rune i makes one token of what stands on its two sides.
func joins(f *folded, i int) bool {
	before, after := f.runeAt(i-1), f.runeAt(i+1)
	if !isWordRune(before) || !isWordRune(after) {
		return false
	}
	switch f.runes[i] {
	case '-', '_', '\u2010', '\u2011', '\u2013':
		return true
	case '.', '/', ':', '\\':
		return isASCIIDigit(before) == isASCIIDigit(after)
	case ',':
		return isASCIIDigit(before) && isASCIIDigit(after)
	}
	return false
}

// numberParts gives the token itself, or where commas in it separate no thousands, what stands between them. With points
// as well (1.000,50) there is no one reading, and the token stays one that is no number; nor is there one with parts that
// are no numbers by themselves (1,00).
func numberParts(f *folded, i, j int) [][2]int {
	token := string(f.runes[i:j])
	if !strings.Contains(token, ",") || strings.Contains(token, ".") || groupedNumber.MatchString(token) {
		return [][2]int{{i, j}}
	}
	var parts [][2]int
	for k := i; k <= j; k++ {
		if k == j || f.runes[k] == ',' {
			if k > i+1 && f.runes[i] == '0' {
				return nil
			}
			parts = append(parts, [2]int{i, k})
			i = k + 1
		}
	}
	return parts
}

// numberAt reads the number from rune i to j, with the sign or point before it.
func numberAt(f *folded, i, j int) (Found, bool) {
	digits := string(f.runes[i:j])
	if !plainNumber.MatchString(digits) && !groupedNumber.MatchString(digits) && !spacedNumber.MatchString(digits) {
		return Found{}, false
	}
	before, earlier := f.runeAt(i-1), f.runeAt(i-2)
	switch {
	case before == '.' && earlier != '.' && !isFree(earlier) && !isWordRune(earlier):
		// .5 is a fraction that somebody wrote short.
		if strings.Contains(digits, ".") {
			return Found{}, false
		}
		i, digits = i-1, "0."+digits
	case before == '-' || before == '\u2212':
		if isFree(earlier) || isWordRune(earlier) || earlier == '-' {
			return Found{}, false // 订单-5, x-5 and --5 are no minus five
		}
		i, digits = i-1, "-"+digits
	case before == '+' && !isWordRune(earlier) && !isFree(earlier):
		i--
	}
	v, err := machine.DecodeValue([]byte(separators.ReplaceAllString(digits, "")))
	if err != nil {
		return Found{}, false
	}
	return Found{f.cut(i, j), v}, true
}

func inSpans(spans [][2]int, i int) bool {
	for _, span := range spans {
		if span[0] <= i && i < span[1] {
			return true
		}
	}
	return false
}

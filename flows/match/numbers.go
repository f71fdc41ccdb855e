package match

import (
	"regexp"
	"strings"

	"flowctl/flows/machine"
)

// Found is something found by its type.
type Found struct {
	Text  string        // as it stands in the text
	Value machine.Value // what it means
}

// Integers finds whole numbers that stand for themselves: "2", "-5", "1,000", "我要2个". Numbers that are part of a larger
// token (A1001, 2024-001, 1.5, 10:30, 5kg), dates and numbers with leading zeros are none. Values are int64.
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
)

func numbers(text string) []Found {
	f := fold(text)
	dates := dateSpans(&f)
	var out []Found
	for i := 0; i < len(f.runes); {
		if !isWordRune(f.runes[i]) {
			i++
			continue
		}
		j := tokenEnd(&f, i)
		if !inSpans(dates, i) {
			for _, part := range numberParts(&f, i, j) {
				if hit, ok := numberAt(&f, part[0], part[1]); ok {
					out = append(out, hit)
				}
			}
		}
		i = j
	}
	return out
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
// as well (1.000,50) there is no one reading, and the token stays one that is no number.
func numberParts(f *folded, i, j int) [][2]int {
	token := string(f.runes[i:j])
	if !strings.Contains(token, ",") || strings.Contains(token, ".") || groupedNumber.MatchString(token) {
		return [][2]int{{i, j}}
	}
	var parts [][2]int
	for k := i; k <= j; k++ {
		if k == j || f.runes[k] == ',' {
			parts = append(parts, [2]int{i, k})
			i = k + 1
		}
	}
	return parts
}

// numberAt reads the number from rune i to j, with the sign or point before it.
func numberAt(f *folded, i, j int) (Found, bool) {
	digits := string(f.runes[i:j])
	if !plainNumber.MatchString(digits) && !groupedNumber.MatchString(digits) {
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
	v, err := machine.DecodeValue([]byte(strings.ReplaceAll(digits, ",", "")))
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

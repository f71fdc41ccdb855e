package match

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dates finds full dates that can be read in one way only: 2024-01-31, 2024/1/31, 2024.1.31, 2024年1月31日, 31.1.2024,
// 31 January 2024, Jan 31, 2024. 1/2/2024 is none, since it may be two days; nor is a day that no calendar has. Values
// are ISO dates such as "2024-01-31".
func Dates(text string) []Found {
	f := fold(text)
	var out []Found
	for _, d := range datesIn(&f) {
		out = append(out, Found{f.cut(d.from, d.to), d.iso})
	}
	return out
}

// foundDate is a date from rune from to rune to.
type foundDate struct {
	from, to int
	iso      string
}

const monthNames = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|` +
	`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`

// dateForms are the ways to write a date. order says what its groups are: y, m and d, or ? for a day and a month of which
// the values must tell which is which.
var dateForms = []struct {
	pattern *regexp.Regexp
	order   string
}{
	{regexp.MustCompile(`([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})`), "ymd"},
	{regexp.MustCompile(`([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})`), "ymd"},
	{regexp.MustCompile(`([0-9]{4})\.([0-9]{1,2})\.([0-9]{1,2})`), "ymd"},
	{regexp.MustCompile(`([0-9]{4})\s*年\s*([0-9]{1,2})\s*月\s*([0-9]{1,2})\s*[日号號]?`), "ymd"},
	{regexp.MustCompile(`([0-9]{1,2})-([0-9]{1,2})-([0-9]{4})`), "??y"},
	{regexp.MustCompile(`([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})`), "??y"},
	{regexp.MustCompile(`([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})`), "??y"},
	{regexp.MustCompile(`(?i)([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthNames + `,? ([0-9]{4})`), "dmy"},
	{regexp.MustCompile(`(?i)` + monthNames + ` ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})`), "mdy"},
}

func datesIn(f *folded) []foundDate {
	flat := string(f.runes)
	offsets := f.offsets()
	var out []foundDate
	for _, form := range dateForms {
		for _, at := range form.pattern.FindAllStringSubmatchIndex(flat, -1) {
			from, to := indexOf(offsets, at[0]), indexOf(offsets, at[1])
			parts := []string{flat[at[2]:at[3]], flat[at[4]:at[5]], flat[at[6]:at[7]]}
			iso, ok := isoDate(parts, form.order)
			if ok && alone(f, from, to) {
				out = append(out, foundDate{from, to, iso})
			}
		}
	}
	slices.SortFunc(out, func(a, b foundDate) int { return a.from - b.from })
	return out
}

// dateSpans gives where the dates stand.
func dateSpans(f *folded) [][2]int {
	var spans [][2]int
	for _, d := range datesIn(f) {
		spans = append(spans, [2]int{d.from, d.to})
	}
	return spans
}

// alone says whether a date is no part of a larger token. A time may follow it.
func alone(f *folded, from, to int) bool {
	const joints = "-/.:_"
	before, after := f.runeAt(from-1), f.runeAt(to)
	if isWordRune(before) || strings.ContainsRune(joints, before) && isWordRune(f.runeAt(from-2)) {
		return false
	}
	if after == 'T' && isASCIIDigit(f.runeAt(to+1)) {
		return true
	}
	return !isWordRune(after) && !(strings.ContainsRune(joints, after) && isWordRune(f.runeAt(to+1)))
}

// isoDate reads the three parts of a date.
func isoDate(parts []string, order string) (string, bool) {
	var year, month, day int
	var open []int
	for i, part := range parts {
		switch order[i] {
		case 'y':
			year, _ = strconv.Atoi(part)
		case 'm':
			month = monthOf(part)
		case 'd':
			day, _ = strconv.Atoi(part)
		default:
			n, _ := strconv.Atoi(part)
			open = append(open, n)
		}
	}
	if len(open) == 2 {
		switch a, b := open[0], open[1]; {
		case a > 12 || a == b:
			day, month = a, b
		case b > 12:
			month, day = a, b
		default:
			return "", false
		}
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if year < 1 || t.Year() != year || int(t.Month()) != month || t.Day() != day {
		return "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day), true
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// monthOf reads a month as a number or an English name.
func monthOf(part string) int {
	if n, err := strconv.Atoi(part); err == nil {
		return n
	}
	return slices.Index(months, strings.ToLower(part[:3])) + 1
}

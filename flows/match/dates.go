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
		if d.why == "" {
			out = append(out, Found{f.cut(d.from, d.to), d.iso})
		}
	}
	return out
}

// NoDate is something that looks like a date and is none.
type NoDate struct {
	Text string // as it stands in the text
	Why  DateFault
}

// DateFault says why something is no date.
type DateFault string

// What keeps something that looks like a date from being one.
const (
	NoSuchDay   DateFault = "no_such_day"  // 2026-02-30
	TwoReadings DateFault = "two_readings" // 1/2/2026 is a day in January, or in February
	NoYear      DateFault = "no_year"      // 1 May, 5月1日
)

// NoDates finds what was meant as a date but cannot be read as one.
func NoDates(text string) []NoDate {
	f := fold(text)
	var out []NoDate
	for _, d := range datesIn(&f) {
		if d.why != "" {
			out = append(out, NoDate{f.cut(d.from, d.to), d.why})
		}
	}
	return out
}

// foundDate is a date from rune from to rune to, or what looks like one: then why says why it is none.
type foundDate struct {
	from, to int
	iso      string
	why      DateFault
}

const monthNames = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|` +
	`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`

// dateForms are the ways to write a date. order says what its groups are: y, m and d, or ? for a day and a month of which
// the values must tell which is which. Those without a year come last.
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
	{regexp.MustCompile(`([0-9]{1,2}|` + chineseDay + `)\s*月\s*([0-9]{1,2}|` + chineseDay + `)\s*[日号號]`), "md"},
	{regexp.MustCompile(`(?i)([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthNames), "dm"},
	{regexp.MustCompile(`(?i)` + monthNames + ` ([0-9]{1,2})(?:st|nd|rd|th)?`), "md"},
}

// chineseDay is a number from 1 to 31 in Chinese.
const chineseDay = `[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九]`

func datesIn(f *folded) []foundDate {
	flat := string(f.runes)
	offsets := f.offsets()
	var out []foundDate
	for _, form := range dateForms {
		for _, at := range form.pattern.FindAllStringSubmatchIndex(flat, -1) {
			d := foundDate{from: indexOf(offsets, at[0]), to: indexOf(offsets, at[1])}
			var parts []string
			for i := 2; i < len(at); i += 2 {
				parts = append(parts, flat[at[i]:at[i+1]])
			}
			d.iso, d.why = readDate(parts, form.order)
			inside := func(other foundDate) bool { return other.from < d.to && d.from < other.to }
			if alone(f, d.from, d.to) && !slices.ContainsFunc(out, inside) && !(d.why == NoYear && isVerb(flat[at[0]:at[1]])) {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b foundDate) int { return a.from - b.from })
	return out
}

// isVerb says whether a date without a year may be no date at all: in small letters, may and march are verbs.
func isVerb(text string) bool {
	return strings.Contains(text, "may") || strings.Contains(text, "mar")
}

// dateSpans gives where the dates stand, and what was meant as one.
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

// readDate reads the parts of a date.
func readDate(parts []string, order string) (iso string, why DateFault) {
	if len(parts) < 3 {
		return "", NoYear
	}
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
			return "", TwoReadings
		}
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if year < 1 || t.Year() != year || int(t.Month()) != month || t.Day() != day {
		return "", NoSuchDay
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day), ""
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// monthOf reads a month as a number or an English name.
func monthOf(part string) int {
	if n, err := strconv.Atoi(part); err == nil {
		return n
	}
	return slices.Index(months, strings.ToLower(part[:3])) + 1
}

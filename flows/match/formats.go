package match

import (
	"regexp"
	"strings"
	"unicode"
)

const clock = `([01]?[0-9]|2[0-3]):([0-5][0-9])(:[0-5][0-9](?:\.[0-9]+)?)?(z|[+-][0-9]{2}:[0-9]{2})?`

// The looks of formats.
var (
	emailForm    = regexp.MustCompile(`(?i)[a-z0-9][a-z0-9.!#$%&*+/=?^_{|}~-]*@[a-z0-9-]+(?:\.[a-z0-9-]*[a-z0-9])+`)
	uriForm      = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[a-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+`)
	uuidForm     = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	timeForm     = regexp.MustCompile(`(?i)` + clock)
	dateTimeForm = regexp.MustCompile(`(?i)([0-9]{4}-[0-9]{2}-[0-9]{2})(?:t|\s+)` + clock)
)

// Finds says whether Formats knows a format.
func Finds(format string) bool {
	switch format {
	case "email", "uri", "iri", "uuid", "time", "date-time":
		return true
	}
	return false
}

// Formats finds texts of a format of JSON Schema: email, uri, iri, uuid, time, date-time. The signs that end a sentence
// belong to none of them. A web address that letters of another script follow at once is left out, since nobody knows
// where it ends. Values are the texts in the form that the schema takes: 9:30+02:00 becomes 09:30:00+02:00. One that breaks
// the schema all the same, such as a time without zone, is for the caller to refuse.
func Formats(text, format string) []Found {
	switch format {
	case "email":
		return formatted(text, emailForm, nil)
	case "uri", "iri":
		return uris(text)
	case "uuid":
		return formatted(text, uuidForm, nil)
	case "time":
		return formatted(text, timeForm, func(p []string) string { return zoned(p[1:]) })
	case "date-time":
		return formatted(text, dateTimeForm, func(p []string) string {
			if p[5] == "" {
				return p[0]
			}
			return p[1] + "T" + zoned(p[2:])
		})
	}
	return nil
}

// zoned writes a time with seconds; parts are hour, minute, seconds and zone. Without zone it stays as it is.
func zoned(parts []string) string {
	hour, minute, second, zone := parts[0], parts[1], parts[2], strings.ToUpper(parts[3])
	if zone == "" {
		return hour + ":" + minute + second
	}
	if len(hour) < 2 {
		hour = "0" + hour
	}
	if second == "" {
		second = ":00"
	}
	return hour + ":" + minute + second + zone
}

// formatted finds what looks like form and is no piece of something longer. write makes the value of the form's groups.
func formatted(text string, form *regexp.Regexp, write func(parts []string) string) []Found {
	f := fold(text)
	flat := string(f.runes)
	offsets := f.offsets()
	var out []Found
	for _, at := range form.FindAllStringSubmatchIndex(flat, -1) {
		i, j := indexOf(offsets, at[0]), indexOf(offsets, at[1])
		if !f.stands(i, j) || f.runeAt(i-1) == ':' && unicode.IsDigit(f.runeAt(i-2)) || f.runeAt(j) == ':' && unicode.IsDigit(f.runeAt(j+1)) {
			continue
		}
		value := flat[at[0]:at[1]]
		if write != nil {
			parts := make([]string, len(at)/2)
			for k := range parts {
				if at[2*k] >= 0 {
					parts[k] = flat[at[2*k]:at[2*k+1]]
				}
			}
			value = write(parts)
		}
		out = append(out, Found{f.cut(i, j), value})
	}
	return out
}

// uriEnds are signs that end a sentence rather than an address.
const uriEnds = ".,;:!?'*"

// unopened says whether a text ends with a bracket that was not opened in it.
func unopened(text string, opening, closing rune) bool {
	return strings.HasSuffix(text, string(closing)) && strings.Count(text, string(closing)) > strings.Count(text, string(opening))
}

// uris finds web addresses. Width is left as it is: a wide comma ends an address, and a usual one may be part of it.
func uris(text string) []Found {
	var out []Found
	for _, at := range uriForm.FindAllStringIndex(text, -1) {
		hit := text[at[0]:at[1]]
		end := strings.TrimRight(hit, uriEnds)
		for unopened(end, '(', ')') || unopened(end, '[', ']') {
			end = strings.TrimRight(end[:len(end)-1], uriEnds)
		}
		if end == hit {
			next := []rune(text[at[1]:])
			if len(next) > 0 && (unicode.IsLetter(next[0]) || unicode.IsDigit(next[0])) {
				continue
			}
		}
		if !strings.HasSuffix(end, "://") {
			out = append(out, Found{end, end})
		}
	}
	return out
}

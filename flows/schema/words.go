package schema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"flowctl/flows/machine"
)

const (
	maxShown      = 60 // runes of a value in a message
	maxShownNames = 12 // words of an enum or names of properties in a message
)

// kindWords are the JSON types as a person would say them.
var kindWords = map[string]string{
	"null": "null", "boolean": "a boolean", "integer": "an integer", "number": "a number", "string": "a string",
	"array": "a list", "object": "an object",
}

// describe says what a value is, shortened.
func describe(v machine.Value) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case string:
		return "the string " + show(x)
	case int64, int:
		return "the integer " + show(x)
	case float64:
		return "the number " + show(x)
	case []machine.Value:
		return "a list of " + plural(len(x), "item", "items")
	case machine.Values:
		if len(x) == 0 {
			return "an object without properties"
		}
		return "an object with " + listNames(machine.SortedNames(x))
	}
	return "something that is not JSON"
}

// show gives a value as JSON, shortened.
func show(v machine.Value) string {
	data, err := machine.EncodeValue(v)
	if err != nil {
		return "something that is not JSON"
	}
	return shorten(string(data))
}

func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= maxShown {
		return s
	}
	return string(runes[:maxShown]) + "…"
}

// listValues gives `"a", "b" or "c"`.
func listValues(values []machine.Value) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = show(v)
	}
	return orList(words)
}

func orList(words []string) string {
	if len(words) > maxShownNames {
		more := len(words) - maxShownNames
		return strings.Join(words[:maxShownNames], ", ") + fmt.Sprintf(" or one of %d more", more)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func listNames(names []string) string {
	if len(names) > maxShownNames {
		return strings.Join(names[:maxShownNames], ", ") + fmt.Sprintf(" and %d more", len(names)-maxShownNames)
	}
	return strings.Join(names, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// showNumber gives an exact number in plain decimal.
func showNumber(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// formatWords says how a text of a format looks.
var formatWords = map[string]string{
	"date":                  "a date such as 2026-01-31",
	"time":                  "a time with zone such as 15:04:05Z",
	"date-time":             "a date and time with zone such as 2026-01-31T15:04:05Z",
	"duration":              "an ISO duration such as P3D or PT1H30M",
	"email":                 "an e-mail address such as name@example.org",
	"uri":                   "an address such as https://example.org/path",
	"uri-reference":         "an address such as https://example.org/path or /path",
	"iri":                   "an address such as https://example.org/path",
	"uuid":                  "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
	"ipv4":                  "an IPv4 address such as 192.0.2.1",
	"ipv6":                  "an IPv6 address such as 2001:db8::1",
	"hostname":              "a host name such as example.org",
	"regex":                 "a regular expression",
	"json-pointer":          "a JSON pointer such as /a/b",
	"relative-json-pointer": "a relative JSON pointer such as 1/b",
}

package match

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"flowctl/flows/machine"
)

// Same says whether two texts are the same but for case, width, white space, and the signs that end a sentence: "The Blue
// One." is "the blue one", 蓝色。 is 蓝色.
func Same(a, b string) bool { return bare(a) == bare(b) }

// bare takes from a text what Same does not look at.
func bare(text string) string {
	text = strings.Join(strings.FieldsFunc(string(fold(text, foldCase).runes), unicode.IsSpace), " ")
	if cut := strings.TrimRight(text, ".,;:!。、…~ "); cut != "" {
		return cut
	}
	return text
}

// Exact reads a text that says one value of a schema and no more, as a human would write it: a word of the enum, a number in
// digits or as a word, yes or no in a language ("en" or "zh"), a list with commas or "and" between its items. What shows by
// its look may stand in a sentence, where it is the only one: dates, addresses and the like, and what fits the schema's
// pattern. ok is false where the text is no such value, and for schemas that take any text; v is then nil, or what the text
// says all the same and the schema refuses.
func Exact(text string, s machine.Schema, lang string) (v machine.Value, ok bool) {
	for _, one := range candidates(text, s.Info(), lang) {
		if list, isList := one.([]machine.Value); isList {
			one = s.Coerce(list)
		}
		if s.Check(one) == nil {
			return one, true
		}
		if v == nil {
			v = one
		}
	}
	return v, false
}

// candidates gives what a text can mean, the likeliest first.
func candidates(text string, info machine.SchemaInfo, lang string) []machine.Value {
	switch only := info.OnlyType(); {
	case len(info.Enum) > 0:
		return enumCandidates(text, info, lang)
	case only == "boolean":
		return asBoolean(text, lang)
	case only == "integer":
		return exactly(text, append(Integers(text), NumberWords(text)...))
	case only == "number":
		return exactly(text, append(Numbers(text), NumberWords(text)...))
	case only == "array":
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			return nil // meant as JSON
		}
		return []machine.Value{listOf(text, info.Items, lang)}
	case !info.Allows("string"):
	case info.Format == "date":
		return agreed(Dates(text))
	case Finds(info.Format):
		return agreed(Formats(text, info.Format))
	case info.Pattern != "":
		if pattern, err := Pattern(info.Pattern); err == nil {
			forms := Forms(text)
			if hits := pattern.Find(text); len(hits) == 1 {
				forms = append(forms, Forms(hits[0])...)
			}
			return forms
		}
	}
	return nil
}

func enumCandidates(text string, info machine.SchemaInfo, lang string) []machine.Value {
	var out, alike []machine.Value
	for _, word := range info.Enum {
		if written := machine.FormatValue(word); written == text {
			out = append(out, word)
		} else if Same(text, written) {
			alike = append(alike, word)
		}
	}
	out = append(out, alike...)
	if info.OnlyType() == "integer" || info.OnlyType() == "number" {
		out = append(out, exactly(text, append(Numbers(text), NumberWords(text)...))...)
	}
	return append(out, asBoolean(text, lang)...)
}

func asBoolean(text, lang string) []machine.Value {
	if yes, ok := YesNo(text, lang); ok {
		return []machine.Value{yes}
	}
	return nil
}

// agreed gives the value of all hits, if it is one.
func agreed(found []Found) []machine.Value {
	for _, one := range found {
		if !machine.EqualValues(one.Value, found[0].Value) {
			return nil
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []machine.Value{found[0].Value}
}

// exactly gives the value of a hit that is the whole text.
func exactly(text string, found []Found) []machine.Value {
	if len(found) == 1 && Same(text, found[0].Text) {
		return []machine.Value{found[0].Value}
	}
	return nil
}

// Forms gives the ways to write a text whose case and width make no difference, as it is first: a schema may take only one.
func Forms(text string) []machine.Value {
	trimmed := strings.TrimSpace(text)
	folded := width.Fold.String(trimmed)
	return []machine.Value{text, trimmed, folded, strings.ToUpper(folded), strings.ToLower(folded)}
}

// listOf reads a text as a list.
func listOf(text string, items *machine.SchemaInfo, lang string) machine.Value {
	list := []machine.Value{}
	for _, item := range List(text) {
		v := machine.Value(item)
		if items != nil {
			if read := candidates(item, *items, lang); len(read) > 0 {
				v = read[0]
			}
		}
		list = append(list, v)
	}
	return list
}

var (
	listSeparator = regexp.MustCompile(`(?i)\s*[,;，；、\n]\s*(?:and\s+)?|\s+and\s+|\s*(?:和|以及)\s*`)
	noItems       = regexp.MustCompile(`(?i)^\s*(?:none|nothing|no|no thanks|无|無|没有|沒有|都不要|不要)\s*[.!。！]*\s*$`)
)

// List gives the items of a list as a human writes one: with commas, semicolons, line ends, "and" or 和 between them. An
// answer such as "none" has no items.
func List(text string) []string {
	if noItems.MatchString(text) {
		return nil
	}
	var items []string
	for _, item := range listSeparator.Split(text, -1) {
		if item = strings.TrimSpace(strings.TrimRight(item, " .!。！")); item != "" {
			items = append(items, item)
		}
	}
	return items
}

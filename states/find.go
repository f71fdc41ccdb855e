package states

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/width"

	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// finder says by which rule the values of a field are found in text.
type finder int

const (
	findWhole   finder = iota // by no rule: only an answer to a question for this field alone can be it
	findWord                  // a word of the schema's enum
	findPattern               // the schema's pattern
	findInteger
	findNumber
	findBoolean
	findDate
)

// field is a variable that is collected: how it is found, and what stands.
type field struct {
	name   string
	schema machine.Schema
	info   machine.SchemaInfo
	by     finder
	words  []enumWord      // of findWord, the longest first
	match  machine.Pattern // of findPattern

	value   machine.Value   // what stands; nil: missing
	unclear []machine.Value // the different values that the newest text gave, where there were several
}

// enumWord is a value of an enum, and how it is found.
type enumWord struct {
	value machine.Value
	match machine.Keyword
}

func newField(name string, schema machine.Schema, value machine.Value) *field {
	f := &field{name: name, schema: schema, info: schema.Info(), value: value}
	switch only := onlyType(f.info); {
	case slices.ContainsFunc(f.info.Enum, isText):
		f.by = findWord
		f.words = enumWords(f.info.Enum)
	case f.info.Pattern != "" && f.info.Allows("string"):
		if pattern, err := match.Pattern(f.info.Pattern); err == nil {
			f.by, f.match = findPattern, pattern
		}
	case f.info.Format == "date" && f.info.Allows("string"):
		f.by = findDate
	case only == "integer" || only == "" && allOf(f.info.Enum, "integer"):
		f.by = findInteger
	case only == "number" || only == "" && allOf(f.info.Enum, "integer", "number"):
		f.by = findNumber
	case only == "boolean" || only == "" && allOf(f.info.Enum, "boolean"):
		f.by = findBoolean
	}
	return f
}

func isText(v machine.Value) bool { _, ok := v.(string); return ok }

// allOf says whether there are values and all of them are of the given JSON types.
func allOf(values []machine.Value, kinds ...string) bool {
	for _, v := range values {
		if !slices.Contains(kinds, machine.KindOf(v)) {
			return false
		}
	}
	return len(values) > 0
}

// enumWords makes matchers of an enum's words. The longest come first: where one word is part of another, what a text says
// is the longer one.
func enumWords(values []machine.Value) []enumWord {
	var words []enumWord
	for _, v := range values {
		if v == nil {
			continue
		}
		if word, err := match.Keyword(machine.FormatValue(v)); err == nil {
			words = append(words, enumWord{v, word})
		}
	}
	slices.SortStableFunc(words, func(a, b enumWord) int {
		return utf8.RuneCountInString(b.match.Source()) - utf8.RuneCountInString(a.match.Source())
	})
	return words
}

// plain says whether any text will do, so that an answer to a question for this field alone is the value.
func (f *field) plain() bool { return f.by == findWhole && f.info.Allows("string") }

// byType says whether the field's rule knows no more than a type, which others may share.
func (f *field) byType() bool { return f.by >= findInteger }

// rival says whether a hit for one field could as well be meant for the other.
func (f *field) rival(other *field) bool {
	switch {
	case f == other || f.by == findWhole || f.by == findWord:
		return false
	case f.by == findPattern:
		return other.by == findPattern && f.info.Pattern == other.info.Pattern
	case f.by == findInteger || f.by == findNumber:
		return other.by == findInteger || other.by == findNumber
	}
	return f.by == other.by
}

// hits is what one text gives for one field: the different values that fit the schema, in the order found, and the first
// hit that breaks it.
type hits struct {
	values []machine.Value
	bad    string
	fault  string // what the schema wants instead of bad
}

// find looks for a field in a text from which ids (the hits of all patterns) are known.
func (f *field) find(text string, ids []string, lang string) hits {
	var h hits
	switch f.by {
	case findWord:
		for _, word := range f.words {
			found := word.match.Find(text)
			if len(found) > 0 {
				h.add(f, found[0], word.value)
			}
			text = blank(text, found)
		}
	case findPattern:
		for _, found := range f.match.Find(text) {
			h.addText(f, found)
		}
	case findInteger:
		h.addAll(f, match.Integers(blank(text, ids)))
	case findNumber:
		h.addAll(f, match.Numbers(blank(text, ids)))
	case findBoolean:
		h.addAll(f, match.Booleans(text, lang))
	case findDate:
		h.addAll(f, match.Dates(text))
	}
	return h
}

// blank puts letters in the place of hits: what stands beside them must not become a number of its own.
func blank(text string, found []string) string {
	for _, hit := range found {
		text = strings.ReplaceAll(text, hit, strings.Repeat("x", utf8.RuneCountInString(hit)))
	}
	return text
}

func (h *hits) addAll(f *field, found []match.Found) {
	for _, one := range found {
		h.add(f, one.Text, one.Value)
	}
}

// add takes a hit if its value fits the field's schema.
func (h *hits) add(f *field, text string, value machine.Value) {
	if err := f.schema.Check(value); err != nil {
		if h.bad == "" {
			h.bad, h.fault = text, wantOf(err)
		}
		return
	}
	if !slices.ContainsFunc(h.values, func(v machine.Value) bool { return machine.EqualValues(v, value) }) {
		h.values = append(h.values, value)
	}
}

// addText takes the hit of a pattern. Case and width made no difference in finding it; for the schema they may, so the
// form that it takes is the value.
func (h *hits) addText(f *field, text string) {
	folded := width.Fold.String(text)
	for _, form := range []string{text, folded, strings.ToUpper(folded), strings.ToLower(folded)} {
		if f.schema.Check(form) == nil {
			h.add(f, text, form)
			return
		}
	}
	h.add(f, text, text)
}

// wantOf says what a schema expected, in its own (English) words; "" where that is a pattern, which tells people nothing.
func wantOf(err error) string {
	var unfit *machine.SchemaError
	if !errors.As(err, &unfit) || len(unfit.Faults) == 0 || strings.Contains(unfit.Faults[0].Want, "matches") {
		return ""
	}
	return unfit.Faults[0].Want
}

// whole reads an answer to a question for this field alone.
func (f *field) whole(answer string) hits {
	var h hits
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return h
	}
	value := machine.Value(answer)
	if !f.plain() {
		if v, err := machine.DecodeValue([]byte(answer)); err == nil {
			value = v
		}
		value = f.schema.Coerce(value)
	}
	h.add(f, answer, value)
	return h
}

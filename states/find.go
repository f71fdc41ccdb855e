package states

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"flowctl/engine"
	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// finder says by which rule the values of a field are found in text.
type finder int

const (
	findWhole   finder = iota // by no rule: only an answer to a question for this field alone can be it
	findWord                  // a word of the schema's enum
	findPattern               // the schema's pattern
	findFormat                // the look of the schema's format, such as an e-mail address
	findList                  // all that is found for its items
	findInteger
	findNumber
	findBoolean
	findDate
)

// field is a variable that is collected: how it is found, and what stands.
type field struct {
	name   string
	schema machine.Schema // nil for the items of a list
	info   machine.SchemaInfo
	by     finder
	words  []enumWord      // of findWord, the longest first
	match  machine.Pattern // of findPattern
	item   *field          // of findList

	value   machine.Value   // what stands; nil: missing
	unclear []machine.Value // the different values that the newest text gave, where there were several
	found   bool            // the rules found the value in the newest text
	secret  bool            // nobody is shown the value
}

// enumWord is a value of an enum, and how it is found.
type enumWord struct {
	value machine.Value
	match machine.Keyword
}

func newField(name string, schema machine.Schema, value machine.Value) *field {
	f := &field{name: name, schema: schema, info: schema.Info(), value: value}
	f.choose()
	return f
}

// choose finds the rule of a field.
func (f *field) choose() {
	switch only := f.info.OnlyType(); {
	case slices.ContainsFunc(f.info.Enum, isText):
		f.by = findWord
		f.words = enumWords(f.info.Enum)
	case f.info.Pattern != "" && f.info.Allows("string"):
		if pattern, err := match.Pattern(f.info.Pattern); err == nil {
			f.by, f.match = findPattern, pattern
		}
	case f.info.Format == "date" && f.info.Allows("string"):
		f.by = findDate
	case match.Finds(f.info.Format) && f.info.Allows("string"):
		f.by = findFormat
	case only == "array" && f.info.Items != nil:
		f.item = &field{info: *f.info.Items}
		if f.item.choose(); slices.Contains([]finder{findWord, findPattern, findFormat, findDate}, f.item.by) {
			f.by = findList
		}
	case only == "integer" || only == "" && allOf(f.info.Enum, "integer"):
		f.by = findInteger
	case only == "number" || only == "" && allOf(f.info.Enum, "integer", "number"):
		f.by = findNumber
	case only == "boolean" || only == "" && allOf(f.info.Enum, "boolean"):
		f.by = findBoolean
	}
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

// yesNo says whether the field is answered with yes or no, be they words of its enum.
func (f *field) yesNo(lang string) bool {
	var yes, no bool
	for _, word := range f.words {
		if said := match.Booleans(word.match.Source(), lang); len(said) == 1 {
			yes, no = yes || said[0].Value == true, no || said[0].Value == false
		}
	}
	return f.by == findBoolean || yes && no
}

// rival says whether a hit for one field could as well be meant for the other.
func (f *field) rival(other *field) bool {
	switch {
	case f == other || f.by == findWhole || f.by == findWord || f.by == findList:
		return false
	case f.by == findPattern:
		return other.by == findPattern && f.info.Pattern == other.info.Pattern
	case f.by == findFormat:
		return other.by == findFormat && f.info.Format == other.info.Format
	case f.by == findInteger || f.by == findNumber:
		return other.by == findInteger || other.by == findNumber
	}
	return f.by == other.by
}

// reading is a text and how it is read.
type reading struct {
	text   string
	ids    []string // the hits of all patterns and formats in it, which hold no number and no yes
	lang   string
	answer bool // it answers a question: numbers may be written as words
}

// hits is what one text gives for one field: the different values that fit the schema, in the order found, and the first
// hit that breaks it.
type hits struct {
	lang   string
	values []machine.Value
	bad    string
	fault  string          // what the schema wants instead of bad
	noDate match.DateFault // why bad is no date
	bads   int             // how many hits break it
}

// find looks for a field in a text. names, of a boolean, are what it is called: what is said of them counts first, and
// nothing else does with only.
func (f *field) find(r reading, names []string, only bool) hits {
	h := hits{lang: r.lang}
	switch f.by {
	case findWord:
		f.findWords(r.text, &h)
	case findPattern:
		for _, found := range f.match.Find(r.text) {
			h.addText(f, found)
		}
	case findFormat:
		h.addAll(f, match.Formats(r.text, f.info.Format))
	case findList:
		if items := f.item.find(r, nil, false); len(items.values) > 0 {
			h.add(f, words{}.list(items.values), items.values)
		}
	case findInteger, findNumber:
		text := blank(r.text, r.ids, "x")
		found := match.Numbers(text)
		if f.by == findInteger {
			found = match.Integers(text)
		}
		if len(found) == 0 && r.answer {
			found = match.NumberWords(text)
		}
		h.addAll(f, found)
	case findBoolean:
		found := match.BooleansOf(r.text, r.lang, names...)
		if len(found) == 0 && !only {
			found = match.Booleans(blank(r.text, r.ids, "x"), r.lang)
		}
		h.addAll(f, found)
	case findDate:
		h.addAll(f, match.Dates(r.text))
		for _, no := range match.NoDates(r.text) {
			h.refuse(no.Text, "", no.Why)
		}
	}
	return h
}

// findWords looks for the words of an enum. The values come in the order of the text.
func (f *field) findWords(text string, h *hits) {
	type place struct {
		at   int
		text string
		word enumWord
	}
	var places []place
	for _, word := range f.words {
		if meant := word.match.Meant(text); len(meant) > 0 {
			before, _, _ := strings.Cut(text, meant[0])
			places = append(places, place{utf8.RuneCountInString(before), meant[0], word})
		}
		text = blank(text, word.match.Find(text), "□")
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.at - b.at })
	for _, p := range places {
		h.add(f, p.text, p.word.value)
	}
}

// blank puts signs in the place of hits: what stands beside them must not become a value of its own.
func blank(text string, found []string, sign string) string {
	for _, hit := range found {
		text = strings.ReplaceAll(text, hit, strings.Repeat(sign, utf8.RuneCountInString(hit)))
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
	if f.schema != nil {
		if err := f.schema.Check(value); err != nil {
			h.refuse(text, engine.Want(err, h.lang), "")
			return
		}
	}
	if !slices.ContainsFunc(h.values, func(v machine.Value) bool { return machine.EqualValues(v, value) }) {
		h.values = append(h.values, value)
	}
}

// refuse takes a hit that is no value.
func (h *hits) refuse(text, fault string, noDate match.DateFault) {
	if h.bads == 0 {
		h.bad, h.fault, h.noDate = text, fault, noDate
	}
	h.bads++
}

// addText takes the hit of a pattern. Case and width made no difference in finding it; for the schema they may, so the
// form that it takes is the value.
func (h *hits) addText(f *field, text string) {
	for _, form := range match.Forms(text) {
		if f.fits(strings.TrimSpace(machine.FormatValue(form))) {
			h.add(f, text, strings.TrimSpace(machine.FormatValue(form)))
			return
		}
	}
	h.add(f, text, text)
}

// fits says whether the schema takes a text; the items of a list have only their pattern.
func (f *field) fits(text string) bool {
	if f.schema != nil {
		return f.schema.Check(text) == nil
	}
	ok, err := regexp.MatchString(f.info.Pattern, text)
	return ok && err == nil
}

// whole reads an answer to a question for this field alone.
func (f *field) whole(answer, lang string) hits {
	h := hits{lang: lang}
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return h
	}
	value := machine.Value(answer)
	if v, _ := match.Exact(answer, f.schema, lang); v != nil {
		value = v
	} else if !f.plain() {
		if v, err := machine.DecodeValue([]byte(answer)); err == nil {
			value = v
		}
		value = f.schema.Coerce(value)
	}
	h.add(f, answer, value)
	return h
}

// stranger gives the first part of an answer for this list that says something which is no item of it, "" if there is none.
func (f *field) stranger(r reading) string {
	for _, part := range match.List(r.text) {
		one := r
		one.text = part
		if f.item == nil || f.item.by != findWord || len(f.item.find(one, nil, false).values) > 0 || match.SaysNothing(part, r.lang) {
			continue
		}
		return part
	}
	return ""
}

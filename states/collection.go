package states

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// collection is the fields of a collect state while they are filled. It knows neither step nor run: texts go in, values and
// the next question come out.
type collection struct {
	words  words
	fields []*field
	again  bool // the state was entered before: if nothing changes by itself, the human says what should

	changed bool     // some value is another than at the entry
	kept    bool     // the human said that nothing should change
	refused []*field // the newest text would change their values into ones that do not fit, which has to be told
	asked   []*field // by the last question; nil before the first and when it asked what to change
	alone   bool     // the fields are asked for one by one, since asking for all at once led nowhere
	notes   []note   // what was wrong with the newest text, for the next question
	shown   []string // the texts that a model was given
	secret  bool     // some field is secret: what a human answers is not repeated, since nobody knows which part of it is
}

// note says what was wrong with a text.
type note struct {
	about *field // nil: no field by itself
	text  string
}

// noteTexts gives the notes as they are told.
func (c *collection) noteTexts() []string {
	var texts []string
	for _, n := range c.notes {
		texts = append(texts, n.text)
	}
	return texts
}

// tell adds a note.
func (c *collection) tell(about *field, text string) { c.notes = append(c.notes, note{about, text}) }

// open gives the fields that a model may be asked for: of a collection with secrets those that are still to be found.
func (c *collection) open() []*field {
	if !c.secret {
		return c.fields
	}
	var out []*field
	for _, f := range c.fields {
		if !f.secret && (f.value == nil || c.again) {
			out = append(out, f)
		}
	}
	return out
}

// withoutSecrets leaves out the texts in which a secret was found.
func (c *collection) withoutSecrets(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		return slices.ContainsFunc(c.fields, func(f *field) bool {
			held := func(v machine.Value) bool { return v != nil && strings.Contains(text, machine.FormatValue(v)) }
			return f.secret && (held(f.value) || slices.ContainsFunc(f.unclear, held))
		})
	})
}

// cited is what came, for a sentence that repeats it.
func (c *collection) cited(came string) string {
	if c.secret {
		return c.words.pick("That", "这")
	}
	return came
}

func fieldPath(i int) string { return fmt.Sprintf("fields[%d]", i) }

// complete says whether there is nothing to ask.
func (c *collection) complete() bool {
	return len(c.missing()) == 0 && len(c.refused) == 0 && (!c.again || c.changed || c.kept)
}

func (c *collection) missing() []*field {
	var out []*field
	for _, f := range c.fields {
		if f.value == nil {
			out = append(out, f)
		}
	}
	return out
}

// missingNames is what is still missing, for people.
func (c *collection) missingNames() string {
	var names []string
	for _, f := range c.missing() {
		names = append(names, c.words.label(f.name, f.info))
	}
	if len(names) == 0 {
		return c.words.pick("what should change", "要修改的内容")
	}
	return strings.Join(names, c.words.pick(", ", "、"))
}

// ask chooses what the next question is for: all that is missing; only the first of it once that led nowhere; nothing when
// it must ask what to change.
func (c *collection) ask() []*field {
	c.asked = c.missing()
	if c.alone && len(c.asked) > 1 {
		c.asked = c.asked[:1]
	}
	return c.asked
}

// attention says what may be taken from a text for a field.
type attention int

const (
	ignored attention = iota
	ifNamed           // a yes or no only where it is said of the field by its name
	freely
)

// unasked is the attention to texts that answer no question for a value: a yes or no in them was said to something else,
// unless it names the field.
func (c *collection) unasked(f *field) attention {
	if f.yesNo(c.words.language()) {
		return ifNamed
	}
	return freely
}

// read takes in a text that answers no question of this state; on a later visit it answers one about its values. A value
// that does not fit is told of where it is the only one: of several, nobody knows which was meant.
func (c *collection) read(text string) {
	found := c.take(text, c.again, c.unasked)
	c.notes = nil
	for _, f := range c.missing() {
		if h := found[f]; len(f.unclear) > 0 || h.bads == 1 && len(h.values) == 0 {
			c.note(f, h, "")
		}
	}
	if c.again {
		c.noteCorrections(text, found)
	}
}

// noteCorrections tells of values that stand and would be changed into what does not fit. Where something else changes, a
// number in passing is not taken for one, unless the text names the field.
func (c *collection) noteCorrections(text string, found map[*field]hits) {
	for _, f := range c.fields {
		h := found[f]
		if f.value != nil && h.bads == 1 && len(h.values) == 0 && (!c.changed || c.named(f, text)) {
			c.tell(f, c.unfit(f, h))
			c.refused = append(c.refused, f)
		}
	}
}

// hear takes in the answer to the last question.
func (c *collection) hear(answer string) {
	c.notes, c.refused = nil, nil
	for _, f := range c.fields {
		f.unclear, f.found = nil, false
	}
	switch {
	case len(c.asked) == 0:
		c.hearChange(answer)
	case len(c.asked) == 1 && c.asked[0].by == findWhole:
		f := c.asked[0]
		h := f.whole(answer, c.words.language())
		c.settle(f, h)
		c.note(f, h, answer)
	default:
		c.hearValues(answer)
	}
}

// hearValues takes in the answer to a question for values. Values that stand already may be corrected in it, but not by
// rules that would take what was meant for a field that was asked for: a type says little, and so does the same pattern.
func (c *collection) hearValues(answer string) {
	stood := c.standing()
	found := c.take(answer, true, func(f *field) attention {
		switch {
		case slices.Contains(c.asked, f):
			return freely
		case f.yesNo(c.words.language()):
			return ifNamed
		case f.byType() || slices.ContainsFunc(c.asked, f.rival):
			return ignored
		}
		return freely
	})
	got := slices.ContainsFunc(c.asked, func(f *field) bool { return f.value != nil })
	if !got && len(c.asked) > 1 && slices.ContainsFunc(c.asked, c.lonely) {
		c.alone = true
		for _, f := range c.asked {
			if found[f].bad != "" {
				c.note(f, found[f], answer)
			}
		}
		c.tell(nil, c.words.oneByOne())
		return
	}
	corrected := !got && c.standing() != stood
	for _, f := range c.missing() {
		h := found[f]
		asked := slices.Contains(c.asked, f)
		wrong := h.bad != "" && !(corrected && h.bad == strings.TrimSpace(answer))
		if len(f.unclear) > 0 || asked && (wrong || len(c.asked) == 1 && !corrected) {
			c.note(f, h, answer)
		}
	}
	if !got && !corrected && len(c.notes) == 0 && len(c.missing()) > 0 {
		c.tell(nil, c.words.noneFound())
	}
}

// standing shows what stands, to be compared.
func (c *collection) standing() string {
	var b strings.Builder
	for _, f := range c.fields {
		b.WriteString(machine.FormatValue(f.value) + "\n")
	}
	return b.String()
}

// hearChange takes in the answer to what should change. A yes or no in it answers that question, unless it names a field or
// there is only one.
func (c *collection) hearChange(answer string) {
	if c.words.keeps(answer) {
		c.kept = true
		return
	}
	found := map[*field]hits{}
	switch {
	case len(c.fields) == 1 && c.fields[0].by == findWhole:
		found[c.fields[0]] = c.fields[0].whole(answer, c.words.language())
		c.settle(c.fields[0], found[c.fields[0]])
	case len(c.fields) == 1:
		found = c.take(answer, true, func(*field) attention { return freely })
	default:
		found = c.take(answer, true, c.unasked)
	}
	for _, f := range c.fields {
		if h := found[f]; len(f.unclear) > 0 {
			c.tell(f, c.several(f))
		} else if len(h.values) == 0 && h.bad != "" {
			c.tell(f, c.unfit(f, h))
			if h.bads == 1 && c.named(f, answer) {
				c.refused = append(c.refused, f)
			}
		}
	}
	if !c.changed && len(c.notes) == 0 {
		c.tell(nil, c.words.nothingNew())
	}
}

// puzzled says whether the rules made too little of the newest text: of what it was to bring something is missing, or it
// said something that has to be told of.
func (c *collection) puzzled() bool {
	if len(c.asked) == 0 {
		return !c.complete()
	}
	return len(c.notes) > 0 || len(c.refused) > 0 || slices.ContainsFunc(c.asked, func(f *field) bool { return f.value == nil })
}

// unshown gives the texts that say something and that no model was given yet, and remembers that one is now.
func (c *collection) unshown(texts []string) []string {
	var out []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); !c.saysNothing(text) && !slices.Contains(c.shown, text) {
			out = append(out, text)
			c.shown = append(c.shown, text)
		}
	}
	return out
}

// saysNothing says whether a text cannot hold a value: thanks and the like, and a bare yes or no unless it was asked for.
func (c *collection) saysNothing(text string) bool {
	lang := c.words.language()
	yes, _ := match.YesNo(text, lang) // beside a no more may be said
	return text == "" || match.SaysNothing(text, lang) || len(c.asked) == 0 && (yes || bareNo.MatchString(text))
}

// extract takes in what a model read from the newest text, by field; null and blanks are nothing. What the rules found
// there stands, and so does what stood before, unless the text may change it. A note about what is found now is dropped.
func (c *collection) extract(values machine.Values) {
	got := false
	for _, f := range c.fields {
		v := plausible(values[f.name])
		if v == nil || f.found || f.value != nil && !c.again {
			continue
		}
		h := hits{lang: c.words.language()}
		h.add(f, machine.FormatValue(v), v)
		if len(h.values) == 0 || machine.EqualValues(f.value, v) {
			continue
		}
		c.settle(f, h)
		got = true
		c.refused = slices.DeleteFunc(c.refused, func(other *field) bool { return other == f })
		c.notes = slices.DeleteFunc(c.notes, func(n note) bool { return n.about == f })
	}
	if got {
		c.alone = false // a model can tell apart what the rules cannot
		c.notes = slices.DeleteFunc(c.notes, func(n note) bool { return n.about == nil })
	}
}

// plausible gives a value that a model read, nil where it says nothing: an empty list, or text of nothing but blanks.
func plausible(v machine.Value) machine.Value {
	switch x := v.(type) {
	case string:
		if x = strings.TrimSpace(x); x != "" {
			return x
		}
		return nil
	case []machine.Value:
		if len(x) == 0 {
			return nil
		}
	}
	return v
}

// lonely says whether a field cannot be told from others in one answer.
func (c *collection) lonely(f *field) bool {
	return f.by == findWhole || slices.ContainsFunc(c.missing(), f.rival)
}

// take looks for fields in a text, each with the attention that it gets, and settles them. It gives what was found for each.
// An answer may write numbers as words, which in other texts mean too many things.
func (c *collection) take(text string, answer bool, may func(*field) attention) map[*field]hits {
	r := reading{text: text, lang: c.words.language(), answer: answer}
	for _, f := range c.fields {
		switch f.by {
		case findPattern:
			r.ids = append(r.ids, f.match.Find(text)...)
		case findFormat:
			for _, hit := range match.Formats(text, f.info.Format) {
				r.ids = append(r.ids, hit.Text)
			}
		}
	}
	found := map[*field]hits{}
	for _, f := range c.fields {
		how := may(f)
		if how == freely || how == ifNamed && (f.by == findBoolean || c.named(f, text)) {
			found[f] = c.find(f, r, how == ifNamed)
		}
	}
	for _, f := range c.fields {
		if !c.contested(f, found, text) {
			c.settle(f, found[f])
		}
	}
	return found
}

// find looks for a field in a text. An answer to a question for it alone is looked at as a whole where nothing is found in it.
func (c *collection) find(f *field, r reading, named bool) hits {
	h := f.find(r, c.names(f), named)
	if !r.answer || len(c.asked) != 1 || c.asked[0] != f {
		return h
	}
	if part := f.stranger(r); f.by == findList && part != "" {
		return hits{lang: r.lang, bad: part, fault: c.words.items(f.item.info.Enum), bads: 1}
	}
	if len(h.values) > 0 || h.bad != "" || f.by == findPattern {
		return h
	}
	whole := f.whole(r.text, r.lang)
	if len(whole.values) == 0 && (f.by == findWord || f.by == findBoolean || !brief(r.text)) {
		return h // the question says better what it takes than the schema
	}
	if f.by == findInteger || f.by == findNumber {
		whole.fault = c.words.number(f.by == findInteger, len(match.Numbers(r.text)) == 0 && strings.ContainsAny(r.text, "0123456789"))
	}
	return whole
}

// contested says whether the only value for a field is the only value for another one as well, by the same rule: then
// nobody knows for which of them it was meant, unless the text names the field and not the other.
func (c *collection) contested(f *field, found map[*field]hits, text string) bool {
	mine := found[f].values
	if len(mine) != 1 {
		return false
	}
	for other, h := range found {
		if f.rival(other) && len(h.values) == 1 && machine.EqualValues(mine[0], h.values[0]) &&
			!(c.named(f, text) && !c.named(other, text)) {
			return true
		}
	}
	return false
}

// named says whether a text calls a field by its name.
func (c *collection) named(f *field, text string) bool {
	for _, name := range c.names(f) {
		if word, err := match.Keyword(name); err == nil && len(word.Find(text)) > 0 {
			return true
		}
	}
	return false
}

// names are what a field is called, the longest first.
func (c *collection) names(f *field) []string {
	names := []string{c.noun(f), c.words.topic(c.noun(f)), spelled(f.name)}
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(names)
}

// settle takes over what a text gave for a field: one value stands, several make it unclear, none changes nothing.
func (c *collection) settle(f *field, h hits) {
	switch len(h.values) {
	case 0:
	case 1:
		c.changed = c.changed || !machine.EqualValues(f.value, h.values[0])
		f.value, f.unclear, f.found = h.values[0], nil, true
	default:
		f.value, f.unclear = nil, h.values
	}
}

// maxEchoed bounds, in runes, an answer that is repeated when it is wrong.
const maxEchoed = 30

// brief says whether an answer is repeated when it is wrong.
func brief(answer string) bool {
	answer = strings.TrimSpace(answer)
	return answer != "" && utf8.RuneCountInString(answer) <= maxEchoed && !strings.Contains(answer, "\n")
}

// note says what was wrong with a text for a field that is still missing.
func (c *collection) note(f *field, h hits, answer string) {
	switch {
	case f.value != nil:
	case len(f.unclear) > 0:
		c.tell(f, c.several(f))
	case h.bad != "":
		c.tell(f, c.unfit(f, h))
	case brief(answer) && f.by == findBoolean:
		c.tell(f, c.words.neither(c.cited(strings.TrimSpace(answer))))
	case brief(answer):
		c.tell(f, c.words.isNo(c.cited(strings.TrimSpace(answer)), c.called(f), ""))
	default:
		c.tell(f, c.words.notFound(c.called(f)))
	}
}

// several says that more than one value came for a field.
func (c *collection) several(f *field) string {
	if f.by == findBoolean {
		return c.words.both()
	}
	if c.secret {
		return c.words.severalUnseen(c.called(f))
	}
	return c.words.several(c.called(f), f.unclear)
}

// unfit says why what came for a field is no value of it.
func (c *collection) unfit(f *field, h hits) string {
	if h.noDate != "" {
		return c.words.noDate(c.cited(h.bad), c.called(f), h.noDate)
	}
	return c.words.isNo(c.cited(h.bad), c.called(f), h.fault)
}

// request asks for fields in the engine's own words.
func (c *collection) request(fields []*field) string {
	if len(fields) == 1 {
		return c.words.askFor(fields[0].name, fields[0].info)
	}
	wanted := make([]string, len(fields))
	for i, f := range fields {
		wanted[i] = c.words.wanted(f.name, f.info)
	}
	return c.words.please(wanted)
}

func (c *collection) noun(f *field) string { return c.words.noun(f.name, f.info) }

// called is the noun for sentences to people, "" where there is none.
func (c *collection) called(f *field) string { return c.words.called(f.name, f.info) }

// changeQuestion asks what should change.
func (c *collection) changeQuestion() string {
	now := make([][2]string, len(c.fields))
	for i, f := range c.fields {
		now[i] = [2]string{c.words.label(f.name, f.info), c.words.value(f.value)}
		if f.secret {
			now[i][1] = "***"
		}
	}
	return strings.Join(append(c.noteTexts(), c.words.change(now)), "\n")
}

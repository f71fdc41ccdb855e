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
	asked   []*field // by the last question; nil before the first and when it asked what to change
	alone   bool     // the fields are asked for one by one, since asking for all at once led nowhere
	notes   []string // what was wrong with the newest text, for the next question
}

func fieldPath(i int) string { return fmt.Sprintf("fields[%d]", i) }

// complete says whether there is nothing to ask.
func (c *collection) complete() bool {
	return len(c.missing()) == 0 && (!c.again || c.changed || c.kept)
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

func (c *collection) missingNames() string {
	var names []string
	for _, f := range c.missing() {
		names = append(names, f.name)
	}
	if len(names) == 0 {
		return "what should change"
	}
	return strings.Join(names, ", ")
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

// read takes in a text that answers no question of this state. Yes and no in it were said to something else.
func (c *collection) read(text string) {
	c.take(text, func(f *field) bool { return f.by != findBoolean })
	c.notes = nil
	for _, f := range c.missing() {
		if len(f.unclear) > 0 {
			c.notes = append(c.notes, c.words.several(c.noun(f), f.unclear))
		}
	}
}

// hear takes in the answer to the last question.
func (c *collection) hear(answer string) {
	c.notes = nil
	for _, f := range c.fields {
		f.unclear = nil
	}
	switch {
	case len(c.asked) == 0:
		c.hearChange(answer)
	case len(c.asked) == 1 && c.asked[0].by == findWhole:
		f := c.asked[0]
		h := f.whole(answer)
		c.settle(f, h)
		c.note(f, h, answer)
	default:
		c.hearValues(answer)
	}
}

// hearValues takes in the answer to a question for values. Values that stand already may be corrected in it, but not by
// rules that would take what was meant for a field that was asked for: a type says little, and so does the same pattern.
func (c *collection) hearValues(answer string) {
	found := c.take(answer, func(f *field) bool {
		return slices.Contains(c.asked, f) || !f.byType() && !slices.ContainsFunc(c.asked, f.rival)
	})
	got := slices.ContainsFunc(c.asked, func(f *field) bool { return f.value != nil })
	if !got && len(c.asked) > 1 && slices.ContainsFunc(c.asked, c.lonely) {
		c.alone = true
		c.notes = []string{c.words.oneByOne()}
		return
	}
	for _, f := range c.missing() {
		asked := slices.Contains(c.asked, f)
		if len(f.unclear) > 0 || asked && (len(c.asked) == 1 || found[f].bad != "") {
			c.note(f, found[f], answer)
		}
	}
	if !got && len(c.notes) == 0 {
		c.notes = []string{c.words.noneFound()}
	}
}

// hearChange takes in the answer to what should change.
func (c *collection) hearChange(answer string) {
	if c.words.keeps(answer) {
		c.kept = true
		return
	}
	found := map[*field]hits{}
	if len(c.fields) == 1 && c.fields[0].by == findWhole {
		found[c.fields[0]] = c.fields[0].whole(answer)
		c.settle(c.fields[0], found[c.fields[0]])
	} else {
		found = c.take(answer, func(*field) bool { return true })
	}
	for _, f := range c.fields {
		if len(f.unclear) > 0 {
			c.notes = append(c.notes, c.words.several(c.noun(f), f.unclear))
		} else if h := found[f]; len(h.values) == 0 && h.bad != "" {
			c.notes = append(c.notes, c.words.isNo(h.bad, c.noun(f), h.fault))
		}
	}
	if !c.changed && len(c.notes) == 0 {
		c.notes = []string{c.words.nothingNew()}
	}
}

// lonely says whether a field cannot be told from others in one answer.
func (c *collection) lonely(f *field) bool {
	return f.by == findWhole || slices.ContainsFunc(c.missing(), f.rival)
}

// take looks for the fields that may be found in a text and settles them. It gives what was found for each.
func (c *collection) take(text string, may func(*field) bool) map[*field]hits {
	var ids []string
	for _, f := range c.fields {
		if f.by == findPattern {
			ids = append(ids, f.match.Find(text)...)
		}
	}
	found := map[*field]hits{}
	for _, f := range c.fields {
		if may(f) {
			found[f] = f.find(text, ids, c.words.language())
		}
	}
	for _, f := range c.fields {
		if !c.contested(f, found, text) {
			c.settle(f, found[f])
		}
	}
	return found
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
	for _, name := range []string{spelled(f.name), c.noun(f)} {
		if word, err := match.Keyword(name); err == nil && len(word.Find(text)) > 0 {
			return true
		}
	}
	return false
}

// settle takes over what a text gave for a field: one value stands, several make it unclear, none changes nothing.
func (c *collection) settle(f *field, h hits) {
	switch len(h.values) {
	case 0:
	case 1:
		c.changed = c.changed || !machine.EqualValues(f.value, h.values[0])
		f.value, f.unclear = h.values[0], nil
	default:
		f.value, f.unclear = nil, h.values
	}
}

// maxEchoed bounds, in runes, an answer that is repeated when it is wrong.
const maxEchoed = 30

// note says what was wrong with an answer for a field that is still missing.
func (c *collection) note(f *field, h hits, answer string) {
	if f.value != nil {
		return
	}
	noun := c.noun(f)
	answer = strings.TrimSpace(answer)
	short := answer != "" && utf8.RuneCountInString(answer) <= maxEchoed && !strings.Contains(answer, "\n")
	switch {
	case len(f.unclear) > 0:
		c.notes = append(c.notes, c.words.several(noun, f.unclear))
	case h.bad != "":
		c.notes = append(c.notes, c.words.isNo(h.bad, noun, h.fault))
	case short && f.by == findBoolean:
		c.notes = append(c.notes, c.words.neither(answer))
	case short:
		c.notes = append(c.notes, c.words.isNo(answer, noun, ""))
	default:
		c.notes = append(c.notes, c.words.notFound(noun))
	}
}

func (c *collection) noun(f *field) string { return c.words.noun(f.name, f.info) }

// changeQuestion asks what should change.
func (c *collection) changeQuestion() string {
	now := make([][2]string, len(c.fields))
	for i, f := range c.fields {
		now[i] = [2]string{c.noun(f), c.words.value(f.value)}
	}
	return strings.Join(append(slices.Clone(c.notes), c.words.change(now)), "\n")
}

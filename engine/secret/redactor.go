package secret

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
)

// MinLength is the number of characters that a secret must have at least. A shorter one would be found in innocent text.
const MinLength = 8

// passes bounds how often a text is searched again after a replacement; see Text.
const passes = 8

var nameRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Redactor replaces secrets by their names. It does not change after New and is safe for concurrent use. A nil Redactor
// knows no secrets and gives everything back as it is.
type Redactor struct {
	marks  map[string]string   // form to mark; empty: no secrets
	starts map[uint16][]string // the forms that begin with two given bytes, longer ones first
	hint   [1 << 10]uint64     // a bit for each key of starts, so that most of a text is passed over quickly
	whole  string              // stands for a text that could not be cleaned otherwise
}

// New makes a redactor of secrets by name. All that is wrong is reported at once, by name and never with a value: a name
// that no environment variable can have, a value shorter than MinLength, one that ends in a line break (which then
// appears in headers and error texts), and one that cannot be told from the marks that the redactor itself writes.
func New(values map[string]string) (*Redactor, error) {
	names := machine.SortedNames(values)
	var problems []error
	for _, name := range names {
		if err := check(name, values[name], names); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	r := &Redactor{marks: map[string]string{}, starts: map[uint16][]string{}, whole: wholeMark}
	for _, name := range names {
		for _, form := range forms(values[name]) {
			if _, taken := r.marks[form]; !taken {
				r.marks[form] = mark(name)
			}
		}
	}
	r.index()
	return r, nil
}

// index makes the forms of r findable.
func (r *Redactor) index() {
	for _, form := range machine.SortedNames(r.marks) {
		at := start(form)
		r.starts[at] = append(r.starts[at], form)
		r.hint[at>>6] |= 1 << (at & 63)
	}
	for _, list := range r.starts {
		sort.SliceStable(list, func(i, j int) bool { return len(list[i]) > len(list[j]) })
	}
}

// start gives the first two bytes of s, which has at least two.
func start(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

func check(name, value string, names []string) error {
	switch {
	case !nameRule.MatchString(name):
		return fmt.Errorf("%q cannot be the name of a secret: use letters, digits and _, as in LLM_API_KEY", name)
	case value == "":
		return fmt.Errorf("the secret %s is empty: set it, or leave it out", name)
	case strings.HasSuffix(value, "\n"), strings.HasSuffix(value, "\r"):
		return fmt.Errorf("the value of %s ends in a line break: remove it where the variable is set", name)
	case utf8.RuneCountInString(value) < MinLength:
		return fmt.Errorf("the value of %s has fewer than %d characters, too few to be kept out of texts: use a longer one",
			name, MinLength)
	}
	for _, other := range names {
		if strings.Contains(mark(other)+" "+wholeMark, value) {
			return fmt.Errorf("the value of %s looks like the mark that stands for a secret: use another one", name)
		}
	}
	return nil
}

func mark(name string) string { return "[secret:" + name + "]" }

// wholeMark stands for a text that New's redactor could not clean otherwise.
const wholeMark = "[secret]"

// Text replaces the secrets in s. Text without secrets is given back as it is, without a copy; text that has been
// redacted does not change again.
func (r *Redactor) Text(s string) string {
	if r.none() {
		return s
	}
	// A mark can complete another secret that begins or ends like one, so the result is searched again. That such
	// secrets go on completing each other takes made-up values; then the whole text goes.
	for range passes {
		next := r.ends(r.replace(s))
		if next == s {
			return s
		}
		s = next
	}
	return r.whole
}

// ellipsis stands where a text was cut, and shortestPart is the length in bytes from which the beginning of a secret before
// it is taken for one: whoever cuts a text cannot know that he cuts a secret.
const (
	ellipsis     = "…"
	dots         = "..." // as libraries write it
	shortestPart = 6
)

// ends replaces what a cut has left of a secret, on either side of its mark.
func (r *Redactor) ends(s string) string { return r.endsAt(r.endsAt(s, ellipsis), dots) }

func (r *Redactor) endsAt(s, ellipsis string) string {
	if !strings.Contains(s, ellipsis) {
		return s
	}
	parts := strings.Split(s, ellipsis)
	for i := range parts {
		if i < len(parts)-1 {
			n, as := r.part(func(form string, n int) bool { return strings.HasSuffix(parts[i], form[:n]) })
			parts[i] = parts[i][:len(parts[i])-n] + as
		}
		if i > 0 {
			n, as := r.part(func(form string, n int) bool { return strings.HasPrefix(parts[i], form[len(form)-n:]) })
			parts[i] = as + parts[i][n:]
		}
	}
	return strings.Join(parts, ellipsis)
}

// part finds the longest piece of a secret that is there, in bytes, and the mark for it: of several secrets with an equal piece
// the first by its mark.
func (r *Redactor) part(there func(form string, n int) bool) (longest int, as string) {
	for form, mark := range r.marks {
		for n := len(form) - 1; n >= shortestPart && n >= longest; n-- {
			if there(form, n) {
				if n > longest || mark < as {
					longest, as = n, mark
				}
				break
			}
		}
	}
	return longest, as
}

func (r *Redactor) none() bool { return r == nil || len(r.marks) == 0 }

// replace goes through s once, from the left, and takes the longest form at each place.
func (r *Redactor) replace(s string) string {
	var out strings.Builder
	copied := 0
	for i := 0; i+1 < len(s); {
		at := start(s[i:])
		if r.hint[at>>6]&(1<<(at&63)) == 0 {
			i++
			continue
		}
		form := r.formAt(s[i:], at)
		if form == "" {
			i++
			continue
		}
		out.WriteString(s[copied:i])
		out.WriteString(r.marks[form])
		i += len(form)
		copied = i
	}
	if copied == 0 {
		return s
	}
	out.WriteString(s[copied:])
	return out.String()
}

func (r *Redactor) formAt(s string, at uint16) string {
	for _, form := range r.starts[at] {
		if strings.HasPrefix(s, form) {
			return form
		}
	}
	return ""
}

// Value replaces the secrets in all strings of v, in the keys of objects too, and numbers whose digits hold one. v is
// not changed; parts without secrets are shared with the result.
func (r *Redactor) Value(v machine.Value) machine.Value {
	if r.none() {
		return v
	}
	out, _ := r.value(v)
	return out
}

// value also says whether anything was replaced.
func (r *Redactor) value(v machine.Value) (machine.Value, bool) {
	switch x := v.(type) {
	case string:
		out := r.Text(x)
		return out, out != x
	case []machine.Value:
		return r.list(x)
	case machine.Values:
		return r.object(x)
	case nil, bool:
		return v, false
	}
	digits := machine.FormatValue(v)
	if out := r.Text(digits); out != digits {
		return out, true
	}
	return v, false
}

func (r *Redactor) list(list []machine.Value) (machine.Value, bool) {
	var out []machine.Value
	for i, item := range list {
		clean, changed := r.value(item)
		if changed && out == nil {
			out = append(make([]machine.Value, 0, len(list)), list[:i]...)
		}
		if out != nil {
			out = append(out, clean)
		}
	}
	if out == nil {
		return list, false
	}
	return out, true
}

func (r *Redactor) object(object machine.Values) (machine.Value, bool) {
	out := make(machine.Values, len(object))
	changed := false
	var renamed []string
	for _, key := range machine.SortedNames(object) {
		clean, hit := r.value(object[key])
		changed = changed || hit
		if r.Text(key) != key {
			renamed = append(renamed, key)
			continue
		}
		out[key] = clean
	}
	for _, key := range renamed {
		changed = true
		out[freeKey(out, r.Text(key))], _ = r.value(object[key])
	}
	if !changed {
		return object, false
	}
	return out, true
}

// freeKey numbers keys that have become equal, so that no entry is lost.
func freeKey(object machine.Values, key string) string {
	free := key
	for n := 2; ; n++ {
		if _, taken := object[free]; !taken {
			return free
		}
		free = fmt.Sprintf("%s (%d)", key, n)
	}
}

// JSON replaces the secrets in a JSON document, however its strings are escaped. A document without secrets is given
// back as it is; another comes back as compact JSON. What is not JSON is treated as text.
func (r *Redactor) JSON(data []byte) []byte {
	if r.none() {
		return data
	}
	if v, err := machine.DecodeValue(data); err == nil {
		clean, changed := r.value(v)
		if !changed {
			return data
		}
		if out, err := machine.EncodeValue(clean); err == nil {
			return out
		}
	}
	text := string(data)
	if clean := r.Text(text); clean != text {
		return []byte(clean)
	}
	return data
}

package flows

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"flowctl/flows/machine"
	"flowctl/flows/match"
	"flowctl/flows/spell"
)

// decoder fills Go structs from YAML nodes and collects everything that is wrong on its way. What can only be read once
// the whole flow is known (texts, expressions, names of states and variables) is left in pending.
type decoder struct {
	doc     *document
	found   []Finding
	pending []pending
	owner   reflect.Value // the struct whose field is being decoded
	entry   string        // the name whose value is being decoded, if it is one of a map
	unread  []string      // paths of texts and expressions that cannot be read
}

// pending is a place whose value is compiled, or whose name is looked up, when the flow's names are known.
type pending struct {
	at    spot
	shape *shape
	flags flags
	dst   reflect.Value // invalid for the key of a map, which is only looked up
	owner reflect.Value // the struct that it is a field of
	entry string        // its name, if it is a value of a map
}

func (d *decoder) add(at spot, f Finding) {
	f.Path = at.Path
	d.found = append(d.found, f.at(d.doc.pos(at.Node)))
}

// value decodes one node. The flags are those of the field that it belongs to; see flags.inside.
func (d *decoder) value(at spot, s *shape, fl flags, dst reflect.Value) {
	if dst.IsValid() && dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	placeOf(dst, at)
	if isLeaf(at.Node) && isBroken(at.Node) {
		d.leaveUnread(at.Path, s.kind, dst)
		return
	}
	if isNull(at.Node) && s.kind != shapeTree && s.kind != shapeValue {
		f := problem(ruleNoValue, "%s has no value; give it one or leave the key out", last(at.Path))
		d.add(at, f)
		return
	}
	switch s.kind {
	case shapeList:
		d.list(at, s, fl, dst)
	case shapeMap:
		d.mapping(at, s, fl, dst)
	case shapeStruct:
		d.structure(at, s, fl, dst)
	case shapeSchema:
		d.schema(at, fl, dst)
	case shapeTree, shapeValue:
		if d.words(at); isBroken(at.Node) {
			return
		}
		if s.kind == shapeTree {
			d.later(at, s, fl, dst)
		} else if v := nodeValue(at.Node); v != nil {
			dst.Set(reflect.ValueOf(v))
		}
	case shapeBool, shapeInt, shapeFloat:
		d.number(at, s, fl, dst)
	default:
		d.word(at, s, fl, dst)
	}
}

func (d *decoder) later(at spot, s *shape, fl flags, dst reflect.Value) {
	d.pending = append(d.pending, pending{at: at, shape: s, flags: fl, dst: dst, owner: d.owner, entry: d.entry})
}

// mismatch says what was expected at a place and what stands there.
func (d *decoder) mismatch(at spot, want string) {
	f := problem(ruleWrongType, "%s takes %s, not %s", last(at.Path), want, found(at.Node))
	f.Got = got(at.Node)
	switch {
	case isLeaf(at.Node) && want == "text":
		f.Fix = yamlText(at.Node.Value)
	case isLeaf(at.Node) && at.Node.Tag == tagString && strings.Contains(want, "number") && plainNumber.MatchString(at.Node.Value):
		f.Fix = at.Node.Value
	case isLeaf(at.Node) && strings.Contains(want, "a mapping") && strings.Contains(at.Node.Value, "："):
		f.Message += "; a full-width colon (：) makes no key, write : and a space"
	}
	d.add(at, f)
}

// found says what stands at a node, with its article.
func found(n *node) string {
	switch kindName(n) {
	case "nothing":
		return "nothing"
	case "text":
		return "the text " + quote(brief(n.Value))
	case "number", "boolean":
		return "the " + kindName(n) + " " + brief(n.Value)
	}
	return "a " + kindName(n)
}

func got(n *node) string {
	if isLeaf(n) {
		return brief(n.Value)
	}
	return kindName(n)
}

// last gives the end of a path for messages: the last step, with the one before it where that says whose it is.
func last(path string) string {
	if path == "" {
		return "the flow"
	}
	steps := strings.Split(path, ".")
	n := len(steps)
	if n > 1 && slices.Contains([]string{"with", "view", "limits", "transitions", "set", "args", "budget", "memory", "select"}, steps[n-1]) {
		return steps[n-2] + "." + steps[n-1]
	}
	return steps[n-1]
}

// text reads a scalar that must be text.
func (d *decoder) text(at spot, s *shape, fl flags) (string, bool) {
	if isLeaf(at.Node) && (at.Node.Tag == tagString || at.Node.Tag == tagTime) {
		return at.Node.Value, true
	}
	switch want := describe(s, fl); {
	case s.kind == shapeVar || s.kind == shapeTool || s.kind == shapeState || s.kind == shapeName:
		d.mismatch(at, strings.Replace("a "+want, "a name of", "the name of", 1)+" (letters, digits and _, a letter first)")
	case len(s.enum) > 0:
		d.mismatch(at, "one of "+strings.Join(s.enum, ", "))
	default:
		d.mismatch(at, "text")
	}
	return "", false
}

// word decodes what is written as one string.
func (d *decoder) word(at spot, s *shape, fl flags, dst reflect.Value) {
	if s.kind == shapeDuration {
		d.duration(at, dst)
		return
	}
	text, ok := d.text(at, s, fl)
	if !ok {
		return
	}
	if s.kind != shapeExpr && len(s.enum) == 0 {
		d.comment(at, s.kind == shapeText)
	}
	switch s.kind {
	case shapeName:
		if dst.SetString(text); !namePattern.MatchString(text) {
			d.add(at, badName(text))
		}
	case shapeString:
		if len(s.enum) > 0 && !slices.Contains(s.enum, text) {
			d.add(at, unknownWord(last(at.Path), text, s.enum))
			return
		}
		dst.SetString(text)
	case shapeVar, shapeTool, shapeState:
		dst.SetString(text)
		d.later(at, s, fl, dst)
	case shapeExpr:
		if isPlain(at.Node) && !balanced(text) {
			d.add(at, problem(ruleCut, "YAML cuts this expression short (%s); quote the value: %s: '…'", brief(text), last(at.Path)))
			return
		}
		d.later(at, s, fl, dst)
	case shapeText:
		d.later(at, s, fl, dst)
	case shapeKeyword, shapePattern:
		d.matcher(at, s, text, dst)
	}
}

func (d *decoder) matcher(at spot, s *shape, text string, dst reflect.Value) {
	var m machine.Matcher
	var err error
	if s.kind == shapeKeyword {
		m, err = match.Keyword(text)
	} else {
		m, err = match.Pattern(text)
	}
	if err != nil {
		d.add(at, problem(ruleBadPattern, "%v", err))
		return
	}
	dst.Set(reflect.ValueOf(m))
}

func (d *decoder) duration(at spot, dst reflect.Value) {
	if isLeaf(at.Node) && at.Node.Tag == tagString {
		if span, err := time.ParseDuration(at.Node.Value); err == nil && span > 0 {
			dst.SetInt(int64(span))
			return
		}
	}
	f := problem(ruleWrongType, "%s takes a length of time with its unit, such as 90s, 15m or 1h30m, not %s",
		last(at.Path), found(at.Node))
	f.Got = got(at.Node)
	if at.Node.Tag == tagInt {
		f.Fix = at.Node.Value + "s"
	}
	d.add(at, f)
}

// number decodes booleans and numbers.
func (d *decoder) number(at spot, s *shape, fl flags, dst reflect.Value) {
	switch s.kind {
	case shapeBool:
		if !isLeaf(at.Node) || at.Node.Tag != tagBool {
			d.mismatch(at, "true or false")
			return
		}
		dst.SetBool(strings.EqualFold(at.Node.Value, "true"))
	case shapeInt:
		v, ok := integerAt(at.Node)
		switch {
		case !ok || at.Node.Tag != tagInt && at.Node.Tag != tagFloat:
			d.mismatch(at, "a whole number")
		case fl.min && v < 1:
			d.mismatch(at, "a whole number of at least 1")
		case fl.upto > 0 && (v < 0 || v > fl.upto):
			d.mismatch(at, fmt.Sprintf("a whole number from 0 to %d", fl.upto))
		default:
			dst.SetInt(v)
		}
	case shapeFloat:
		v, ok := floatAt(at.Node)
		switch {
		case !ok || !isLeaf(at.Node):
			d.mismatch(at, "a number")
		case v < 0:
			d.mismatch(at, "a number that is not negative")
		default:
			dst.SetFloat(v)
		}
	}
}

func (d *decoder) list(at spot, s *shape, fl flags, dst reflect.Value) {
	items := at.Node.Content
	if !isList(at.Node) {
		if !s.single {
			d.mismatch(at, "a list")
			return
		}
		items = []*node{at.Node}
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	for i, item := range items {
		place := spot{File: at.File, Node: item, Path: at.Path}
		if isList(at.Node) {
			place.Path = fmt.Sprintf("%s[%d]", at.Path, i)
		}
		d.value(place, s.elem, fl, dst.Index(i))
	}
}

// namePattern is what names look like.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (d *decoder) mapping(at spot, s *shape, fl flags, dst reflect.Value) {
	if !isMapping(at.Node) {
		d.mismatch(at, "a mapping from names")
		return
	}
	count := len(at.Node.Content) / 2
	dst.Set(reflect.MakeSlice(dst.Type(), count, count))
	for i := range count {
		key, value := at.Node.Content[2*i], at.Node.Content[2*i+1]
		place := spot{File: at.File, Node: key, Path: join(at.Path, key.Value)}
		d.name(place, s, fl)
		d.entry = key.Value
		item := dst.Index(i)
		item.FieldByName("Name").SetString(key.Value)
		item.FieldByName("Pos").Set(reflect.ValueOf(d.doc.pos(key)))
		place.Node = value
		d.value(place, s.elem, fl, item.FieldByName("Value"))
	}
	d.entry = ""
	d.sameMatchers(at, dst)
}

// name checks a key that its author chose. Keys whose values are trees and that no flag explains are free, since they are
// arguments of tools, which others named; so are those whose flag says so.
func (d *decoder) name(at spot, s *shape, fl flags) {
	key := at.Node.Value
	switch {
	case fl.write:
		d.later(at, &shape{kind: shapeVar}, fl, reflect.Value{})
	case s.elem.kind == shapeTree || fl.free:
		d.textKey(at)
	case !namePattern.MatchString(key):
		d.add(at, badName(key))
	case fl.outcomes && slices.Contains(reservedOutcomes, key):
		d.add(at, problem(ruleReservedName, "%s cannot be chosen here: it is an outcome with a meaning of its own", key))
	case slices.Contains(reserved, key) && (below(at.Path, "inputs") || below(at.Path, "vars")): // said of the variable
	default:
		d.textKey(at)
	}
}

func badName(name string) Finding {
	f := problem(ruleBadName, "%s is no name; a name is lower-case letters, digits and _, and starts with a letter", quote(brief(name)))
	f.Suggestion = asName(name)
	return f
}

// asName turns a word into a name, "" if that is not possible.
func asName(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r >= 'A' && r <= 'Z':
			if i > 0 && out.Len() > 0 && !strings.HasSuffix(out.String(), "_") && s[i-1] >= 'a' && s[i-1] <= 'z' {
				out.WriteByte('_')
			}
			out.WriteRune(r - 'A' + 'a')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			out.WriteRune(r)
		case r == '-' || r == ' ' || r == '.':
			out.WriteByte('_')
		default:
			return ""
		}
	}
	if !namePattern.MatchString(out.String()) {
		return ""
	}
	return out.String()
}

// words refuses the plain words that are text for some YAML readers and true or false for others. Where a field can only
// be text they are harmless; here nobody but the reader could tell.
func (d *decoder) words(at spot) {
	if isPlain(at.Node) {
		switch strings.ToLower(at.Node.Value) {
		case "yes", "no", "on", "off", "y", "n":
			f := problem(ruleYesNo, "%s without quotes is text for some YAML readers and true or false for others", at.Node.Value)
			f.Fix = quote(at.Node.Value)
			d.add(at, f)
		}
		d.comment(at, true)
		return
	}
	for i, child := range at.Node.Content {
		path := fmt.Sprintf("%s[%d]", at.Path, i)
		if isMapping(at.Node) {
			if i%2 == 0 {
				d.textKey(spot{File: at.File, Node: child, Path: join(at.Path, child.Value)})
				continue
			}
			path = join(at.Path, at.Node.Content[i-1].Value)
		}
		d.words(spot{File: at.File, Node: child, Path: path})
	}
}

// unknownWord is a finding about a word that is not among those that a key takes.
func unknownWord(key, word string, known []string) Finding {
	f := problem(ruleUnknownWord, "%s cannot be %s", key, quote(brief(word)))
	f.Got = word
	if len([]rune(word)) > 2 { // of two letters one is half, and any other word may be meant
		f.Suggestion = spell.Nearest(word, known)
	}
	if f.Suggestion == "" {
		f.Message += "; it is one of " + strings.Join(known, ", ")
	}
	return f
}

// balanced says whether quotes and brackets of an expression are closed. One that YAML cut short rarely is.
func balanced(src string) bool {
	var stack []rune
	quoted, escaped := rune(0), false
	for _, r := range src {
		switch {
		case quoted != 0:
			if r == quoted && !escaped {
				quoted = 0
			}
			escaped = r == '\\' && !escaped && quoted != '`'
		case r == '"' || r == '\'' || r == '`':
			quoted = r
		case r == '(' || r == '[' || r == '{':
			stack = append(stack, r)
		case r == ')' || r == ']' || r == '}':
			if len(stack) == 0 {
				return false
			}
			stack = stack[:len(stack)-1]
		}
	}
	return quoted == 0 && len(stack) == 0
}

package flows

import (
	"reflect"
	"regexp"
	"strings"
	"unicode"

	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// textKey refuses a key that is a number or a boolean for YAML.
func (d *decoder) textKey(at spot) {
	if at.Node.Tag == tagString || at.Node.Tag == tagTime || at.Node.Tag == tagBroken {
		return
	}
	f := problem(ruleKeyType, "the key %s is read as a %s", at.Node.Value, kindName(at.Node))
	f.Fix = quote(at.Node.Value)
	d.add(at, f)
}

// behindValue is a comment right behind a value.
var behindValue = regexp.MustCompile(`^\s+#(.*)$`)

// comment looks for the rest of a text that YAML has taken for a comment: one with {{ }}, where the text may hold these, or
// one whose # touches a letter or digit, as in order #1.
func (d *decoder) comment(at spot, braces bool) {
	if !isPlain(at.Node) || at.Node.Tag != tagString {
		return
	}
	w, ok := newScalarWalk(d.doc.lines, at.Node)
	if !ok || !w.walk(at.Node.Value) {
		return
	}
	m := behindValue.FindStringSubmatch(string(w.runes[min(w.col, len(w.runes)):]))
	if m == nil || m[1] == "" {
		return
	}
	fix := pair(lastStep(at.Path), yamlText(at.Node.Value+" #"+strings.TrimSpace(m[1])))
	if strings.Count(m[1], "{") != strings.Count(m[1], "}") {
		fix = ""
	}
	switch first := []rune(m[1])[0]; {
	case braces && strings.Contains(m[1], "{{"):
		f := problem(ruleCut, "YAML cuts this text at the # and takes the rest for a comment; quote the text")
		f.Fix = fix
		d.add(at, f)
	case unicode.IsLetter(first) || unicode.IsDigit(first):
		f := advice(ruleCommentInText, "for YAML this text ends before the #; quote it if #%s belongs to it, else write a space after the #",
			brief(strings.TrimSpace(m[1])))
		f.Fix = fix
		d.add(at, f)
	}
}

// lastStep gives the last key of a path, "" for an item of a list.
func lastStep(path string) string {
	if strings.HasSuffix(path, "]") {
		return ""
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// sameMatchers warns of keywords and patterns that two entries of a map share: what is found by them belongs to neither.
func (d *decoder) sameMatchers(at spot, entries reflect.Value) {
	first := map[string]string{} // matcher → the entry that has it
	for i := range entries.Len() {
		name, value := entries.Index(i).FieldByName("Name").String(), entries.Index(i).FieldByName("Value")
		if value.Kind() != reflect.Struct {
			return
		}
		for f := range value.NumField() {
			key, _, _ := strings.Cut(value.Type().Field(f).Tag.Get("yaml"), ",")
			d.sameIn(at, join(name, key), name, first, value.Field(f))
		}
	}
}

// sameIn looks at one list of keywords or patterns. Its path is that below the map.
func (d *decoder) sameIn(at spot, path, name string, first map[string]string, list reflect.Value) {
	what := ""
	switch list.Type() {
	case reflect.TypeFor[[]machine.Keyword]():
		what = "keyword"
	case reflect.TypeFor[[]machine.Pattern]():
		what = "pattern"
	default:
		return
	}
	for i := range list.Len() {
		m, ok := list.Index(i).Interface().(machine.Matcher)
		if !ok {
			continue // it is wrong: said already
		}
		written := m.Source()
		if w, ok := m.(*match.Word); ok {
			written = w.Folded()
		}
		other, taken := first[what+written]
		if !taken {
			first[what+written] = name
			continue
		}
		if other == name {
			continue
		}
		node := child(at.Node, path)
		if isList(node) && i < len(node.Content) {
			node = node.Content[i]
		}
		d.add(spot{File: at.File, Node: node, Path: join(at.Path, path)}, advice(ruleAmbiguous,
			"the %s %s stands in %s too, so it does not tell %s and %s apart", what, quote(brief(m.Source())), other, other, name))
	}
}

// leaveUnread puts something in the place of a text that cannot be read, so that the rest of what its handler says can be
// checked.
func (d *decoder) leaveUnread(path string, kind shapeKind, dst reflect.Value) {
	if kind != shapeText && kind != shapeExpr && kind != shapeTree {
		return
	}
	d.unread = append(d.unread, path)
	dst.Set(reflect.ValueOf(unread{}))
}

// unread stands for a text, an expression or a tree that cannot be read. It is in no machine that runs.
type unread struct{}

var (
	_ machine.Expr     = unread{}
	_ machine.Template = unread{}
)

const errUnread = fault("it could not be read when the flow was compiled")

func (unread) Source() string                             { return "" }
func (unread) Reads() []string                            { return nil }
func (unread) Eval(machine.Facts) (machine.Value, error)  { return nil, errUnread }
func (unread) Value(machine.Facts) (machine.Value, error) { return nil, errUnread }
func (unread) Render(machine.Facts) (string, error)       { return "", errUnread }
func (unread) Parts() []machine.TextPart                  { return nil }

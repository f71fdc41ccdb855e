package flows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
)

// node is a place in a YAML file. What leaves this file holds no aliases and no merge keys any more.
type node = yaml.Node

// Tags of scalars, as the YAML library resolves them.
const (
	tagString = "!!str"
	tagNull   = "!!null"
	tagBool   = "!!bool"
	tagInt    = "!!int"
	tagFloat  = "!!float"
	tagTime   = "!!timestamp"
	tagMerge  = "!!merge"
	tagMap    = "!!map"
	tagList   = "!!seq"

	// tagBroken marks a scalar about which everything has been said, so that nothing more is.
	tagBroken = "!broken"
)

// document is a flow file as it was read.
type document struct {
	file  string
	lines []string // the text, for looking around a place
	root  *node    // nil if the text is not YAML
	slip  []slip   // see slips; nil before they are asked for
}

// parse reads one YAML document. The findings are those of YAML itself; root is nil where nothing can be made of it.
func parse(file string, source []byte) (*document, []Finding) {
	doc := &document{file: file, lines: strings.Split(string(source), "\n")}
	if pos, ok := badByte(source); ok {
		return doc, []Finding{problem(ruleSyntax, "this is not UTF-8 text; save the file as UTF-8").
			at(machine.Pos{File: file, Line: pos.Line, Col: pos.Col})}
	}
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var first, second yaml.Node
	switch err := dec.Decode(&first); {
	case errors.Is(err, io.EOF):
		return doc, []Finding{problem(ruleEmptyFile, "the file is empty; a flow starts with version: 1").at(doc.top())}
	case err != nil:
		return doc, doc.syntaxErrors(source, err)
	}
	if len(first.Content) == 0 || isNull(first.Content[0]) {
		return doc, []Finding{problem(ruleEmptyFile, "the file is empty; a flow starts with version: 1").at(doc.top())}
	}
	var found []Finding
	switch err := dec.Decode(&second); {
	case err == nil:
		found = append(found, problem(ruleSecondDocument,
			"a second document starts here (---); a file holds one flow").at(doc.pos(&second)))
	case !errors.Is(err, io.EOF):
		return doc, doc.syntaxErrors(source, err)
	}
	c := cleaner{doc: doc, clean: map[*yaml.Node]*node{}, size: map[*node]int{}, open: map[*yaml.Node]bool{}}
	root := c.node(first.Content[0], "")
	found = append(found, c.found...)
	if !c.broken && c.size[root] <= maxNodes {
		doc.root = root
	}
	return doc, found
}

// scanYAML says how a text fails to be YAML.
func scanYAML(source []byte) error {
	var n yaml.Node
	return yaml.Unmarshal(source, &n)
}

func (d *document) top() machine.Pos { return machine.Pos{File: d.file, Line: 1, Col: 1} }

func (d *document) pos(n *node) machine.Pos {
	if n == nil || n.Line == 0 {
		return d.top()
	}
	return machine.Pos{File: d.file, Line: n.Line, Col: n.Column}
}

func badByte(source []byte) (machine.Pos, bool) {
	if utf8.Valid(source) {
		return machine.Pos{}, false
	}
	line, col := 1, 1
	for len(source) > 0 {
		r, size := utf8.DecodeRune(source)
		if r == utf8.RuneError && size <= 1 {
			break
		}
		if col++; r == '\n' {
			line, col = line+1, 1
		}
		source = source[size:]
	}
	return machine.Pos{Line: line, Col: col}, true
}

// maxNodes bounds a file once its aliases are written out, so that a small file cannot grow without end.
const maxNodes = 100_000

// cleaner replaces aliases and merge keys by what they stand for, and finds what YAML readers commonly let pass. Subtrees
// that an alias names are cleaned once and shared, so its work is linear in the file.
type cleaner struct {
	doc    *document
	clean  map[*yaml.Node]*node
	size   map[*node]int       // nodes below and with, aliases written out
	open   map[*yaml.Node]bool // being cleaned: an alias to one of these is a cycle
	found  []Finding
	broken bool // a cycle or too large: nothing may walk the tree
}

func (c *cleaner) add(n *node, path string, f Finding) {
	f.Path = path
	c.found = append(c.found, f.at(c.doc.pos(n)))
}

func (c *cleaner) node(n *yaml.Node, path string) *node {
	if n.Kind == yaml.AliasNode {
		return c.alias(n, path)
	}
	if done, ok := c.clean[n]; ok {
		return done
	}
	if out, ok := c.bareBraces(n, path); ok {
		c.clean[n] = out
		return out
	}
	c.open[n] = true
	out := &node{Kind: n.Kind, Style: n.Style, Tag: n.ShortTag(), Value: n.Value, Line: n.Line, Column: n.Column}
	switch n.Kind {
	case yaml.MappingNode:
		c.mapping(n, out, path)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			out.Content = append(out.Content, c.node(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	case yaml.ScalarNode:
		c.scalar(out, path)
	}
	c.checkTag(out, path)
	c.measure(out)
	delete(c.open, n)
	c.clean[n] = out
	return out
}

// bareBraces recognises {{ name }} without quotes: for YAML it is a mapping whose key is a mapping. What stands there for it
// says nothing more.
func (c *cleaner) bareBraces(n *yaml.Node, path string) (*node, bool) {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle == 0 || len(n.Content) == 0 {
		return nil, false
	}
	inner := n.Content[0]
	if inner.Kind != yaml.MappingNode || inner.Line != n.Line || inner.Column != n.Column+1 {
		return nil, false
	}
	f := bareBraces("", "{{ … }}")
	for _, s := range c.doc.slips() {
		if s.f.Rule == ruleBareBraces && s.f.Line == n.Line && s.f.Col == n.Column {
			f = s.f
		}
	}
	c.add(n, path, f)
	out := &node{Kind: yaml.ScalarNode, Tag: tagBroken, Line: n.Line, Column: n.Column}
	c.measure(out)
	return out, true
}

// measure counts what the tree would hold with its aliases written out.
func (c *cleaner) measure(n *node) {
	total := 1
	for _, child := range n.Content {
		total = min(total+c.size[child], maxNodes+1)
	}
	c.size[n] = total
	if total > maxNodes && !c.broken {
		c.broken = true
		c.add(n, "", problem(ruleAlias, "the file is too large once its aliases are written out (more than %d values)", maxNodes))
	}
}

func (c *cleaner) alias(n *yaml.Node, path string) *node {
	if c.open[n.Alias] {
		c.broken = true
		c.add(n, path, problem(ruleAlias, "*%s stands inside &%s, so it would hold itself without end", n.Value, n.Value))
		return &node{Kind: yaml.ScalarNode, Tag: tagNull, Line: n.Line, Column: n.Column}
	}
	return c.node(n.Alias, path)
}

func (c *cleaner) mapping(n *yaml.Node, out *node, path string) {
	seen := map[string]*node{}
	var merged []*node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == tagMerge {
			merged = append(merged, c.merge(value, path)...)
			continue
		}
		if path == "" && isExtra(key.Value) {
			continue // what is used of it is cleaned where an alias names it
		}
		if n.Style&yaml.FlowStyle != 0 && c.cutOff(key, value, out, path) {
			continue
		}
		k := c.node(key, path)
		if !c.checkKey(k, path) {
			continue
		}
		if first, again := seen[k.Value]; again {
			c.add(k, join(path, k.Value), problem(ruleDuplicateKey, "%s stands here twice (first in line %d)", k.Value, first.Line))
			continue
		}
		seen[k.Value] = k
		out.Content = append(out.Content, k, c.node(value, join(path, k.Value)))
	}
	var base []*node
	for i := 0; i+1 < len(merged); i += 2 {
		if _, own := seen[merged[i].Value]; own {
			continue
		}
		seen[merged[i].Value] = merged[i]
		base = append(base, merged[i], merged[i+1])
	}
	out.Content = append(base, out.Content...)
}

// cutOff recognises the rest of an unquoted value that YAML has cut at a comma, as in {say: Well, no}: it stands there as
// a key without value. The value is put together again, so that nothing else is said about it.
func (c *cleaner) cutOff(key, value *yaml.Node, out *node, path string) bool {
	if !isPlain(key) || !isNull(value) || value.Value != "" || len(out.Content) == 0 {
		return false
	}
	name, before := out.Content[len(out.Content)-2], out.Content[len(out.Content)-1]
	if before.Tag == tagBroken {
		return true
	}
	if !isPlain(before) || isNull(before) {
		return false
	}
	before.Value, before.Tag = before.Value+", "+key.Value, tagString
	f := problem(ruleCut, "YAML cuts the value of %s at the comma; quote the value", name.Value)
	f.Fix = name.Value + ": " + quote(before.Value)
	c.add(before, join(path, name.Value), f)
	return true
}

// merge gives the pairs that `<<` brings in: of one mapping, or of several, the first of which counts.
func (c *cleaner) merge(value *yaml.Node, path string) []*node {
	n := c.node(value, path)
	sources := []*node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var pairs []*node
	for _, source := range sources {
		if source.Kind != yaml.MappingNode {
			c.add(value, path, problem(ruleAlias, "<< takes a mapping, such as <<: *name"))
			return nil
		}
		pairs = append(pairs, source.Content...)
	}
	return pairs
}

func (c *cleaner) checkKey(k *node, path string) bool {
	switch {
	case k.Kind != yaml.ScalarNode:
		c.add(k, path, problem(ruleKeyType, "a key must be a word; this one is a %s", kindName(k)))
	case k.Tag == tagNull:
		c.add(k, path, problem(ruleNullKey, "a key is missing before the colon here"))
	default:
		return true // one that is no text is told where it is known what it names: see decoder.textKey
	}
	return false
}

// plainNumber is how JSON and people write numbers. YAML has more: 010 is 8, 0x10 is 16, 1_000 is 1000, 1:30 is 90.
var plainNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (c *cleaner) scalar(n *node, path string) {
	if n.Tag != tagInt && n.Tag != tagFloat {
		return
	}
	if !plainNumber.MatchString(n.Value) {
		c.add(n, path, problem(ruleNumber,
			"YAML readers do not agree on the number %s; write a plain decimal number such as 10 or 1.5, or text in quotes", n.Value))
		n.Tag = tagBroken
		return
	}
	if _, err := machine.DecodeValue([]byte(strings.TrimPrefix(n.Value, "+"))); err != nil {
		message, _, _ := strings.Cut(err.Error(), "; ")
		c.add(n, path, problem(ruleNumber, "%s; write a smaller one, or where text will do, put it in quotes", message))
		n.Tag = tagBroken
	}
}

func (c *cleaner) checkTag(n *node, path string) {
	switch n.Tag {
	case tagString, tagNull, tagBool, tagInt, tagFloat, tagTime, tagMap, tagList, tagMerge, tagBroken:
		return
	}
	f := problem(ruleTag, "YAML reads %s as a tag, which has no meaning in a flow", n.Tag)
	if n.Kind == yaml.ScalarNode {
		f.Fix = quote(strings.TrimSpace(n.Tag + " " + n.Value))
		n.Tag = tagBroken
	}
	c.add(n, path, f)
}

// isExtra says whether a top key is for the author alone.
func isExtra(key string) bool { return strings.HasPrefix(key, "x-") }

func isNull(n *node) bool { return n.Kind == yaml.ScalarNode && n.Tag == tagNull }

func isLeaf(n *node) bool { return n.Kind == yaml.ScalarNode }

func isMapping(n *node) bool { return n != nil && n.Kind == yaml.MappingNode }

func isList(n *node) bool { return n.Kind == yaml.SequenceNode }

// isPlain says whether a scalar was written without quotes.
func isPlain(n *node) bool { return n.Kind == yaml.ScalarNode && n.Style == 0 }

// isBroken says whether something at or below a node is marked with tagBroken.
func isBroken(n *node) bool { return n.Tag == tagBroken || slices.ContainsFunc(n.Content, isBroken) }

// lookup finds the key and the value of a mapping's entry.
func lookup(n *node, key string) (k, v *node) {
	if n == nil || !isMapping(n) {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// kindName says what stands at a node, for people.
func kindName(n *node) string {
	switch {
	case isMapping(n):
		return "mapping"
	case isList(n):
		return "list"
	}
	switch n.Tag {
	case tagNull:
		return "nothing"
	case tagBool:
		return "boolean"
	case tagInt, tagFloat:
		return "number"
	}
	return "text"
}

// nodeValue gives the JSON value of a node. Dates are text, as they are in JSON.
func nodeValue(n *node) machine.Value {
	switch n.Kind {
	case yaml.MappingNode:
		out := make(machine.Values, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = nodeValue(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := make([]machine.Value, len(n.Content))
		for i, item := range n.Content {
			out[i] = nodeValue(item)
		}
		return out
	}
	switch n.Tag {
	case tagNull:
		return nil
	case tagBool:
		return strings.EqualFold(n.Value, "true")
	case tagInt, tagFloat:
		v, err := machine.DecodeValue([]byte(strings.TrimPrefix(n.Value, "+")))
		if err == nil {
			return v
		}
	}
	return n.Value
}

// nodeJSON writes a node as JSON with the keys of its mappings in written order.
func nodeJSON(buf *bytes.Buffer, n *node) {
	switch n.Kind {
	case yaml.MappingNode:
		buf.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				buf.WriteByte(',')
			}
			writeJSON(buf, n.Content[i].Value)
			buf.WriteByte(':')
			nodeJSON(buf, n.Content[i+1])
		}
		buf.WriteByte('}')
	case yaml.SequenceNode:
		buf.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				buf.WriteByte(',')
			}
			nodeJSON(buf, item)
		}
		buf.WriteByte(']')
	default:
		writeJSON(buf, nodeValue(n))
	}
}

func writeJSON(buf *bytes.Buffer, v machine.Value) {
	data, err := machine.EncodeValue(v)
	if err != nil { // what nodeValue gives is always JSON
		panic(err)
	}
	buf.Write(data)
}

// child steps down a path such as steps[1].args, as far as it goes, and gives the place it came to.
func child(n *node, path string) *node {
	for path != "" {
		var next *node
		if rest, ok := strings.CutPrefix(path, "["); ok {
			digits, tail, _ := strings.Cut(rest, "]")
			i, err := strconv.Atoi(digits)
			if err != nil || !isList(n) || i < 0 || i >= len(n.Content) {
				return n
			}
			next, path = n.Content[i], strings.TrimPrefix(tail, ".")
		} else {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			_, next = lookup(n, path[:end])
			path = strings.TrimPrefix(path[end:], ".")
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// quote writes s as a YAML string in single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// brief shortens a text for a message.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return s
}

// integerAt and floatAt read a number.
func integerAt(n *node) (int64, bool) {
	v, ok := nodeValue(n).(int64)
	return v, ok && isLeaf(n)
}

func floatAt(n *node) (float64, bool) {
	switch v := nodeValue(n).(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, !math.IsInf(v, 0)
	}
	return 0, false
}

package flows

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sort"

	"flowctl/flows/machine"
)

// The canonical form of a flow is JSON that is equal for files that say the same: comments, formatting, anchors, x- keys
// and the order of fixed keys are gone; the order of names stays, as it can mean something. Its digest identifies a flow.

// hash gives the digest of the whole flow.
func (c *compiler) hash() string {
	var buf bytes.Buffer
	canonical(&buf, c.root.Node, c.shape, flags{})
	return digest(buf.Bytes())
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digests gives each state the digest of all that a step in it depends on: itself, the tools that it can use, and the
// schemas of the variables that it reads or writes.
func (c *compiler) digests() {
	states, _ := findField(c.shape.fields, "states")
	tools, _ := findField(c.shape.fields, "tools")
	for _, item := range c.m.States {
		s := item.Value
		var buf bytes.Buffer
		canonical(&buf, child(c.root.Node, "states."+s.Name), states.shape.elem, flags{})
		for _, name := range c.of(s.Name).tools.sorted() {
			buf.WriteString("\ntool " + name + " ")
			canonical(&buf, child(c.root.Node, "tools."+name), tools.shape.elem, flags{})
		}
		variables := names{}
		variables.add(s.Reads...)
		variables.add(s.Writes...)
		for _, name := range variables.sorted() {
			v, _ := c.m.Variable(name)
			buf.WriteString("\nvariable " + name + " ")
			buf.Write(v.Schema.JSON())
			if v.Secret {
				buf.WriteString(" secret")
			}
		}
		s.Digest = digest(buf.Bytes())
	}
}

// canonical writes what stands at a node.
func canonical(buf *bytes.Buffer, n *node, s *shape, fl flags) {
	switch s.kind {
	case shapeList:
		items := n.Content
		if !isList(n) {
			items = []*node{n}
		}
		buf.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				buf.WriteByte(',')
			}
			canonical(buf, item, s.elem, fl)
		}
		buf.WriteByte(']')
	case shapeMap:
		members(buf, n, writtenPairs(n), func(_ string, value *node) { canonical(buf, value, s.elem, fl) })
	case shapeStruct:
		canonicalStruct(buf, n, s)
	case shapeSchema:
		_, properties := lookup(n, "properties")
		canonicalSchema(buf, n, fl.short && properties == nil)
	default:
		writeJSON(buf, nodeValue(n))
	}
}

func canonicalStruct(buf *bytes.Buffer, n *node, s *shape) {
	if !isMapping(n) { // a bare scalar or list means the same as a mapping with one key
		f, _ := s.scalar()
		if f.name == "" {
			writeJSON(buf, nodeValue(n))
			return
		}
		buf.WriteByte('{')
		writeJSON(buf, f.name)
		buf.WriteByte(':')
		canonical(buf, n, f.shape, f.flags)
		buf.WriteByte('}')
		return
	}
	fields, _ := s.keys(n)
	members(buf, n, sortedPairs(n), func(key string, value *node) {
		f, ok := findField(fields, key)
		if !ok { // only in a flow that does not compile
			writeJSON(buf, nodeValue(value))
			return
		}
		canonical(buf, value, f.shape, f.flags)
	})
}

// canonicalSchema writes a JSON Schema. The keys of a schema are fixed, so their order means nothing; that of properties
// is the order in which they are asked for and shown.
func canonicalSchema(buf *bytes.Buffer, n *node, named bool) {
	switch {
	case isMapping(n) && named:
		members(buf, n, writtenPairs(n), func(_ string, value *node) { canonicalSchema(buf, value, false) })
	case isMapping(n):
		members(buf, n, sortedPairs(n), func(key string, value *node) { canonicalSchema(buf, value, key == "properties") })
	case isList(n):
		buf.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				buf.WriteByte(',')
			}
			canonicalSchema(buf, item, false)
		}
		buf.WriteByte(']')
	default:
		writeJSON(buf, nodeValue(n))
	}
}

// writtenPairs gives the indexes of a mapping's keys in written order.
func writtenPairs(n *node) []int {
	out := make([]int, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, i)
	}
	return out
}

func sortedPairs(n *node) []int {
	out := writtenPairs(n)
	sort.Slice(out, func(i, j int) bool { return n.Content[out[i]].Value < n.Content[out[j]].Value })
	return out
}

func members(buf *bytes.Buffer, n *node, pairs []int, value func(key string, value *node)) {
	buf.WriteByte('{')
	for i, at := range pairs {
		if i > 0 {
			buf.WriteByte(',')
		}
		writeJSON(buf, machine.Value(n.Content[at].Value))
		buf.WriteByte(':')
		value(n.Content[at].Value, n.Content[at+1])
	}
	buf.WriteByte('}')
}

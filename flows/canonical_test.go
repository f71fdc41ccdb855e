package flows

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// hashOf gives the hash of a source that parses.
func hashOf(t interface{ Fatalf(string, ...any) }, source []byte) string {
	doc, found := parse("flow.yaml", source)
	if doc.root == nil || len(found) > 0 {
		t.Fatalf("the source does not parse: %v\n%s", found, source)
	}
	var buf bytes.Buffer
	canonical(&buf, doc.root, fileShape(testCatalog()), flags{})
	return digest(buf.Bytes())
}

// TestHashIgnoresForm writes large flows anew in random ways: other order of fixed keys, other quotes and brackets,
// comments, an anchor holder. Their hash stays. Then one scalar changes, and the hash with it.
func TestHashIgnoresForm(t *testing.T) {
	for _, name := range []string{"support.yaml", "examples.yaml", "keys.yaml"} {
		t.Run(name, func(t *testing.T) { hashIgnoresForm(t, "testdata/ok/"+name) })
	}
}

func hashIgnoresForm(t *testing.T, file string) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shape := fileShape(testCatalog())
	want := hashOf(t, source)
	rapid.Check(t, func(t *rapid.T) {
		doc, _ := parse("flow.yaml", source)
		rewrite(t, doc.root, shape, flags{})
		if got := hashOf(t, written(t, doc.root)); got != want {
			t.Fatalf("the hash changed with the form:\n%s", written(t, doc.root))
		}
		var leaves []*node
		collectLeaves(doc.root, &leaves)
		leaf := rapid.SampledFrom(leaves).Draw(t, "leaf")
		leaf.Value, leaf.Tag, leaf.Style = leaf.Value+"z", tagString, yaml.DoubleQuotedStyle
		if got := hashOf(t, written(t, doc.root)); got == want {
			t.Fatalf("the hash stayed although %q changed", leaf.Value)
		}
	})
}

func written(t *rapid.T, root *node) []byte {
	out, err := yaml.Marshal(root)
	if err != nil {
		t.Fatalf("the tree cannot be written: %v", err)
	}
	return append([]byte("# a comment\nx-scrap: {anything: 1}\n"), out...)
}

// rewrite changes what must not matter.
func rewrite(t *rapid.T, n *node, s *shape, fl flags) {
	n.LineComment, n.HeadComment = "", rapid.SampledFrom([]string{"", "# said by the way"}).Draw(t, "comment")
	switch s.kind {
	case shapeStruct:
		if !isMapping(n) {
			return
		}
		shuffle(t, n)
		fields, _ := s.keys(n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			f, _ := findField(fields, n.Content[i].Value)
			rewrite(t, n.Content[i+1], f.shape, f.flags)
		}
	case shapeMap:
		for i := 1; i < len(n.Content); i += 2 {
			rewrite(t, n.Content[i], s.elem, fl)
		}
	case shapeList:
		for _, item := range n.Content {
			if isList(n) {
				rewrite(t, item, s.elem, fl)
			}
		}
	case shapeSchema:
		if !fl.short {
			shuffle(t, n)
		}
	case shapeText, shapeString:
		n.Style = rapid.SampledFrom([]yaml.Style{yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle}).Draw(t, "style")
		return
	}
	if len(n.Content) > 0 {
		n.Style = 0 // block style, whatever it was
	}
}

func shuffle(t *rapid.T, n *node) {
	pairs := make([][2]*node, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, [2]*node{n.Content[i], n.Content[i+1]})
	}
	for i, pair := range rapid.Permutation(pairs).Draw(t, "order") {
		n.Content[2*i], n.Content[2*i+1] = pair[0], pair[1]
	}
}

// collectLeaves gives the scalars that are values.
func collectLeaves(n *node, out *[]*node) {
	for i, child := range n.Content {
		if isMapping(n) && i%2 == 0 {
			continue
		}
		if isLeaf(child) {
			*out = append(*out, child)
		}
		collectLeaves(child, out)
	}
}

func TestHash(t *testing.T) {
	base := exampleHead + "vars: {a: {type: string}, b: {type: string}}\n" + exampleTail
	tests := []struct {
		name, source string
		same         bool
	}{
		{"shorthand of a line", strings.Replace(base, "next: done", "next: {to: done}", 1), true},
		{"line as a list", strings.Replace(base, "next: done", "next: [done]", 1), true},
		{"CRLF and BOM", "\uFEFF" + strings.ReplaceAll(base, "\n", "\r\n"), true},
		{"anchor", strings.Replace(base, "vars: {a: {type: string}, b: {type: string}}", "x-t: &t {type: string}\nvars: {a: *t, b: *t}", 1), true},
		{"merge key", strings.Replace(base, "a: {type: string}", "a: {<<: {type: string}}", 1), true},
		{"order of names", strings.Replace(base, "a: {type: string}, b: {type: string}", "b: {type: string}, a: {type: string}", 1), false},
		{"number for text", strings.Replace(base, "name: example", "name: '1'", 1), false},
	}
	want := hashOf(t, []byte(base))
	for _, test := range tests {
		if test.source == base {
			t.Errorf("%s: the source was not changed", test.name)
		}
		if got := hashOf(t, []byte(test.source)); (got == want) != test.same {
			t.Errorf("%s: the hash is the same: %v, want %v", test.name, got == want, test.same)
		}
	}
	listed := toolsFlow(3, "")
	for form, same := range map[string]bool{"{of: [add_1, add_2, add_3]}": true, "[add_1, {tool: add_2}, add_3]": true,
		"{of: [add_1, add_2, add_3], select: {top: 2}}": false, "[add_1, {tool: add_2, when: 'true'}, add_3]": false} {
		other := strings.Replace(listed, "[add_1, add_2, add_3]", form, 1)
		if got := hashOf(t, []byte(other)) == hashOf(t, []byte(listed)); got != same || other == listed {
			t.Errorf("tools: %s: the hash is that of the plain list: %v, want %v", form, got, same)
		}
	}
	properties := exampleHead + "vars: {a: {type: object, properties: {x: {type: string}, y: {type: string}}}}\n" + exampleTail
	turned := strings.Replace(properties, "x: {type: string}, y: {type: string}", "y: {type: string}, x: {type: string}", 1)
	if hashOf(t, []byte(properties)) == hashOf(t, []byte(turned)) {
		t.Error("the order of properties, in which they are asked for, does not change the hash")
	}
}

// TestDigest: a state's digest changes with what a step in it depends on, and with nothing else.
func TestDigest(t *testing.T) {
	source, err := os.ReadFile("testdata/ok/support.yaml")
	if err != nil {
		t.Fatal(err)
	}
	digestOf := func(source string) string {
		m, err := Compile([]byte(source), "testdata/ok", testCatalog())
		if err != nil {
			t.Fatal(err)
		}
		return state(t, m, "carry_out").Digest
	}
	base := digestOf(string(source))
	tests := []struct {
		what, old, new string
		same           bool
	}{
		{"another state's key", "limits: {turns: 4}", "limits: {turns: 5}", true},
		{"the flow's description", "description: Resolve", "description: Solve", true},
		{"its limits", "limits: {visits: 3, turns: 8", "limits: {visits: 3, turns: 9", false},
		{"its examples", "    limits: {visits: 3", "    examples: [{user: Go, assistant: Done}]\n    limits: {visits: 3", false},
		{"a guard of its tool", "tools: [lookup_order, refund_order]", "tools: [lookup_order, {tool: refund_order, when: 'wish != null'}]", false},
		{"the form of its tools", "tools: [lookup_order, refund_order]", "tools: {of: [{tool: lookup_order}, refund_order]}", true},
		{"how many tools it is given", "tools: [lookup_order, refund_order]", "tools: {of: [lookup_order, refund_order], select: {top: 1}}", false},
		{"its cache", "    limits: {visits: 3", "    cache: true\n    limits: {visits: 3", false},
		{"its model", "    limits: {visits: 3", "    model: default\n    limits: {visits: 3", false},
		{"another state's examples", "    limits: {turns: 4}", "    examples: [{user: Go, assistant: {order_id: A1001}}]\n    limits: {turns: 4}", true},
		{"another state's cache", "    limits: {turns: 4}", "    cache: true\n    limits: {turns: 4}", true},
		{"how the model is declared", "temperature: 0.2", "temperature: 0.3", true},
		{"a tool that it can use", "SET status = 'refunded'", "SET status = 'paid back'", false},
		{"the schema of a variable that it reads", "'^A[0-9]{4}$'", "'^A[0-9]{5}$'", false},
		{"the schema of another variable", "wish: {type: string, enum: [refund, exchange, question]}", "wish: {type: string, enum: [refund, exchange, question, x]}", true},
	}
	for _, test := range tests {
		changed := strings.Replace(string(source), test.old, test.new, 1)
		if changed == string(source) {
			t.Errorf("%s: %q is not in the flow", test.what, test.old)
		}
		if got := digestOf(changed); (got == base) != test.same {
			t.Errorf("%s: the digest is the same: %v, want %v", test.what, got == base, test.same)
		}
	}
}

package flows

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSyntaxErrors: what the YAML library says gets the right line and plain words.
func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		name, source string
		line, col    int
		words        string
	}{
		{"tab", "a: 1\nb:\n\tc: 1\n", 3, 1, "a tab indents this line"},
		{"indentation", "a:\n  b: 1\n   c: 2\n", 3, 4, "indented deeper than the one above"},
		{"less indentation", "top:\n    a:\n      b: 1\n   c: 2\nd: 1\n", 4, 4, "does not fit the ones above"},
		{"a far start", "a:\n" + strings.Repeat("  k: {x: 1}\n  l: 2\n", 20) + " m: 3\n", 42, 2, "does not fit the ones above"},
		{"list item", "a:\n  - 1\n  b: 2\n", 3, 3, "does not fit the list above"},
		{"colon", "a: b: c\n", 1, 5, "a value that holds ': ' must be in quotes"},
		{"after a quote", "a: 1\nb: \"x\" == y\n", 2, 4, "the quotes end before the value does"},
		{"no colon", "a: 1\nb\nc: 2\n", 2, 1, "neither a key with a colon"},
		{"open quote", "a: 1\nb: 'x\nc: 2\n", 2, 4, "a quote is opened here and never closed"},
		{"open bracket", "a: 1\nb: [x\nc: 2\n", 2, 4, "is not closed"},
		{"question", "a: 1\nb: {q: Sure?}\n", 2, 12, "question mark"},
		{"start of a value", "a: 1\nb: @x\n", 2, 4, "a value that begins with @ must be in quotes"},
		{"anchor", "a: 1\nb: *x\n", 2, 4, "*x names an anchor"},
		{"guard", "a:\n  - {when: x in [\"a\"], to: b}\n", 2, 12, "cannot read this guard"},
		{"guard that starts with a quote", "a:\n  - {when: \"a\" == b, to: b}\n", 2, 12, "cannot read this guard"},
		{"not a guard", "a:\n  - {when: 'x > 1', to: [b}\n", 2, 25, "the [ here is not closed"},
		{"bytes", "a: 1\nb: \xff\n", 2, 4, "not UTF-8"},
		{"UTF-16", "\xff\xfea\x00", 1, 1, "not UTF-8"},
		{"control character", "a: \x01\n", 1, 4, "a control character (U+0001)"},
		{"NUL", "a: 1\nb: x\x00\n", 2, 5, "U+0000"},
		{"nothing before a colon", "a: {b: c, : d}\n", 1, 11, "a key or a value is missing"},
		{"depth", strings.Repeat("[", 20000), 1, 1, "nested too deep"},
	}
	for _, test := range tests {
		doc, found := parse("f.yaml", []byte(test.source))
		if doc.root != nil || len(found) != 1 {
			t.Errorf("%s: parse gives a tree or %v, want one finding", test.name, found)
			continue
		}
		f := found[0]
		if f.Line != test.line || f.Col != test.col || !strings.Contains(f.Message, test.words) || strings.Contains(f.Message, "yaml:") {
			t.Errorf("%s: got %s, want %d:%d with %q", test.name, f, test.line, test.col, test.words)
		}
	}
}

// TestSlips: what people write in place of YAML is told where it stands, with what to write instead.
func TestSlips(t *testing.T) {
	tests := []struct{ source, want string }{
		{"a: {{ b }}?\nc: d\n", `1:4 bare-braces: a: "{{ b }}?"`},
		{"a: {{ b }} is \"c\"\n", `1:4 bare-braces: a: '{{ b }} is "c"'`},
		{"a: {b: {{ c }}, and so on, d: e, f: g?}\n", `1:8 bare-braces: b: "{{ c }}, and so on" | 1:38 yaml-syntax: f: 'g?'`},
		{"a: {b: Hello {{ c }}, d: [x, {{ e }}]}\n", `1:14 bare-braces: b: "Hello {{ c }}" | 1:30 bare-braces: "{{ e }}"`},
		{"a: {b: Which?, c: 'd?'}\ne: [f?, g?]\n", `1:13 yaml-syntax: b: 'Which?' | 2:6 yaml-syntax: 'f?' | 2:10 yaml-syntax: 'g?'`},
		{"a: b: {{ c }}\n", `1:5 yaml-syntax: a: "b: {{ c }}"`},
		{"a: {b: c: d, e: f}\n", `1:9 yaml-syntax: b: 'c: d'`},
		{"a: b: c # a comment\n", `1:5 yaml-syntax: a: 'b: c'`},
		{"a: {b: \"c, d: e}\nf: \"g\"\n", `1:8 yaml-syntax: `},
		{"a: {b: \"c, d: \"e\"}\n", `1:8 yaml-syntax: `},
		{"a: {b: “c?”, d: e}\n", `1:8 yaml-syntax: b: 'c?'`},
		{"a: {when: 'visits('b') < 3', to: c}\n", `1:11 cut-value: when: "visits('b') < 3"`},
		{"a: {when: 'b < 3' or b > 5, to: c}\n", `1:11 cut-value: when: 'b < 3 or b > 5'`},
		{"a:\n  - when: 'red' == b\n", `2:11 cut-value: when: "'red' == b"`},
		{"a: {when: b in [\"c\", 'd'], to: c}\n", `1:11 cut-value: when: 'b in ["c", ''d'']'`},
		{"a: \"\\d+\"\n", `1:5 yaml-syntax: a: '\d+'`},
		{"a: {b: @c d, e: f}\n", `1:8 yaml-syntax: b: '@c d'`},
		{"a： b\nc: d\n", `1:2 yaml-syntax: `},
		{"a:\u00A0b\nc: d\n", `1:3 yaml-syntax: `},
		{"a:\n \u00A0b: c\n  d: e\n", `2:2 yaml-syntax: `},
		{"a:\n  b: [c, d\n  e: f\ng: h\n", `2:6 yaml-syntax: `},
		{"a: {b: c #1, d: e}\nf: g\n", `1:10 yaml-syntax: b: 'c #1'`},
		{"a: {b: #c, d: e}\nf: g\n", `1:8 yaml-syntax: b: '#c'`},
		{"a: {b: c, # see {d}\n  e: f}\ng: h: i\n", `3:5 yaml-syntax: g: 'h: i'`},
		{"a: |\n  b: c: d? {{ e }} 'f\ng: h: i\n", `3:5 yaml-syntax: g: 'h: i'`},
		{"a:\n  - b: >\n      c: d: e\n    f: 'g''h'\n    i: j: k\n", `5:9 yaml-syntax: i: 'j: k'`},
		{"a: 'b\n  c: d: e'\nf: g: h\n", `3:5 yaml-syntax: f: 'g: h'`},
		{"a: &x [b, c] # d: e: f?\ng: *x\nh: i: j\n", `3:5 yaml-syntax: h: 'i: j'`},
	}
	for _, test := range tests {
		doc, found := parse("f.yaml", []byte(test.source))
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Col, f.Rule, f.Fix))
		}
		if text := strings.Join(got, " | "); doc.root != nil || text != test.want {
			t.Errorf("%q:\ngot  %s\nwant %s", test.source, text, test.want)
		}
		for i, f := range found {
			if told := strings.Contains(f.Message, "the rest of the file"); told != (i == 0) {
				t.Errorf("%q: finding %d: says that more may follow: %v", test.source, i, told)
			}
		}
	}
}

// TestGoodYAMLHasNoSlips: where the library reads a file, nothing in it is taken for a mistake that is one for sure.
func TestGoodYAMLHasNoSlips(t *testing.T) {
	sources := map[string]string{"flow on many lines": "{\n  \"a\": \"b\", 'c': d, # e: f?\n  g: [\n    h, 'i'\n  ]\n}\n",
		"text on many lines": "a: b\n  c, d's \"e\"\nf: \"g\n  h: i\"\nj:\n- k\n- l: m\n  n: >-\n\n    o: p: q\n\n    r\n# s: t: u\n"}
	for _, pattern := range []string{"testdata/*/*.yaml", "../examples/*/*.yaml", "../cmd/flowctl/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = string(source)
		}
	}
	for _, r := range Rules() {
		sources["right example of "+r.ID], sources["wrong example of "+r.ID] = r.Right, r.Wrong
	}
	read := 0
	for name, source := range sources {
		if scanYAML([]byte(source)) != nil {
			continue
		}
		read++
		doc := &document{file: name, lines: strings.Split(source, "\n")}
		for _, s := range doc.slips() {
			if s.sure && s.f.Rule != ruleBareBraces {
				t.Errorf("%s: %s", name, s.f)
			}
		}
	}
	if read < 80 {
		t.Errorf("only %d files could be read", read)
	}
}

func TestNames(t *testing.T) {
	for word, want := range map[string]string{
		"orderId": "order_id", "Order-Number": "order_number", "my flow": "my_flow", "ABC": "abc", "HTTPCode": "httpcode",
		"退款": "", "1st": "", "_x": "", "": "",
	} {
		if got := asName(word); got != want {
			t.Errorf("asName(%q) = %q, want %q", word, got, want)
		}
	}
}

package flows

import (
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
		{"indentation", "a:\n  b: 1\n   c: 2\n", 3, 4, "a colon stands where none can"},
		{"less indentation", "top:\n    a:\n      b: 1\n   c: 2\nd: 1\n", 4, 4, "does not fit the ones above"},
		{"a far start", "a:\n" + strings.Repeat("  k: {x: 1}\n  l: 2\n", 20) + " m: 3\n", 42, 2, "does not fit the ones above"},
		{"list item", "a:\n  - 1\n  b: 2\n", 3, 3, "does not fit the list above"},
		{"colon", "a: b: c\n", 1, 1, "a colon stands where none can"},
		{"after a quote", "a: 1\nb: \"x\" == y\n", 2, 1, "does not fit the ones above"},
		{"no colon", "a: 1\nb\nc: 2\n", 2, 1, "neither a key with a colon"},
		{"open quote", "a: 1\nb: 'x\nc: 2\n", 2, 1, "a quote is opened here and never closed"},
		{"open bracket", "a: 1\nb: [x\nc: 2\n", 2, 4, "is not closed"},
		{"question", "a: 1\nb: {q: Sure?}\n", 2, 4, "question mark"},
		{"start of a value", "a: 1\nb: @x\n", 2, 4, "cannot start with this character"},
		{"anchor", "a: 1\nb: *x\n", 2, 4, "*x names an anchor"},
		{"guard", "a:\n  - {when: x in [\"a\"], to: b}\n", 2, 12, "cannot read this guard"},
		{"guard that starts with a quote", "a:\n  - {when: \"a\" == b, to: b}\n", 2, 12, "cannot read this guard"},
		{"not a guard", "a:\n  - {when: 'x > 1', to: [b}\n", 2, 5, "is not closed"},
		{"bytes", "a: 1\nb: \xff\n", 2, 4, "not UTF-8"},
		{"UTF-16", "\xff\xfea\x00", 1, 1, "not UTF-8"},
		{"control character", "a: \x01\n", 1, 1, "control character"},
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

package flows

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
)

func compiledText(t testing.TB, s *exprScope, src string) machine.Text {
	t.Helper()
	text, found := s.compileText(src, exprAt(src))
	if len(found) > 0 {
		t.Fatalf("%s: %s", src, lines(found))
	}
	return text
}

func TestTextRender(t *testing.T) {
	tests := []struct{ src, want string }{
		{``, ``},
		{`plain`, `plain`},
		{`{{ wish }} for order {{ order_id }}`, `refund for order A1001`},
		{`{{wish}}`, `refund`},
		{`[{{ maybe }}]`, `[]`}, // null is nothing
		{`{{ price }}/{{ paid }}`, `9.5/true`},
		{`{{ 0.00000001 }}`, `0.00000001`}, // plain decimal
		{`{{ 12345678 }}`, `12345678`},
		{`{{ thing }}`, `{"a":[9007199254740993],"b":2}`},
		{`is {{ html }}`, `is {"t":"<a>&"}`},       // no HTML escapes
		{`{{ "{{" }} and {{ "}}" }}`, `{{ and }}`}, // literal braces
		{`{{ '}}' + "\"}}" + ` + "`}}``}}`" + ` }}`, "}}\"}}}}`}}"},
		{`{{ {"a": {"b": 1}} }}!`, `{"a":{"b":1}}!`}, // braces of objects
		{`{{{"a":{"b":1}}}}!`, `{"a":{"b":1}}!`},
		{`{{ if paid { "yes" } else { "no" } }}.`, `yes.`},
		{`a }} b } c {`, `a }} b } c {`}, // closing braces alone are text
		{`{ {{ wish }} }`, `{ refund }`},
		{`{{ trick }}!`, `{{ order_id }}!`}, // inserted once, never looked at again
		{"{{\n  wish\n}} x", "refund x"},
		{`退款：{{ order_id }}。`, `退款：A1001。`},
		{`visit {{ visits("details") }}`, `visit 2`},
	}
	s := shopScope(t)
	s.Vars["html"], s.Vars["trick"] = nil, nil
	facts := shopFacts()
	facts.Values["html"] = machine.Values{"t": "<a>&"}
	facts.Values["trick"] = "{{ order_id }}"
	for _, test := range tests {
		text := compiledText(t, s, test.src)
		got, err := text.Render(facts)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.src, got, err, test.want)
		}
		if text.Source() != test.src {
			t.Errorf("Source gives %q for %q", text.Source(), test.src)
		}
	}
}

func TestTextValueKeepsTheTypeOfOneExpression(t *testing.T) {
	tests := []struct {
		src  string
		want machine.Value
	}{
		{`{{ count_of }}`, int64(3)},
		{`{{ paid }}`, true},
		{`{{ maybe }}`, nil},
		{`{{ order.lines }}`, []machine.Value{int64(1), int64(2)}},
		{`{{ thing.a[0] }}`, int64(9007199254740993)},
		{` {{ count_of }}`, " 3"}, // a space makes it a text
		{`{{ count_of }}{{ count_of }}`, "33"},
		{`plain`, "plain"},
		{``, ""},
	}
	s := shopScope(t)
	for _, test := range tests {
		got, err := compiledText(t, s, test.src).Value(shopFacts())
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %#v, %v, want %#v", test.src, got, err, test.want)
		}
	}
}

func TestTextFindings(t *testing.T) {
	tests := []struct{ src, want string }{
		{`hello {{ wish`, `1:7 text-syntax: {{ is not closed by }}; a pair of braces as text is {{ "{{" }}`},
		{`退 {{ wish }`, `1:3 text-syntax: {{ is not closed by }}; a pair of braces as text is {{ "{{" }}`},
		{`x {{ "abc }}`, `1:6 text-syntax: a text in quotes inside {{ }} is not closed`},
		{`{{ }}`, `1:4 expr-syntax: the expression is empty`},
		{`{{ wsh }} {{ oder_id }}`,
			`1:4 unknown-name: there is no input or variable wsh; did you mean wish? | ` +
				`1:14 unknown-name: there is no input or variable oder_id; did you mean order_id?`},
		{`退款 {{ wish == "x" }}`, `1:15 enum-word: wish is never "x"; it is one of refund, exchange, question`},
		{`{{ "退款" + wsh }}`, `1:11 unknown-name: there is no input or variable wsh; did you mean wish?`},
		{`{{ env("KEY") }}`, `1:4 env-not-allowed: env("NAME") is allowed only in headers, and in env of a command or a server`},
	}
	s := shopScope(t)
	for _, test := range tests {
		text, found := s.compileText(test.src, exprAt(test.src))
		if got := lines(found); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.src, got, test.want)
		}
		if text != nil {
			t.Errorf("%s: a text came with findings", test.src)
		}
	}
}

func TestTextFailureNamesItsExpression(t *testing.T) {
	_, err := compiledText(t, shopScope(t), `a {{ wish }} b {{ maybe + "x" }}`).Render(shopFacts())
	var failure *machine.ExprError
	if !errors.As(err, &failure) || failure.Source != `maybe + "x"` || failure.Pos.Col != 19 {
		t.Errorf("got %#v", err)
	}
}

func TestTextReadsAndConst(t *testing.T) {
	s := shopScope(t)
	text := compiledText(t, s, `{{ wish }} {{ order_id }} {{ wish }} {{ run.id }}`)
	if got := text.Reads(); !reflect.DeepEqual(got, []string{"order_id", "wish"}) {
		t.Errorf("reads %v", got)
	}
	if _, ok := textConst(text); ok {
		t.Error("a text with expressions passes for a constant")
	}
	for _, src := range []string{"", "plain", "a }} b"} {
		if got, ok := textConst(compiledText(t, s, src)); !ok || got != src {
			t.Errorf("textConst(%q) = %q, %v", src, got, ok)
		}
	}
}

// yamlSpot parses a document and gives the value of its key x.
func yamlSpot(t testing.TB, source string) (spot, []string) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(source), &doc); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "x" {
			return spot{File: "flow.yaml", Node: root.Content[i+1], Path: "x"}, strings.Split(source, "\n")
		}
	}
	t.Fatalf("no key x in %s", source)
	return spot{}, nil
}

// TestPositions holds that a finding points at the very word in the file, in every style of scalar that YAML has.
func TestPositions(t *testing.T) {
	for name, source := range map[string]string{
		"plain":                  "x: a {{ oops }}",
		"plain, wide":            "退: 1\nx: 退款 {{ oops }}",
		"plain, folded":          "x: some words and\n  退 more {{ wish +\n     oops }} end",
		"plain, blank line":      "x: some words\n\n\n   {{ oops }}",
		"single quoted":          "x: 'it''s {{ oops }}'",
		"single quoted, folded":  "x: 'it''s\n  a ''word'' {{ oops }}'",
		"double quoted":          `x: "a \"b\" \t\\ \x41 \u9000 \U0001F600 {{ oops }}"`,
		"double quoted, folded":  "x: \"a\n\n  b {{ oops }}\"",
		"double quoted, joined":  "x: \"a \\\n    b\\\n   {{ oops }}\"",
		"double quoted, newline": "x: \"a\\n{{ oops }}\"",
		"literal":                "x: |\n    first 退\n      {{ wish }} and\n\n    {{ oops }}\n",
		"literal, keep":          "x: |+\n    first\n    {{ oops }}\n\n",
		"literal, indent":        "x: |2\n    first\n    {{ oops }}\n",
		"literal, blank first":   "x: |\n\n\n  {{ oops }}\n",
		"literal, comment":       "x: | # a comment\n  {{ oops }}\n",
		"folded":                 "x: >-\n  some words\n  and {{ wish\n   + oops }} more\n\n  end\n",
		"folded, indented":       "x: >\n  some\n\n    deeper {{ wish }}\n  and {{ oops }}\n",
		"anchor and tag":         "x: &name !!str 'a {{ oops }}'",
		"windows":                "x: |\r\n  first\r\n  {{ oops }}\r\n",
		"windows, quoted":        "x: 'a\r\n  {{ oops }}'\r\n",
	} {
		at, lines := yamlSpot(t, source)
		s := shopScope(t)
		s.Lines = lines
		_, found := s.compileText(at.Node.Value, at)
		if len(found) != 1 || found[0].Rule != ruleUnknownName {
			t.Errorf("%s: got %v", name, found)
			continue
		}
		f := found[0]
		line := []rune(lines[f.Line-1])
		if rest := string(line[min(f.Col-1, len(line)):]); !strings.HasPrefix(rest, "oops") {
			t.Errorf("%s: %d:%d points at %q", name, f.Line, f.Col, rest)
		}
	}
}

// TestPositionsWithoutTheFile holds that a position is exact where that is sure, and else where the scalar starts.
func TestPositionsWithoutTheFile(t *testing.T) {
	for source, want := range map[string]machine.Pos{
		"x: a {{ oops }}":           {Line: 1, Col: 9},
		"x: 'a {{ oops }}'":         {Line: 1, Col: 10},
		`x: "退 {{ oops }}"`:         {Line: 1, Col: 10},
		`x: "\" {{ oops }}"`:        {Line: 1, Col: 4},
		"x: 'it''s {{ oops }}'":     {Line: 1, Col: 4},
		"x: |\n  a\n  {{ oops }}\n": {Line: 1, Col: 4},
	} {
		at, _ := yamlSpot(t, source)
		_, found := shopScope(t).compileText(at.Node.Value, at)
		if len(found) != 1 || found[0].Line != want.Line || found[0].Col != want.Col {
			t.Errorf("%s: got %v, want %d:%d", source, found, want.Line, want.Col)
		}
	}
	_, found := shopScope(t).compileText("{{ oops }}", spot{File: "flow.yaml"})
	if len(found) != 1 || found[0].File != "flow.yaml" || found[0].Line != 0 {
		t.Errorf("without a node: got %v", found)
	}
}

func TestTree(t *testing.T) {
	source := `x:
  order_id: "{{ order_id }}"
  count: 9007199254740993
  fraction: 1.50
  yes: true
  gone: null
  tilde: ~
  date: 2026-01-02
  words: a {{ wish }} b
  list: [1, "{{ count_of }}", "{{ rows }}", [x]]
  empty: {}
  none: []
  fixed: {a: [1, {b: text}]}
`
	at, lines := yamlSpot(t, source)
	s := shopScope(t)
	s.Lines = lines
	tree, found := s.compileTree(at)
	if len(found) > 0 {
		t.Fatal(found)
	}
	got, err := tree.Value(shopFacts())
	if err != nil {
		t.Fatal(err)
	}
	data, _ := machine.EncodeValue(got)
	want := `{"count":9007199254740993,"date":"2026-01-02","empty":{},"fixed":{"a":[1,{"b":"text"}]},"fraction":1.5,` +
		`"gone":null,"list":[1,3,[{"id":1,"status":"paid"},{"id":2,"status":"open"}],["x"]],"none":[],"order_id":"A1001",` +
		`"tilde":null,"words":"a refund b","yes":true}`
	if string(data) != want {
		t.Errorf("\n got %s\nwant %s", data, want)
	}
	if reads := strings.Join(tree.Reads(), " "); reads != "count_of order_id rows wish" {
		t.Errorf("reads %q", reads)
	}
	if _, ok := treeConst(tree); ok {
		t.Error("a tree with expressions passes for a constant")
	}
	// What one caller does to the value reaches no other.
	got.(machine.Values)["fixed"].(machine.Values)["a"].([]machine.Value)[0] = "changed"
	again, _ := tree.Value(shopFacts())
	if data, _ := machine.EncodeValue(again); string(data) != want {
		t.Errorf("a change of the result reached the tree: %s", data)
	}
}

func TestTreeScalars(t *testing.T) {
	s := shopScope(t)
	for source, want := range map[string]machine.Value{
		"x: null": nil, "x: text": "text", "x: '5'": "5", "x: 5": int64(5), `x: "{{ count_of }}"`: int64(3), "x: -7": int64(-7),
	} {
		at, _ := yamlSpot(t, source)
		tree, found := s.compileTree(at)
		if len(found) > 0 {
			t.Fatal(found)
		}
		if got, err := tree.Value(shopFacts()); err != nil || got != want {
			t.Errorf("%s: got %#v, %v", source, got, err)
		}
		if got, ok := treeConst(tree); ok == strings.Contains(source, "{{") || ok && got != want {
			t.Errorf("%s: treeConst gives %#v, %v", source, got, ok)
		}
	}
	tree, found := s.compileTree(spot{File: "flow.yaml"})
	if v, err := tree.Value(machine.Facts{}); len(found) > 0 || v != nil || err != nil {
		t.Errorf("nothing: got %v, %v, %v", v, err, found)
	}
}

func TestTreeFindings(t *testing.T) {
	for source, want := range map[string]string{
		"x:\n  a: ['{{ wsh }}', {b: '{{ oder_id }}'}]": `2:11 unknown-name: there is no input or variable wsh; did you mean wish? at x.a[0] | ` +
			`2:28 unknown-name: there is no input or variable oder_id; did you mean order_id? at x.a[1].b`,
		"x: {a: 0x1F}": `1:8 number: 0x1F is no exact decimal number; write it in plain decimal, or in quotes as text at x.a`,
		"x: .inf":      `1:4 number: .inf is no exact decimal number; write it in plain decimal, or in quotes as text at x`,
		"x: 99999999999999999999": `1:4 number: 99999999999999999999 is no exact decimal number; write it in plain decimal, ` +
			`or in quotes as text at x`,
		"x: &a [*a]": `1:8 text-syntax: lists and objects stand in each other more than 100 deep at x` + strings.Repeat("[0]", 101),
	} {
		at, fileLines := yamlSpot(t, source)
		s := shopScope(t)
		s.Lines = fileLines
		tree, found := s.compileTree(at)
		var got []string
		for _, f := range found {
			got = append(got, lines([]Finding{f})+" at "+f.Path)
		}
		if strings.Join(got, " | ") != want {
			t.Errorf("%s\n got %s\nwant %s", source, strings.Join(got, " | "), want)
		}
		if tree != nil {
			t.Errorf("%s: a tree came with findings", source)
		}
	}
}

func TestTextConcurrent(t *testing.T) {
	text := compiledText(t, shopScope(t), `{{ wish }} {{ visits("details") + count_of }} {{ map(rows, .id) }}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got, err := text.Render(shopFacts()); got != "refund 5 [1,2]" || err != nil {
					t.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// FuzzCompileText holds that no text panics, that a text without braces is itself, and that what is inserted stays data.
func FuzzCompileText(f *testing.F) {
	for _, src := range []string{
		`{{ wish }} for {{ order_id }}`, `{{ "}}" }}{{`, `{{ {"a": {}} }}`, "{{ `a`` }}` }}", `}}{{ '\'' }}`, "{{\n\"a\"}}", `{{"`,
	} {
		f.Add(src, 0)
	}
	s := shopScope(f)
	facts := shopFacts()
	f.Fuzz(func(t *testing.T, src string, style int) {
		at := exprAt(src)
		at.Node.Style = yaml.Style(style)
		s := *s
		s.Lines = strings.Split(src, "\n")
		text, found := s.compileText(src, at)
		if (text == nil) != (len(found) > 0) {
			t.Fatalf("%q: a text and findings, or neither: %s", src, lines(found))
		}
		if text == nil {
			return
		}
		got, err := text.Render(facts)
		if !strings.Contains(src, "{{") && (got != src || err != nil) {
			t.Fatalf("%q renders as %q, %v", src, got, err)
		}
		if _, err := text.Value(facts); err != nil {
			var failure *machine.ExprError
			if !errors.As(err, &failure) {
				t.Fatalf("%q fails with %T %v", src, err, err)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	text := compiledText(b, shopScope(b), `{{ wish }} for order {{ order_id }}`)
	facts := shopFacts()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := text.Render(facts); err != nil {
			b.Fatal(err)
		}
	}
}

package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func mustSchema(t testing.TB, text string) machine.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// toolWith makes a tool that does nothing, with parameters given as JSON Schema ("" for none).
func toolWith(t testing.TB, name, parameters string) Tool {
	t.Helper()
	spec := machine.ToolSpec{Name: name, Effect: machine.EffectRead}
	if parameters != "" {
		spec.Parameters = mustSchema(t, parameters)
	}
	return Tool{Spec: spec}
}

func testSet(t testing.TB) *Set {
	t.Helper()
	tools := map[string]Tool{
		"now": toolWith(t, "now", ""),
		"read": toolWith(t, "read", `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},
			"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`),
		"edit": toolWith(t, "edit", `{"type":"object","properties":{"files":{"type":"array","items":{"type":"object"}},"opts":{"type":"object"},
			"note":{"type":"string"}}}`),
		"count": toolWith(t, "count", `{"type":"object","properties":{"n":{"type":"integer","default":3}}}`),
		"free":  toolWith(t, "free", `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":true}`),
		"other": toolWith(t, "other", ""),
	}
	s, err := NewSet(tools, []string{"now", "read", "count", "free", "edit"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPrepareTakes(t *testing.T) {
	s := testSet(t)
	tests := []struct{ name, tool, args, want string }{
		{"nothing", "now", ``, `{}`},
		{"blanks", "now", " \n\t", `{}`},
		{"null", "now", `null`, `{}`},
		{"empty string", "now", `""`, `{}`},
		{"blank string", "now", `"  "`, `{}`},
		{"empty object", "now", `{}`, `{}`},
		{"plain", "read", `{"path":"a"}`, `{"path":"a"}`},
		{"text for a number", "read", `{"path":"a","limit":"5"}`, `{"limit":5,"path":"a"}`},
		{"one value for a list", "read", `{"path":"a","tags":"x"}`, `{"path":"a","tags":["x"]}`},
		{"default", "count", ``, `{"n":3}`},
		{"null for an optional parameter", "read", `{"path":"a","limit":null}`, `{"path":"a"}`},
		{"null where there is a default", "count", `{"n":null}`, `{"n":3}`},
		{"exact integers", "read", `{"path":"a","limit":9007199254740993}`, `{"limit":9007199254740993,"path":"a"}`},
		{"no HTML escapes", "read", `{"path":"<a>&"}`, `{"path":"<a>&"}`},
		{"JSON in text, where text is wanted", "edit", `{"note":"[{\"path\":\"a\"}]"}`, `{"note":"[{\"path\":\"a\"}]"}`},
		{"more than named, where the schema says so", "free", `{"b":1}`, `{"b":1}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, refused := s.Prepare(test.tool, json.RawMessage(test.args))
			if refused != nil {
				t.Fatalf("refused: %s", refused.Problem.Message)
			}
			if string(p.Args) != test.want {
				t.Errorf("got %s, want %s", p.Args, test.want)
			}
			parsed, err := machine.DecodeValue(p.Args)
			if err != nil || !reflect.DeepEqual(parsed, p.Values) {
				t.Errorf("Values %v is not what Args %s says", p.Values, p.Args)
			}
			again, refused := s.Prepare(test.tool, p.Args)
			if refused != nil || string(again.Args) != string(p.Args) {
				t.Errorf("prepared again the call becomes %s (%v)", again.Args, refused)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	s := testSet(t)
	tests := []struct {
		name, tool, args string
		want             []string // parts of the message
		never            string
	}{
		{"unknown tool", "no_such_tool", `{}`, []string{`"no_such_tool"`, "here", "now, read, count, free, edit"}, ""},
		{"tool of another state", "other", ``, []string{`no tool "other" here`, "now, read, count, free, edit"}, "another state"},
		{"near name", "raed", ``, []string{"did you mean read?"}, ""},
		{"required", "read", ``, []string{"read was not run", "path", "required"}, ""},
		{"required is null", "read", `{"path":null}`, []string{"path", "null"}, ""},
		{"wrong type", "read", `{"path":"a","limit":"many"}`, []string{"limit", "an integer", `"many"`}, ""},
		{"unknown parameter", "read", `{"path":"a","pth":1}`, []string{`no parameter "pth"`, "did you mean path?"}, ""},
		{"unknown parameter, nothing near", "read", `{"path":"a","zzz":1}`, []string{`"zzz"`, "it takes limit, path, tags"}, ""},
		{"parameter for a tool without", "now", `{"zone":"UTC"}`, []string{`"zone"`, "it takes none"}, ""},
		{"case", "read", `{"Path":"a"}`, []string{`no parameter "Path"`, "did you mean path?"}, ""},
		{"case of two, one declared", "read", `{"path":"a","PATH":"b"}`, []string{`"PATH"`, "did you mean path?"}, ""},
		{"case of a declared one in an open schema", "free", `{"A":1}`, []string{`"A"`, "did you mean a?"}, ""},
		{"case of two that are not declared", "free", `{"x":1,"X":2}`, []string{`"X"`, `"x"`, "only by case"}, ""},
		{"all at once", "read", `{"limit":"x","foo":1}`, []string{"foo", "limit", "path"}, ""},
		{"a list", "read", `["a"]`, []string{"must be a JSON object", "not a list"}, ""},
		{"a number", "now", `5`, []string{"must be a JSON object", "not a number"}, ""},
		{"cut off", "read", `{"path":"fir`, []string{"must be one JSON object"}, ""},
		{"more behind", "read", `{"path":"a"}{}`, []string{"must be one JSON object"}, ""},
		{"an object as text", "read", `"{\"path\":\"a\"}"`, []string{"not text that holds one"}, ""},
		{"list as text", "edit", `{"files":"[{\"path\":\"a\"}]"}`, []string{"files: expected a list", "write files as JSON itself, without quotes"}, ""},
		{"object as text", "edit", `{"opts":"{\"a\":1}"}`, []string{"opts: expected an object", "write opts as JSON itself, without quotes"}, ""},
		{"list of texts as text", "read", `{"path":"a","tags":"[\"x\",\"y\"]"}`, []string{"tags: expected a list", "write tags as JSON itself"}, ""},
		{"text that holds no JSON", "edit", `{"opts":"a"}`, []string{"opts: expected an object"}, "JSON itself"},
		{"number out of range inside", "edit", `{"opts":{"n":[9223372036854775808]}}`, []string{"too large", "use a string"}, ""},
		{"number out of range", "read", `{"path":"a","limit":123456789012345678901}`, []string{"too large", "use a string"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, refused := s.Prepare(test.tool, json.RawMessage(test.args))
			if refused == nil {
				t.Fatal("the call was prepared")
			}
			if refused.Status != Refused || refused.Problem.Kind != "refused" {
				t.Errorf("status %s, kind %s", refused.Status, refused.Problem.Kind)
			}
			for _, part := range test.want {
				if !strings.Contains(refused.Problem.Message, part) {
					t.Errorf("message %q does not say %q", refused.Problem.Message, part)
				}
			}
			if test.never != "" && strings.Contains(refused.Problem.Message, test.never) {
				t.Errorf("message %q says %q", refused.Problem.Message, test.never)
			}
		})
	}
}

func TestPrepareInAStateWithoutTools(t *testing.T) {
	s, err := NewSet(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := s.Prepare("read", nil)
	if refused == nil || refused.Problem.Message != `there is no tool "read" here, nor any other tool` {
		t.Errorf("got %+v", refused)
	}
}

func TestPrepareShortensWhatAModelMadeUp(t *testing.T) {
	_, refused := testSet(t).Prepare(strings.Repeat("x", 100000)+"\x1b[31m", nil)
	if refused == nil || len(refused.Problem.Message) > 300 || strings.Contains(refused.Problem.Message, "\x1b") {
		t.Errorf("got %+v", refused)
	}
}

func TestPrepareValuesLeavesItsArgument(t *testing.T) {
	args := machine.Values{"path": "a", "limit": "5", "tags": "x"}
	before := machine.CloneValues(args)
	if _, refused := testSet(t).PrepareValues("read", args); refused != nil {
		t.Fatal(refused.Problem.Message)
	}
	if !reflect.DeepEqual(args, before) {
		t.Errorf("the argument was changed to %v", args)
	}
}

func TestNewSet(t *testing.T) {
	if _, err := NewSet(map[string]Tool{}, []string{"read"}); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("got %v", err)
	}
	s, err := NewSet(map[string]Tool{"b": {}, "a": {}}, []string{"b", "a", "b"})
	if err != nil || !reflect.DeepEqual(s.Names(), []string{"b", "a"}) {
		t.Errorf("got %v, %v", s.Names(), err)
	}
}

func FuzzPrepare(f *testing.F) {
	for _, args := range []string{``, `null`, `""`, `{"path":"a"}`, `{"path":1,"Path":2}`, `{"limit":1e400}`, `[`, `{"tags":{"a":[1]}}`, "\xff"} {
		f.Add(args)
	}
	s := testSet(f)
	f.Fuzz(func(t *testing.T, args string) {
		for _, name := range s.Names() {
			p, refused := s.Prepare(name, json.RawMessage(args))
			if refused != nil {
				if refused.Problem.Message == "" {
					t.Error("refused without a reason")
				}
				continue
			}
			again, refused := s.Prepare(name, p.Args)
			if refused != nil || string(again.Args) != string(p.Args) {
				t.Errorf("%s(%s) was prepared as %s and then as %s", name, args, p.Args, again.Args)
			}
		}
	})
}

func ExampleSet_Prepare() {
	parameters, err := schema.Compile([]byte(`{"type":"object","properties":{"order_id":{"type":"string"},"limit":{"type":"integer"}},"required":["order_id"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	lookup := Tool{Spec: machine.ToolSpec{Name: "lookup_order", Effect: machine.EffectRead, Parameters: parameters}}
	set, err := NewSet(map[string]Tool{"lookup_order": lookup}, []string{"lookup_order"})
	if err != nil {
		fmt.Println(err)
		return
	}
	call, _ := set.Prepare("lookup_order", json.RawMessage(`{"order_id": "A1001", "limit": "5"}`))
	fmt.Println(string(call.Args))
	for _, wrong := range [][2]string{{"lookup_order", `{"orderId": "A1001"}`}, {"refund_order", `{}`}} {
		_, refused := set.Prepare(wrong[0], json.RawMessage(wrong[1]))
		fmt.Println(refused.Status, "-", refused.Problem.Message)
	}
	// Output:
	// {"limit":5,"order_id":"A1001"}
	// refused - lookup_order was not run: it has no parameter "orderId", did you mean order_id?; order_id: expected a value, since it is required, got nothing
	// refused - there is no tool "refund_order" here; the tools that can be called are: lookup_order
}

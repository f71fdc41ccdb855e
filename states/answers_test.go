package states

import (
	"testing"

	"flowctl/flows/machine"
)

// A variable's schema means the same inside the schema of an answer as it does alone.
func TestPartMeansTheSame(t *testing.T) {
	schemas := []struct{ schema, fits, breaks string }{
		{`{"type":"string","pattern":"^A[0-9]{4}$"}`, `"A1001"`, `"B7"`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer","minimum":1,"default":3}}}`, `2`, `0`},
		{`{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"enum":["a","b"]}}}`, `["a","b"]`, `["c"]`},
		{`{"type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`,
			`{"n":1,"next":{"n":2}}`, `{"n":1,"next":{"m":2}}`},
		{`{"type":"object","properties":{"$ref":{"type":"string"},"enum":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`,
			`{"$ref":"#/nowhere","enum":1}`, `{"enum":"x"}`},
		{`{"enum":["#/x",{"$ref":"#/y"}]}`, `{"$ref":"#/y"}`, `{"$ref":"#/answer/y"}`},
	}
	for _, test := range schemas {
		s := mustSchema(t, test.schema)
		one, err := part(s, "/properties/answer")
		if err != nil {
			t.Fatal(err)
		}
		null, err := orNull(s, "/properties/field")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := answerObject(machine.Values{"answer": one, "field": null}, "answer")
		if err != nil {
			t.Fatalf("%s: %v", test.schema, err)
		}
		for text, ok := range map[string]bool{test.fits: true, test.breaks: false} {
			v, err := machine.DecodeValue([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Check(v) == nil; got != ok {
				t.Fatalf("%s: the test is wrong about %s", test.schema, text)
			}
			if err := whole.Check(machine.Values{"answer": v}); (err == nil) != ok {
				t.Errorf("%s as a part: %s gives %v", test.schema, text, err)
			}
			if err := whole.Check(machine.Values{"answer": mustValue(t, test.fits), "field": v}); (err == nil) != ok {
				t.Errorf("%s or null: %s gives %v", test.schema, text, err)
			}
		}
		if err := whole.Check(machine.Values{"answer": mustValue(t, test.fits), "field": nil}); err != nil {
			t.Errorf("%s or null: null gives %v", test.schema, err)
		}
	}
}

// What a model leaves out is not filled with the start value of a variable.
func TestPartHasNoDefault(t *testing.T) {
	for _, text := range []string{`{"type":"integer","default":3}`, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer","default":3}}}`} {
		one, err := part(mustSchema(t, text), "/properties/answer")
		if err != nil {
			t.Fatal(err)
		}
		null, err := orNull(mustSchema(t, text), "/properties/field")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := answerObject(machine.Values{"answer": one, "field": null}, "answer", "field")
		if err != nil {
			t.Fatal(err)
		}
		if got := whole.Coerce(machine.Values{}); len(got.(machine.Values)) > 0 {
			t.Errorf("%s: nothing became %v", text, got)
		}
		if got := whole.Coerce(machine.Values{"answer": "5", "field": "6"}); !machine.EqualValues(got, machine.Values{"answer": int64(5), "field": int64(6)}) {
			t.Errorf("%s: the texts became %v", text, got)
		}
	}
}

func mustValue(t testing.TB, text string) machine.Value {
	t.Helper()
	v, err := machine.DecodeValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

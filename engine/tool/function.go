package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"flowctl/flows/machine"
)

// Function is a Go function as a tool. A flow names it under `builtin`; package builtin brings some and takes more.
type Function struct {
	Name        string // ^[a-z][a-z0-9_]*$
	Description string // for the model: what it does and when to use it
	Effect      machine.Effect
	Parameters  []byte // JSON Schema of an object
	Result      []byte // JSON Schema of what it gives; nil: anything
	Run         func(ctx context.Context, call Call) (machine.Value, error)
}

// Func makes a tool of a Go function. A is a struct: its fields are the parameters, by their json tags; a field is
// required unless its tag says omitempty or omitzero, and the jsonschema tag describes it:
//
//	type args struct {
//		OrderID string `json:"order_id" jsonschema:"description=The order number,pattern=^A[0-9]{4}$"`
//		Limit   int    `json:"limit,omitempty" jsonschema:"minimum=1"`
//	}
//
// Whole numbers reach fn with every digit, also in fields of type any. R is what fn gives, as encoding/json writes it;
// its type becomes the result's schema. fn runs on a goroutine of its own, beside others when the effect is read; it
// should end soon after its context does, and returns Failf, Unavailablef or an *Error to choose how the call ended.
//
// Func panics when A is not a struct, contains itself or holds what JSON cannot, since that is a mistake in the program.
func Func[A, R any](name, description string, effect machine.Effect, fn func(context.Context, Call, A) (R, error)) Function {
	in, out := reflect.TypeFor[A](), reflect.TypeFor[R]()
	if in.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: the arguments must be a struct, not %s", name, in))
	}
	if recursive(in, nil) {
		panic(fmt.Sprintf("tool %s: the arguments' type %s contains itself", name, in))
	}
	f := Function{Name: name, Description: description, Effect: effect, Parameters: schemaOf(name, in)}
	if !recursive(out, nil) && out.Kind() != reflect.Interface {
		f.Result = schemaOf(name, out)
	}
	f.Run = func(ctx context.Context, call Call) (machine.Value, error) {
		var args A
		if err := decode(call.Args, &args); err != nil {
			return nil, &Error{Status: Refused, Err: fmt.Errorf("%s cannot take its arguments: %w", name, err)}
		}
		result, err := fn(ctx, call, args)
		if err != nil {
			return nil, err
		}
		value, err := output(result)
		if err != nil {
			return nil, fmt.Errorf("what %s gave cannot be stored: %w", name, err)
		}
		return value, nil
	}
	return f
}

// schemaOf gives the JSON Schema of a type, in one piece and without names of Go.
func schemaOf(name string, t reflect.Type) []byte {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("tool %s: no JSON Schema for %s: %v", name, t, p))
		}
	}()
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	schema := r.ReflectFromType(t)
	schema.Version = ""
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	return data
}

// recursive says whether a type contains itself.
func recursive(t reflect.Type, above []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return recursive(t.Elem(), above)
	case reflect.Struct:
		for _, outer := range above {
			if outer == t {
				return true
			}
		}
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && recursive(f.Type, append(above, t)) {
				return true
			}
		}
	}
	return false
}

// decode reads arguments into a struct, strictly.
func decode(args machine.Values, into any) error {
	if args == nil {
		args = machine.Values{}
	}
	data, err := machine.EncodeValue(args)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return fmt.Errorf("%s: the %s does not fit", mismatch.Field, mismatch.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return exact(reflect.ValueOf(into))
}

// exact turns the json.Number values that the decoder left in fields of type any into int64 and float64.
func exact(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return exact(v.Elem())
		}
	case reflect.Interface:
		if v.IsNil() || !v.CanSet() || v.NumMethod() > 0 {
			return nil
		}
		n, err := machine.Normalize(v.Interface())
		if err != nil {
			return err
		}
		if n != nil {
			v.Set(reflect.ValueOf(n))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() || v.Type().Field(i).Anonymous {
				if err := exact(f); err != nil {
					return err
				}
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := exact(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return exactMap(v)
	}
	return nil
}

func exactMap(v reflect.Value) error {
	for _, key := range v.MapKeys() {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(v.MapIndex(key))
		if err := exact(item); err != nil {
			return err
		}
		v.SetMapIndex(key, item)
	}
	return nil
}

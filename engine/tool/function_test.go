package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

type inner struct {
	N any `json:"n,omitempty"`
}

type base struct {
	Extra any `json:"extra,omitempty"`
}

type searchArgs struct {
	base
	OrderID int64          `json:"order_id" jsonschema:"description=The order number,minimum=1"`
	Word    string         `json:"word,omitempty" jsonschema:"enum=red,enum=blue"`
	Since   *time.Time     `json:"since,omitempty"`
	Any     any            `json:"any,omitempty"`
	Inner   *inner         `json:"inner,omitempty"`
	List    []any          `json:"list,omitempty"`
	Map     map[string]any `json:"map,omitempty"`
	Raw     json.Number    `json:"raw,omitempty"`
	Small   uint8          `json:"small,omitzero"`
	Skipped string         `json:"-"`
}

type searchResult struct {
	Found int64    `json:"found"`
	Names []string `json:"names"`
}

func search(_ context.Context, call Call, a searchArgs) (searchResult, error) {
	return searchResult{Found: a.OrderID, Names: []string{call.Key}}, nil
}

func TestFuncSchemas(t *testing.T) {
	f := Func("search", "Search.", machine.EffectRead, search)
	var params struct {
		Type       string
		Required   []string
		Additional any `json:"additionalProperties"`
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(f.Parameters, &params); err != nil {
		t.Fatal(err)
	}
	if params.Type != "object" || !reflect.DeepEqual(params.Required, []string{"order_id"}) || params.Additional != false {
		t.Errorf("got %s", f.Parameters)
	}
	if id := string(params.Properties["order_id"]); id != `{"type":"integer","minimum":1,"description":"The order number"}` {
		t.Errorf("order_id is %s", id)
	}
	for _, name := range []string{"extra", "word", "since", "any", "inner", "list", "map", "small"} {
		if _, ok := params.Properties[name]; !ok {
			t.Errorf("%s is missing in %s", name, f.Parameters)
		}
	}
	for _, never := range []string{"$ref", "$defs", "$schema", "$id", "searchArgs", "Skipped"} {
		if strings.Contains(string(f.Parameters), never) {
			t.Errorf("%s holds %s", f.Parameters, never)
		}
	}
	const result = `{"properties":{"found":{"type":"integer"},"names":{"items":{"type":"string"},"type":"array"}},"additionalProperties":false,"type":"object","required":["found","names"]}`
	if string(f.Result) != result {
		t.Errorf("result schema is %s", f.Result)
	}
	for _, data := range [][]byte{f.Parameters, f.Result} {
		if _, err := schema.Compile(data); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestFuncResultSchemas(t *testing.T) {
	type none struct{}
	type tree struct {
		Children []tree `json:"children"`
	}
	ctx := func(context.Context, Call, none) (string, error) { return "", nil }
	if f := Func("t", "", read, ctx); string(f.Result) != `{"type":"string"}` || !strings.Contains(string(f.Parameters), `"type":"object"`) {
		t.Errorf("got %s and %s", f.Parameters, f.Result)
	}
	if f := Func("t", "", read, func(context.Context, Call, none) (machine.Value, error) { return nil, nil }); f.Result != nil {
		t.Errorf("any value has the schema %s", f.Result)
	}
	if f := Func("t", "", read, func(context.Context, Call, none) (tree, error) { return tree{}, nil }); f.Result != nil {
		t.Errorf("a type that contains itself has the schema %s", f.Result)
	}
}

func TestFuncKeepsIntegersExact(t *testing.T) {
	const big = int64(9007199254740993)
	var got searchArgs
	f := Func("search", "", machine.EffectRead, func(_ context.Context, _ Call, a searchArgs) (int64, error) {
		got = a
		return a.OrderID, nil
	})
	args := machine.Values{
		"order_id": big, "any": big, "inner": machine.Values{"n": big}, "list": []machine.Value{big, "x", nil, 1.5},
		"map": machine.Values{"deep": []machine.Value{big}, "none": nil}, "extra": machine.Values{"n": big}, "raw": big,
	}
	v, err := f.Run(t.Context(), Call{Args: args})
	if err != nil || v != big {
		t.Fatalf("got %v, %v", v, err)
	}
	want := searchArgs{
		OrderID: big, Any: big, Inner: &inner{N: big}, List: []any{big, "x", nil, 1.5}, Raw: "9007199254740993",
		Map: map[string]any{"deep": []any{big}, "none": nil}, base: base{Extra: map[string]any{"n": big}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFuncRefusesWhatDoesNotFit(t *testing.T) {
	f := Func("search", "", machine.EffectRead, search)
	for want, args := range map[string]machine.Values{
		"small: the number 300 does not fit": {"order_id": int64(1), "small": int64(300)},
		`unknown field "orderid_"`:           {"orderid_": int64(1)},
		"order_id: the string does not fit":  {"order_id": "x"},
	} {
		_, err := f.Run(t.Context(), Call{Args: args})
		var e *Error
		if !errors.As(err, &e) || e.Status != Refused || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := f.Run(t.Context(), Call{}); err != nil {
		t.Errorf("no arguments: %v", err)
	}
}

func TestFuncPassesErrorsOn(t *testing.T) {
	want := Failf("none_found", "no order")
	f := Func("search", "", machine.EffectRead, func(context.Context, Call, struct{}) (string, error) { return "x", want })
	if v, err := f.Run(t.Context(), Call{}); v != nil || !errors.Is(err, want) {
		t.Errorf("got %v, %v", v, err)
	}
	nan := Func("search", "", machine.EffectRead, func(context.Context, Call, struct{}) (machine.Value, error) { return make(chan int), nil })
	if _, err := nan.Run(t.Context(), Call{}); err == nil || !strings.Contains(err.Error(), "what search gave cannot be stored") {
		t.Errorf("got %v", err)
	}
}

func TestFuncPanicsOnAMistakeInTheProgram(t *testing.T) {
	type tree struct {
		Children map[string][]*tree `json:"children"`
	}
	type odd struct {
		C chan int `json:"c"`
	}
	for want, make := range map[string]func(){
		"must be a struct": func() {
			Func("t", "", read, func(context.Context, Call, string) (string, error) { return "", nil })
		},
		"contains itself": func() {
			Func("t", "", read, func(context.Context, Call, tree) (string, error) { return "", nil })
		},
		"no JSON Schema": func() {
			Func("t", "", read, func(context.Context, Call, odd) (string, error) { return "", nil })
		},
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, want) || !strings.Contains(p, "tool t") {
					t.Errorf("recovered %s, want %s", p, want)
				}
			}()
			make()
		}()
	}
}

func ExampleFunc() {
	type args struct {
		OrderID string `json:"order_id" jsonschema:"description=The order number"`
	}
	type order struct {
		Item  string `json:"item"`
		Cents int64  `json:"cents"`
	}
	lookup := Func("lookup_order", "Look up one order by its number.", machine.EffectRead,
		func(_ context.Context, _ Call, a args) (order, error) {
			if a.OrderID != "A1001" {
				return order{}, Failf("none_found", "there is no order %s", a.OrderID)
			}
			return order{Item: "lamp", Cents: 4900}, nil
		})
	fmt.Println(string(lookup.Parameters))
	v, err := lookup.Run(context.Background(), Call{Args: machine.Values{"order_id": "A1001"}})
	fmt.Println(v, err)
	_, err = lookup.Run(context.Background(), Call{Args: machine.Values{"order_id": "B2"}})
	fmt.Println(err)
	// Output:
	// {"properties":{"order_id":{"type":"string","description":"The order number"}},"additionalProperties":false,"type":"object","required":["order_id"]}
	// map[cents:4900 item:lamp] <nil>
	// there is no order B2
}

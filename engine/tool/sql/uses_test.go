package sql

import (
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func TestUses(t *testing.T) {
	_, m := shop(t)
	parameters, err := schema.Compile([]byte(`{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}`))
	if err != nil {
		t.Fatal(err)
	}
	type want struct{ path, message, suggestion string }
	tests := []struct {
		name   string
		config Config
		scope  machine.ToolScope
		effect machine.Effect
		result string
		wants  []want
	}{
		{"rows", Config{Database: "shop", Query: "SELECT * FROM orders WHERE id = :order_id"}, machine.ToolScope{Parameters: parameters},
			machine.EffectRead, `{"type":"array","items":{"type":"object"}}`, nil},
		{"one row", Config{Database: "shop", Query: "SELECT 1", Rows: "one"}, machine.ToolScope{}, machine.EffectRead, `{"type":"object"}`, nil},
		{"change", Config{Database: "shop", Query: "DELETE FROM orders"}, machine.ToolScope{Effect: machine.EffectIdempotent}, machine.EffectWrite,
			`{"type":"object","properties":{"affected":{"type":"integer"}},"required":["affected"],"additionalProperties":false}`, nil},
		{"near names", Config{Database: "shpo", Query: "SELECT :orderid"}, machine.ToolScope{Parameters: parameters}, "", "", []want{
			{"database", `there is no database "shpo"; there are shop`, "shop"}, {"query", ":orderid is not among", "order_id"}, {"query", "order_id is not used", ""}}},
		{"a name without parameters", Config{Database: "shop", Query: "SELECT :a"}, machine.ToolScope{}, "", "", []want{{"query", ":a is not among", ""}}},
		{"rows of a change", Config{Database: "shop", Query: "DELETE FROM orders", Rows: "one"}, machine.ToolScope{}, "", "", []want{{"rows", "gives no rows", ""}}},
		{"odd rows", Config{Database: "shop", Query: "SELECT 1", Rows: "ones"}, machine.ToolScope{}, "", "", []want{{"rows", "rows is all or one", "one"}}},
		{"read that changes", Config{Database: "shop", Query: "DELETE FROM orders"}, machine.ToolScope{Effect: machine.EffectRead}, "", "", []want{{"query", "write effect: write", ""}}},
		{"nothing", Config{Database: "shop", Query: ""}, machine.ToolScope{}, "", "", []want{{"query", "expected an SQL statement, found none", ""}}},
		{"two statements", Config{Database: "shop", Query: "SELECT 1; SELECT 2"}, machine.ToolScope{}, "", "", []want{{"query", "found 2", ""}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.scope.Machine = m
			uses := test.config.Uses(test.scope)
			if len(uses.Problems) != len(test.wants) {
				t.Fatalf("problems %+v", uses.Problems)
			}
			for i, want := range test.wants {
				p := uses.Problems[i]
				if p.Path != want.path || !strings.Contains(p.Message, want.message) || p.Suggestion != want.suggestion {
					t.Errorf("got %+v, want %+v", p, want)
				}
			}
			if len(test.wants) > 0 {
				return
			}
			if uses.Effect != test.effect || string(uses.Result) != test.result {
				t.Errorf("effect %s, result %s", uses.Effect, uses.Result)
			}
			if _, err := schema.Compile(uses.Result); err != nil {
				t.Error(err)
			}
		})
	}
	none := (&Config{Database: "shop", Query: "SELECT 1"}).Uses(machine.ToolScope{Machine: &machine.Machine{}})
	if len(none.Problems) != 1 || !strings.Contains(none.Problems[0].Message, "declares no databases") {
		t.Errorf("got %+v", none.Problems)
	}
}

func TestNewRefuses(t *testing.T) {
	k, m := shop(t)
	for want, config := range map[string]machine.ToolConfig{
		"no database": &Config{Database: "x", Query: "SELECT 1"}, "found none": &Config{Database: "shop"}, "not of the kind sql": nil,
	} {
		if _, err := k.New(machine.ToolSpec{Name: "t", Config: config}, tool.Env{Machine: m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, ok := k.Spec().Config().(*Config); !ok {
		t.Error("Spec gives another config")
	}
}

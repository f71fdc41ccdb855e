package flows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func exprSchema(t testing.TB, text string) machine.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	return s
}

// shopScope is a scope with one variable of every type.
func shopScope(t testing.TB) *exprScope {
	return &exprScope{
		Vars: map[string]machine.Schema{
			"wish":     exprSchema(t, `{"type":"string","enum":["refund","exchange","question"]}`),
			"order_id": exprSchema(t, `{"type":"string"}`),
			"count_of": exprSchema(t, `{"type":"integer"}`),
			"price":    exprSchema(t, `{"type":"number"}`),
			"paid":     exprSchema(t, `{"type":"boolean"}`),
			"level":    exprSchema(t, `{"enum":[1,2,3]}`),
			"tags":     exprSchema(t, `{"type":"array","items":{"type":"string","enum":["new","old"]}}`),
			"rows": exprSchema(t, `{"type":"array","items":{"type":"object","properties":
				{"id":{"type":"integer"},"status":{"enum":["paid","open"]},"note":{}}}}`),
			"order": exprSchema(t, `{"type":"object","properties":{"status":{"enum":["paid","open"]},
				"lines":{"type":"array","items":{"type":"integer"}},
				"ship":{"type":"object","additionalProperties":true,"properties":{"zip":{"type":"string"}}}}}`),
			"open_object": exprSchema(t, `{"type":"object"}`),
			"thing":       exprSchema(t, `{}`),
			"rate":        exprSchema(t, `{"enum":[1,1.5,null]}`),
			"maybe":       exprSchema(t, `{"type":["string","null"]}`),
			"node":        exprSchema(t, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}}}`),
		},
		States:   []string{"details", "propose"},
		Outcomes: []string{"success", "fail"},
	}
}

func exprAt(src string) spot {
	return spot{File: "flow.yaml", Path: "p", Node: &yaml.Node{Kind: yaml.ScalarNode, Value: src, Line: 1, Column: 1}}
}

func shopFacts() machine.Facts {
	return machine.Facts{
		Values: machine.Values{
			"wish": "refund", "order_id": "A1001", "count_of": int64(3), "price": 9.5, "paid": true, "level": int64(2),
			"tags": []machine.Value{"new"},
			"rows": []machine.Value{
				machine.Values{"id": int64(1), "status": "paid"}, machine.Values{"id": int64(2), "status": "open"}},
			"order": machine.Values{"status": "paid", "lines": []machine.Value{int64(1), int64(2)}},
			"thing": machine.Values{"b": int64(2), "a": []machine.Value{int64(9007199254740993)}},
		},
		Visits:    map[string]int64{"details": 2},
		RunID:     "01JD",
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
		Last:      machine.Last{Outcome: "fail", Error: machine.Problem{Kind: "none_found", Message: "no such order"}},
	}
}

func lines(found []Finding) string {
	var out []string
	for _, f := range found {
		line := fmt.Sprintf("%d:%d %s: %s", f.Line, f.Col, f.Rule, f.Message)
		if f.Suggestion != "" {
			line += "; did you mean " + f.Suggestion + "?"
		}
		if f.Fix != "" {
			line += "; write " + f.Fix
		}
		out = append(out, line)
	}
	return strings.Join(out, " | ")
}

var exprFindings = []struct {
	src  string
	want string // findings as line:col rule: message
}{
	// names
	{`oder_id == "x"`, `1:1 unknown-name: there is no input or variable oder_id; did you mean order_id?`},
	{`none == wish`, `1:1 unknown-name: there is no input or variable none; did you mean null?`},
	{`undefined != wish`, `1:1 unknown-name: there is no input or variable undefined; did you mean null?`},
	{`True`, `1:1 unknown-name: there is no input or variable True; did you mean true?`},
	{`a and b`, `1:1 unknown-name: there is no input or variable a | 1:7 unknown-name: there is no input or variable b`},
	{`order.statsu`, `1:7 unknown-name: order has no property statsu; it has lines, ship, status; did you mean status?`},
	{`order["statsu"]`, `1:7 unknown-name: order has no property statsu; it has lines, ship, status; did you mean status?`},
	{`order?.statsu`, `1:8 unknown-name: order has no property statsu; it has lines, ship, status; did you mean status?`},
	{`rows[0].statsu`, `1:9 unknown-name: rows[0] has no property statsu; it has id, note, status; did you mean status?`},
	{`filter(rows, .statsu == "x")`, `1:15 unknown-name: # has no property statsu; it has id, note, status; did you mean status?`},
	{`node.next.next.w`, `1:16 unknown-name: node.next.next has no property w; it has next, v`},
	{`last.eror.kind`, `1:6 unknown-name: last has no property eror; it has error, outcome; did you mean error?`},
	{`last.error.knd`, `1:12 unknown-name: last.error has no property knd; it has kind, message; did you mean kind?`},
	{`run.ID`, `1:5 unknown-name: run has no property ID; it has id, started_at; did you mean id?`},
	{`result.x`, `1:1 unknown-name: result exists only in expect, which looks at what a tool gave`},
	{`args.x`, `1:1 unknown-name: args exists only in the texts of a tool and in its approval.when`},
	{`visits`, `1:1 unknown-name: visits is a function: visits("name")`},
	{`foo(1)`, `1:1 unknown-name: there is no function foo`},
	{`lenn(tags)`, `1:1 unknown-name: there is no function lenn; did you mean len?`},
	{`last(tags)`, `1:1 unknown-name: last is how the step before ended; the last item of a list is list[-1]`},
	// words of an enum
	{`wish == "refnd"`, `1:9 enum-word: wish is never "refnd"; it is one of refund, exchange, question; did you mean refund?`},
	{`"refnd" != wish`, `1:1 enum-word: wish is never "refnd"; it is one of refund, exchange, question; did you mean refund?`},
	{`wish in ["refund", "exchnge"]`,
		`1:20 enum-word: wish is never "exchnge"; it is one of refund, exchange, question; did you mean exchange?`},
	{`level == 4`, `1:10 enum-word: level is never 4; it is one of 1, 2, 3`},
	{`rate == 2`, `1:9 enum-word: rate is never 2; it is one of 1, 1.5`},
	{`order.status == "pad"`, `1:17 enum-word: order.status is never "pad"; it is one of paid, open; did you mean paid?`},
	{`filter(rows, .status == "pad")`, `1:25 enum-word: .status is never "pad"; it is one of paid, open; did you mean paid?`},
	{`"newer" in tags`, `1:1 enum-word: an item of tags is never "newer"; it is one of new, old`},
	{`last.outcome == "fial"`, `1:17 enum-word: last.outcome is never "fial"; it is one of success, fail; did you mean fail?`},
	// states
	{`visits("detials") < 3`, `1:8 unknown-state: there is no state detials; did you mean details?`},
	{`visits(wish)`, `1:1 expr-type: visits takes the name of one state in quotes, such as visits("details")`},
	{`visits()`, `1:1 expr-type: visits takes the name of one state in quotes, such as visits("details")`},
	// types
	{`order_id == 3`, `1:10 expr-type: a string is never equal to an integer`},
	{`level == "4"`, `1:7 expr-type: an integer is never equal to a string`},
	{`paid == "false"`, `1:6 expr-type: a boolean is never equal to a string`},
	{`order_id > 3`, `1:10 expr-type: > cannot stand between a string and an integer`},
	{`count_of + "x"`, `1:10 expr-type: + cannot stand between an integer and a string`},
	{`wish > nil`, `1:8 expr-type: null is no operand of >; whether a value is there is asked by == null or != null`},
	{`not wish`, `1:1 expr-type: not cannot be used on a string`},
	{`wish.length`, `1:6 expr-type: wish is a string and has no property length`},
	{`wish.foo()`, `1:6 expr-type: values have no functions; write function(value), such as len(x)`},
	{`wish(1)`, `1:1 expr-type: wish is no function`},
	{`map(wish, #)`, `1:5 expr-type: map needs a list, got a string`},
	{`filter(rows, .id)`, `1:14 expr-type: the condition for the items must be true or false, got an integer`},
	{`wish ? 1 : 2`, `1:1 expr-type: the condition before ? must be true or false, got a string`},
	{`len(3)`, `1:1 expr-type: len cannot take an integer`},
	{`upper(3)`, `1:7 expr-type: upper takes a string here, got an integer`},
	{`upper()`, `1:1 expr-type: not enough arguments to call upper`},
	{`order_id matches "["`, "1:10 expr-type: the pattern is no regular expression (RE2): missing closing ]: `[`"},
	{`tags["x"]`, `1:6 expr-type: tags is a list and has no property x`},
	// what this language leaves out
	{`count_of / 2`, `1:10 expr-forbidden: / does not exist here: a flow compares and counts; let a tool calculate`},
	{`2 ** 3`, `1:3 expr-forbidden: ** does not exist here: a flow compares and counts; let a tool calculate`},
	{`2 ^ 3`, `1:3 expr-forbidden: ^ does not exist here: a flow compares and counts; let a tool calculate`},
	{`5 % 2`, `1:3 expr-forbidden: % does not exist here: a flow compares and counts; let a tool calculate`},
	{`1..3`, `1:2 expr-forbidden: .. does not exist here: a range has no place in a flow`},
	{`filter(rows, any(tags, # == "new"))`,
		`1:14 expr-forbidden: any stands inside the condition of another such function; let a tool do this`},
	{`$env.wish`, `1:1 expr-forbidden: $env does not exist here; name the variable itself`},
	{`b"abc"`, `1:1 expr-forbidden: bytes are no value of a flow; write text in quotes, without b`},
	{`1; 2`, `1:1 expr-forbidden: an expression gives one value; a semicolon only ends a let`},
	{`duration("1h")`, `1:1 expr-forbidden: duration does not exist here: an expression knows no times; let a tool calculate`},
	{`timezone("UTC")`, `1:1 expr-forbidden: timezone does not exist here: an expression knows no times; let a tool calculate`},
	{`date("2026-01-01")`,
		`1:1 expr-forbidden: date does not exist here: texts in ISO form (2026-01-31) compare in order as they are`},
	{`now()`, `1:1 expr-forbidden: now does not exist here: the answer of an expression must not change with the clock; ` +
		`run.started_at is when the run began`},
	{`env("KEY")`, `1:1 env-not-allowed: env("NAME") is allowed only in headers, and in env of a command or a server`},
	{strings.Repeat("1+", 150) + "1", `1:1 expr-forbidden: the expression has more than 200 parts; split it, or let a tool decide`},
	{`"` + strings.Repeat("x", 4000) + `"`,
		`1:1 expr-forbidden: the expression is longer than 4000 bytes; split it, or let a tool decide`},
	// form
	{``, `1:1 expr-syntax: the expression is empty`},
	{`wish = "refund"`, `1:6 expr-syntax: = does not compare; did you mean ==?`},
	{`wish ==`, `1:8 expr-syntax: the expression ends too early`},
	{`(wish`, `1:6 expr-syntax: the expression ends too early`},
	{`wish == "abc`, `1:9 expr-syntax: a text in quotes is not closed`},
	{`wish == "a" "b"`, `1:13 expr-syntax: the text "b" is not expected here`},
	{`wish )`, `1:6 expr-syntax: ) is not expected here`},
	{`wish == ?`, `1:9 expr-syntax: ? is not expected here`},
	{`wish == §`, `1:9 expr-syntax: this sign has no meaning in an expression`},
	{`9223372036854775808 > 1`, `1:1 expr-syntax: the number is too large to stay exact; use text in quotes`},
	{`order_id matches "\d"`, `1:20 expr-syntax: \ starts no known escape here; \\ is one backslash`},
	{`{{ paid }}`, `1:1 expr-syntax: an expression stands here, without {{ }}; write paid`},
}

// TestExprFindings holds one line for every kind of mistake that is found when a flow is loaded.
func TestExprFindings(t *testing.T) {
	s := shopScope(t)
	for _, test := range exprFindings {
		e, found := s.compileExpr(test.src, exprAt(test.src), wantAny)
		if got := lines(found); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.src, got, test.want)
		}
		if e != nil {
			t.Errorf("%s: an expression came with findings", test.src)
		}
	}
}

func TestExprWantedType(t *testing.T) {
	tests := []struct {
		src  string
		want wantType
		line string
	}{
		{`wish`, wantBool, `1:1 expr-type: a condition must be true or false; this gives a string`},
		{`nil`, wantBool, `1:1 expr-type: a condition must be true or false; this gives null`},
		{`count_of`, wantList, `1:1 expr-type: a list must stand here; this gives an integer`},
		{`paid`, wantBool, ``},
		{`thing`, wantBool, ``}, // known only when it runs
		{`rows`, wantList, ``},
		{`map(rows, .id)`, wantList, ``},
		{`thing`, wantList, ``},
	}
	s := shopScope(t)
	for _, test := range tests {
		if _, found := s.compileExpr(test.src, exprAt(test.src), test.want); lines(found) != test.line {
			t.Errorf("%s: got %s, want %s", test.src, lines(found), test.line)
		}
	}
}

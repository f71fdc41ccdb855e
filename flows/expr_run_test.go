package flows

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"flowctl/flows/machine"
)

func evalExpr(t testing.TB, s *exprScope, src string, want wantType, f machine.Facts) (machine.Value, error) {
	t.Helper()
	e, found := s.compileExpr(src, exprAt(src), want)
	if len(found) > 0 {
		t.Fatalf("%s: %s", src, lines(found))
	}
	return e.Eval(f)
}

var exprValues = []struct{ src, want string }{ // want is JSON
	{`wish == "refund"`, `true`},
	{`wish == 'refund' && paid || false`, `true`},
	{`maybe == nil`, `true`}, // null compares
	{`maybe == "x"`, `false`},
	{`maybe == null`, `true`},
	{`null == maybe and null == nil`, `true`},
	{`wish != null ? [null, wish] : null`, `[null,"refund"]`},
	{`maybe != "x"`, `true`},
	{`maybe in ["x"]`, `false`},
	{`maybe ?? "none"`, `"none"`},
	{`visits("details") < 3`, `true`},
	{`visits("details") + visits("propose")`, `2`},
	{`last.outcome == "fail" and last.error.kind == "none_found"`, `true`},
	{`last`, `{"error":{"kind":"none_found","message":"no such order"},"outcome":"fail"}`},
	{`last.error.message`, `"no such order"`},
	{`last?.error?.kind`, `"none_found"`},
	{`let e = last.error; e.kind`, `"none_found"`},
	{`run.id`, `"01JD"`},
	{`run.started_at`, `"2026-01-02T03:04:05.006Z"`},
	// whole numbers are exact
	{`9007199254740993`, `9007199254740993`},
	{`thing.a[0] == 9007199254740993`, `true`},
	{`thing.a[0] == 9007199254740992`, `false`},
	{`thing.a[0] > 9007199254740992`, `true`},
	{`thing.a == [9007199254740993]`, `true`},
	{`thing.a != [9007199254740992]`, `true`},
	{`thing == {"a": [9007199254740993], "b": 2}`, `true`},
	{`9007199254740993 in thing.a`, `true`},
	{`thing.a[0] + 1`, `9007199254740994`},
	{`9223372036854775806 + 1`, `9223372036854775807`},
	{`-9223372036854775807 - 1`, `-9223372036854775808`},
	{`-3 * -4`, `12`},
	{`int("9007199254740993")`, `9007199254740993`},
	{`float("9007199254740993")`, `9007199254740993`},
	{`float(thing.a[0])`, `9007199254740993`},
	{`round(thing.a[0])`, `9007199254740993`},
	{`abs(-thing.a[0])`, `9007199254740993`},
	{`fromJSON("[9007199254740993]")[0]`, `9007199254740993`},
	{`string(thing.a[0])`, `"9007199254740993"`},
	{`max(thing.a[0], 1)`, `9007199254740993`},
	{`price * 2`, `19`}, // a whole number again
	{`price + 1`, `10.5`},
	{`len(tags) == level - 1`, `true`},
	{`[len(tags)] == [1]`, `true`}, // the library's int in a list beside our int64
	{`0 < count_of < 5`, `true`},
	{`1_000 + 0x10`, `1016`},
	{`sum(order.lines)`, `3`},
	{`sum(rows, .id)`, `3`},
	{`sum([])`, `0`},
	{`sum([1, 0.5])`, `1.5`},
	{`reduce(order.lines, #acc + #, 0)`, `3`},
	{`round(price) + floor(price) + ceil(price)`, `29`},
	{`int(price)`, `9`},
	// lists and objects
	{`order.lines[-1]`, `2`},
	{`order.lines[1:]`, `[2]`},
	{`order.lines[5:9]`, `[]`},
	{`thing["b"]`, `2`},
	{`thing[order_id]`, `null`},
	{`open_object`, `null`},
	{`thing?.x?.y`, `null`},
	{`open_object?.x?.[0]`, `null`},
	{`open_object?.x.y?.["z"]`, `null`},
	{`order.lines?.[1]`, `2`},
	{`(open_object?.x ?? 2) + 1`, `3`},
	{`join([1, 2], open_object?.x ?? "-")`, `"1-2"`},
	{`order.ship?.zip ?? "none"`, `"none"`},
	{`keys(thing)`, `["a","b"]`},
	{`values(thing)`, `[[9007199254740993],2]`},
	{`toPairs({"b": 1, "a": 2})`, `[["a",2],["b",1]]`},
	{`filter(rows, .status == "paid")`, `[{"id":1,"status":"paid"}]`},
	{`rows | filter(.id > 1) | len()`, `1`},
	{`map(rows, [.id])`, `[[1],[2]]`},
	{`fromPairs([["b", 1], [2, nil]])`, `{"2":null,"b":1}`},
	{`fromPairs(toPairs(thing)) == thing`, `true`},
	{`groupBy(rows, .id)["2"][0].status`, `"open"`},
	{`groupBy(rows, .status)`, `{"open":[{"id":2,"status":"open"}],"paid":[{"id":1,"status":"paid"}]}`},
	{`count(rows, .status == "paid") == 1 and all(rows, .id > 0) and none(rows, .id > 5)`, `true`},
	{`sortBy(rows, .id, "desc")[0].id`, `2`},
	{`findIndex(rows, .id == 2)`, `1`},
	{`split("a,b", ",") == ["a", "b"]`, `true`},
	{`"a" in split("a,b", ",")`, `true`},
	{`concat(tags, ["x"])`, `["new","x"]`},
	{`[1, 2.5, "x", nil, true]`, `[1,2.5,"x",null,true]`},
	// texts, counted in characters
	{`"退款申请"[0:2]`, `"退款"`},
	{`"退款申请"[-2:]`, `"申请"`},
	{`""[0:1]`, `""`},
	{`indexOf("退款申请", "申请")`, `2`},
	{`lastIndexOf("aba", "a")`, `2`},
	{`indexOf("abc", "x")`, `-1`},
	{`len("退款")`, `2`},
	{`join(order.lines, ", ")`, `"1, 2"`},
	{`join(tags)`, `"new"`},
	{`replace("a-b-c", "-", "+")`, `"a+b+c"`},
	{`replace("a-b-c", "-", "+", 1)`, `"a+b-c"`},
	{`repeat("ab", 3)`, `"ababab"`},
	{`string(price) + string(nil) + string(tags)`, `"9.5[\"new\"]"`},
	{`toJSON({"t": "<a>&"})`, `"{\"t\":\"<a>&\"}"`},
	{`order_id matches "^A[0-9]+$" and order_id startsWith "A" and not (order_id contains "B")`, `true`},
	{`paid ? wish : "x"`, `"refund"`},
	{`if paid { 1 } else { 2 }`, `1`},
	{`let x = count_of + 1; x * x`, `16`},
}

func TestExprValues(t *testing.T) {
	s := shopScope(t)
	for _, test := range exprValues {
		v, err := evalExpr(t, s, test.src, wantAny, shopFacts())
		got, _ := machine.EncodeValue(v)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.src, got, err, test.want)
		}
	}
}

func TestExprFailures(t *testing.T) {
	const numbers = "(-9223372036854775808 to 9223372036854775807)"
	tests := []struct {
		src  string
		want wantType
		err  string // after the position and the source
	}{
		{`maybe > "x"`, wantAny, `null cannot be compared with a string by > (with maybe = null)`},
		{`thing.x > 3`, wantAny, `null cannot be compared with an integer by > (with thing = {"a":[9007199254740993],"b":2})`},
		{`maybe + "x"`, wantAny, `+ needs two numbers or two strings, got null and a string (with maybe = null)`},
		{`not maybe_paid`, wantAny, `expected a boolean, got null (with maybe_paid = null)`},
		{`maybe_paid and true`, wantAny, `expected a boolean, got null (with maybe_paid = null)`},
		{`maybe_paid`, wantBool, `it must be true or false, and gives null (with maybe_paid = null)`},
		{`open_object.x`, wantAny, `null has no property x (with open_object = null)`},
		{`open_object["x"]`, wantAny, `null has no property x (with open_object = null)`},
		{`open_object.x[0]`, wantAny, `null has no property x (with open_object = null)`},
		{`fresh[0]`, wantAny, `null has no item 0 (with fresh = null)`},
		{`upper(maybe)`, wantAny, `expected a string, got null (with maybe = null)`},
		{`map(fresh, #)`, wantAny, `a list must stand here, got null (with fresh = null)`},
		{`fresh`, wantList, `it must give a list, and gives null (with fresh = null)`},
		{`order.lines[5]`, wantAny,
			`the list has 2 items, counted from 0; there is no item 5 (with order = {"lines":[1,2],"status":"paid"})`},
		{`9223372036854775807 + count_of`, wantAny, "the result is beyond the whole numbers " + numbers + " (with count_of = 3)"},
		{`-9223372036854775807 - count_of`, wantAny, "the result is beyond the whole numbers " + numbers + " (with count_of = 3)"},
		{`count_of * 9223372036854775807`, wantAny, "the result is beyond the whole numbers " + numbers + " (with count_of = 3)"},
		{`-(-9223372036854775807 - 1)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`(-9223372036854775807 - 1) * -1`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`-1 * (-9223372036854775807 - 1)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`abs(-9223372036854775807 - 1)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`sum([9223372036854775807, 1])`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`sum([9223372036854775807, 1], #)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`reduce([9223372036854775807, 1], #acc + #)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`round(1e300)`, wantAny, "the result is beyond the whole numbers " + numbers},
		{`1e308 * 10`, wantAny, "the result is too large to be a number"},
		{`sum(["x"])`, wantAny, "sum needs a list of numbers; item 0 is a string"},
		{`int("x")`, wantAny, "the text is no whole number"},
		{`float("x")`, wantAny, "the text is no number"},
		{`fromJSON("{")`, wantAny, "fromJSON: not JSON: unexpected EOF"},
		{`repeat("ab", 99999999999)`, wantAny, "the text that it makes is longer than 16 MiB"},
		{`replace(repeat("a", 9000000), "a", "bb")`, wantAny, "the text that it makes is longer than 16 MiB"},
		{`repeat("a", 9000000) + repeat("a", 9000000)`, wantAny, "the text that it makes is longer than 16 MiB"},
		{`3 in open_list`, wantAny, `in needs a list or an object on its right, got a string (with open_list = "x")`},
	}
	s := shopScope(t)
	s.Vars["maybe_paid"] = exprSchema(t, `{"type":"boolean"}`)
	s.Vars["fresh"] = exprSchema(t, `{"type":"array"}`)
	s.Vars["open_list"] = exprSchema(t, `{}`)
	facts := shopFacts()
	facts.Values["open_list"] = "x"
	for _, test := range tests {
		_, err := evalExpr(t, s, test.src, test.want, facts)
		var failure *machine.ExprError
		if !errors.As(err, &failure) {
			t.Errorf("%s: got %T %v, want a *machine.ExprError", test.src, err, err)
			continue
		}
		if want := "flow.yaml:1:1: " + test.src + ": " + test.err; err.Error() != want {
			t.Errorf("\n got %s\nwant %s", err, want)
		}
		if failure.Source != test.src || failure.Pos.Line != 1 {
			t.Errorf("%s: the error has source %q at %v", test.src, failure.Source, failure.Pos)
		}
	}
}

// TestExprErrorsNameNoGoTypes runs every function and operator over every kind of value.
func TestExprErrorsNameNoGoTypes(t *testing.T) {
	s := &exprScope{Vars: map[string]machine.Schema{"x": nil, "y": nil}}
	values := []machine.Value{nil, true, int64(3), 2.5, "text", []machine.Value{int64(1), "a", nil},
		machine.Values{"a": int64(1)}, []machine.Value{machine.Values{"k": int64(1)}}}
	sources := []string{"x[y]", "x.a", "x[1:y]", "x ? 1 : 2", "-x", "not x", `x matches y`, `x?.a`, "x[y:]"}
	for _, op := range []string{"+", "-", "*", "<", "<=", "==", "!=", "and", "or", "in", "contains", "startsWith", "endsWith", "??"} {
		sources = append(sources, "x "+op+" y")
	}
	for _, name := range functionNames() {
		switch {
		case name == "visits" || name == "env":
		case predicateFunctions[name]:
			sources = append(sources, name+"(x, #)", name+"(x, # == y)", name+"(x, .k)", name+"(x, # > 1)")
		default:
			sources = append(sources, name+"(x)", name+"(x, y)", name+"(x, y, x)")
		}
	}
	ran := 0
	for _, src := range sources {
		e, found := s.compileExpr(src, exprAt(src), wantAny)
		for _, text := range append([]string{lines(found)}, run(e, values, &ran)...) {
			for _, word := range []string{"interface", "<nil>", "int64", "float64", "map[", "[]", "reflect", "panic", "goroutine", "0x"} {
				if message := strings.Split(text, " (with ")[0]; strings.Contains(message, word) {
					t.Errorf("%s: %s names %s", src, message, word)
				}
			}
		}
	}
	if ran < 3000 {
		t.Errorf("only %d runs", ran)
	}
}

func run(e machine.Expr, values []machine.Value, ran *int) (messages []string) {
	if e == nil {
		return nil
	}
	for _, x := range values {
		for _, y := range values {
			*ran++
			if _, err := e.Eval(machine.Facts{Values: machine.Values{"x": x, "y": y}}); err != nil {
				_, reason, _ := strings.Cut(err.Error(), e.Source()+": ")
				messages = append(messages, reason)
			}
		}
	}
	return messages
}

func TestExprResultArgsAndEnv(t *testing.T) {
	s := &exprScope{
		Vars: map[string]machine.Schema{}, HasResult: true, Result: exprSchema(t, `{"type":"object","properties":{"affected":{"type":"integer"}}}`),
		HasArgs: true, Args: exprSchema(t, `{"type":"object","properties":{"order_id":{"type":"string","enum":["A1"]}}}`), Env: func(string) {},
	}
	facts := machine.Facts{
		Result: machine.Values{"affected": int64(1)}, Args: machine.Values{"order_id": "A1"},
		Getenv: func(name string) (string, bool) { return "value of " + name, name == "KEY" },
	}
	for src, want := range map[string]machine.Value{
		`result.affected == 1`: true, `args.order_id == "A1"`: true, `env("KEY")`: "value of KEY", `"Bearer " + env("KEY")`: "Bearer value of KEY",
	} {
		if v, err := evalExpr(t, s, src, wantAny, facts); err != nil || v != want {
			t.Errorf("%s gives %v, %v", src, v, err)
		}
	}
	for src, want := range map[string]string{
		`result.afected == 1`:   `1:8 unknown-name: result has no property afected; it has affected; did you mean affected?`,
		`result.affected == ""`: `1:17 expr-type: an integer is never equal to a string`,
		`args.order_id == "A2"`: `1:18 enum-word: args.order_id is never "A2"; it is one of A1; did you mean A1?`,
		`env(args.order_id)`:    `1:1 expr-type: env takes the name of one environment variable in quotes, such as env("SHOP_KEY")`,
	} {
		if _, found := s.compileExpr(src, exprAt(src), wantAny); lines(found) != want {
			t.Errorf("%s: got %s, want %s", src, lines(found), want)
		}
	}
	_, err := evalExpr(t, s, `env("NONE")`, wantAny, facts)
	if err == nil || !strings.Contains(err.Error(), "the environment variable NONE is not set") {
		t.Errorf("got %v", err)
	}
	if v, err := evalExpr(t, s, `args.order_id`, wantAny, machine.Facts{}); v != nil || err != nil {
		t.Errorf("without arguments: got %v, %v, want null", v, err)
	}
	// Anything may be asked of a result whose schema is not known.
	s.Result = nil
	if v, err := evalExpr(t, s, `result.affected.x ?? 5`, wantAny, machine.Facts{Result: machine.Values{"affected": machine.Values{}}}); v != int64(5) || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestExprErrorHidesSecretsAndLongValues(t *testing.T) {
	s := &exprScope{Vars: map[string]machine.Schema{"code": nil, "long": nil}, Secret: map[string]bool{"code": true}}
	_, err := evalExpr(t, s, `code > 3 and long > 3`, wantAny, machine.Facts{
		Values: machine.Values{"code": "hunter22", "long": strings.Repeat("长", 500)}})
	if err == nil || strings.Contains(err.Error(), "hunter22") || !strings.Contains(err.Error(), "code = (secret)") {
		t.Errorf("got %v", err)
	}
	if n := len([]rune(err.Error())); n > 300 {
		t.Errorf("the message has %d characters", n)
	}
}

func TestExprReads(t *testing.T) {
	s := shopScope(t)
	for src, want := range map[string]string{
		`wish == "refund" and paid and wish != nil`: "paid wish", `visits("details") > 1`: "", `last.error.kind == order_id`: "order_id",
		`filter(rows, .id == count_of)`: "count_of rows", `let wishes = tags; len(wishes)`: "tags",
	} {
		e, found := s.compileExpr(src, exprAt(src), wantAny)
		if len(found) > 0 {
			t.Fatal(lines(found))
		}
		if got := strings.Join(e.Reads(), " "); got != want {
			t.Errorf("%s reads %q, want %q", src, got, want)
		}
	}
}

// TestExprVariablesNamedLikeFunctions holds that a variable wins over a function of the same name.
func TestExprVariablesNamedLikeFunctions(t *testing.T) {
	s := &exprScope{Vars: map[string]machine.Schema{}}
	facts := machine.Facts{Values: machine.Values{}}
	for _, name := range []string{"keys", "date", "type", "len", "string", "first", "now", "values", "max"} {
		s.Vars[name] = exprSchema(t, `{"type":"string"}`)
		facts.Values[name] = name
	}
	for name := range s.Vars {
		if v, err := evalExpr(t, s, name+` == "`+name+`"`, wantBool, facts); v != true || err != nil {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
		if _, found := s.compileExpr(name+`("x")`, exprAt(""), wantAny); lines(found) != "1:1 expr-type: "+name+" is no function" {
			t.Errorf("%s(): %s", name, lines(found))
		}
	}
}

func TestExprDoesNotChangeOrShareFacts(t *testing.T) {
	s := shopScope(t)
	facts := shopFacts()
	v, err := evalExpr(t, s, `rows`, wantList, facts)
	if err != nil {
		t.Fatal(err)
	}
	v.([]machine.Value)[0].(machine.Values)["id"] = "changed"
	if got := facts.Values["rows"].([]machine.Value)[0].(machine.Values)["id"]; got != int64(1) {
		t.Errorf("a change of the result reached the facts: %v", got)
	}
}

func TestExprConcurrent(t *testing.T) {
	s := shopScope(t)
	src := `wish == "refund" and visits("details") < 3 and len(filter(rows, .id > 0)) == 2 and order_id matches "A"`
	e, found := s.compileExpr(src, exprAt(src), wantBool)
	if len(found) > 0 {
		t.Fatal(lines(found))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if v, err := e.Eval(shopFacts()); v != true || err != nil {
					t.Errorf("got %v, %v", v, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func FuzzCompileExpr(f *testing.F) {
	for _, src := range []string{
		`wish == "refund" and visits("details") < 3`, `filter(rows, .id > 1)[0].id ?? 5`, `let x = count_of; x + 1`, `"\u{1F600}"[0:1]`,
		"`raw` + wish", `1_0 < .5e3`, `{"a": [1, nil]}["a"]`, `rows | map(#.id) | sum()`, `a ?: b`, `last?.error`, `{{ wish }}`,
	} {
		f.Add(src)
	}
	s := shopScope(f)
	facts := shopFacts()
	f.Fuzz(func(t *testing.T, src string) {
		e, found := s.compileExpr(src, exprAt(src), wantAny)
		if (e == nil) != (len(found) > 0) {
			t.Fatalf("%q: an expression and findings, or neither: %s", src, lines(found))
		}
		if e == nil {
			return
		}
		v, err := e.Eval(facts)
		if err != nil {
			var failure *machine.ExprError
			if !errors.As(err, &failure) {
				t.Fatalf("%q fails with %T %v", src, err, err)
			}
			return
		}
		if n, err := machine.Normalize(v); err != nil || !machine.EqualValues(n, v) {
			t.Fatalf("%q gives %#v, which is no value", src, v)
		}
	})
}

// The yardstick of an evaluation is the same condition written in Go.
func BenchmarkEval(b *testing.B) {
	facts := shopFacts()
	s := shopScope(b)
	eval := func(src string) func(b *testing.B) {
		return func(b *testing.B) {
			e, found := s.compileExpr(src, exprAt(src), wantBool)
			if len(found) > 0 {
				b.Fatal(lines(found))
			}
			b.ReportAllocs()
			for b.Loop() {
				if v, err := e.Eval(facts); v != true || err != nil {
					b.Fatal(v, err)
				}
			}
		}
	}
	b.Run("variable", eval(`wish == "refund"`))
	b.Run("guard", eval(`last.error.kind == "none_found" and visits("details") < 3`))
	b.Run("mixed", eval(`wish in ["refund", "exchange"] and count_of + 1 < 5 and visits("details") < 3`))
	b.Run("go", func(b *testing.B) {
		guard := func(f machine.Facts) (machine.Value, error) {
			return f.Last.Error.Kind == "none_found" && f.Visits["details"] < 3, nil
		}
		for b.Loop() {
			if v, err := guard(facts); v != true || err != nil {
				b.Fatal(v, err)
			}
		}
	})
}

func BenchmarkCompileExpr(b *testing.B) {
	s := shopScope(b)
	for b.Loop() {
		if _, found := s.compileExpr(`wish == "refund" and visits("details") < 3`, exprAt("x"), wantBool); len(found) > 0 {
			b.Fatal(lines(found))
		}
	}
}

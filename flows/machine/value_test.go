package machine

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecodeValueKeepsNumbersExact(t *testing.T) {
	cases := []struct {
		in   string
		want Value
	}{
		{"9007199254740993", int64(9007199254740993)},
		{"-9223372036854775808", int64(math.MinInt64)},
		{"9223372036854775807", int64(math.MaxInt64)},
		{"12345678", int64(12345678)},
		{"3.0", int64(3)},
		{"1e3", int64(1000)},
		{"1e17", int64(100000000000000000)},
		{"-0", int64(0)},
		{"0.1", 0.1},
		{`{"a":[1,2.5,"x",null,true]}`, Values{"a": []Value{int64(1), 2.5, "x", nil, true}}},
		{`"<b>&"`, "<b>&"},
	}
	for _, c := range cases {
		got, err := DecodeValue([]byte(c.in))
		if err != nil || !EqualValues(got, c.want) {
			t.Errorf("%s: got %#v (%v), want %#v", c.in, got, err, c.want)
		}
	}
}

func TestDecodeValueRefuses(t *testing.T) {
	cases := []struct{ in, want string }{
		{"", "found nothing"},
		{"   ", "found nothing"},
		{"{", "not JSON"},
		{"1 2", "found more behind it"},
		{"9223372036854775808", "use a string"},
		{"99999999999999999999999", "use a string"},
		{"1e999", "use a string"},
		{"1e19", "use a string"},
		{"-9.3e18", "use a string"},
		{`{"a":{"b":[9223372036854775808]}}`, "a: b: item 0"},
	}
	for _, c := range cases {
		if _, err := DecodeValue([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.in, err, c.want)
		}
	}
}

func TestNormalizeTakesWhatGoGives(t *testing.T) {
	type point struct {
		X int    `json:"x"`
		S string `json:"s"`
	}
	cases := []struct{ in, want Value }{
		{7, int64(7)},
		{int32(7), int64(7)},
		{uint64(7), int64(7)},
		{uint8(7), int64(7)},
		{float32(0.5), 0.5},
		{2.0, int64(2)},
		{json.Number("9007199254740993"), int64(9007199254740993)},
		{json.RawMessage(`[1]`), []Value{int64(1)}},
		{[]string{"a"}, []Value{"a"}},
		{point{1, "x"}, Values{"x": int64(1), "s": "x"}},
		{"a\xffb", "a\uFFFDb"},
	}
	for _, c := range cases {
		got, err := Normalize(c.in)
		if err != nil || !EqualValues(got, c.want) {
			t.Errorf("%#v: got %#v (%v), want %#v", c.in, got, err, c.want)
		}
	}
	for _, bad := range []any{math.NaN(), math.Inf(1), uint64(math.MaxUint64), make(chan int)} {
		if got, err := Normalize(bad); err == nil {
			t.Errorf("%v was taken as %v", bad, got)
		}
	}
}

func TestFormatValue(t *testing.T) {
	cases := []struct {
		in   Value
		want string
	}{
		{nil, ""},
		{"text", "text"},
		{true, "true"},
		{int64(12345678), "12345678"},
		{-0.5, "-0.5"},
		{0.00000001, "0.00000001"},
		{[]Value{int64(1), "<&>"}, `[1,"<&>"]`},
		{Values{"b": nil, "a": int64(1)}, `{"a":1,"b":null}`},
	}
	for _, c := range cases {
		if got := FormatValue(c.in); got != c.want {
			t.Errorf("%#v: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	in := Values{"a": []Value{Values{"b": int64(1)}}}
	out := CloneValues(in)
	out["a"].([]Value)[0].(Values)["b"] = int64(2)
	if in["a"].([]Value)[0].(Values)["b"] != int64(1) {
		t.Error("the clone shares a value with the original")
	}
}

// values generates Values of any shape.
func values() *rapid.Generator[Value] {
	leaf := rapid.OneOf(
		rapid.Just[Value](nil),
		rapid.Map(rapid.Bool(), func(b bool) Value { return b }),
		rapid.Map(rapid.Int64(), func(i int64) Value { return i }),
		rapid.Map(rapid.Float64Range(-1e19, 1e19), func(f float64) Value { v, _ := normalizeFloat(f); return v }),
		rapid.Map(rapid.String(), func(s string) Value { return cleanText(s) }),
	)
	return rapid.Deferred(func() *rapid.Generator[Value] {
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(values(), 0, 3), func(l []Value) Value { return l }),
			rapid.Map(rapid.MapOfN(rapid.StringN(0, 4, 8), values(), 0, 3), func(m map[string]Value) Value { return m }))
	})
}

func TestEncodingIsCanonicalAndExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "value")
		v, err := Normalize(v)
		if err != nil {
			t.Fatal(err)
		}
		first, err := EncodeValue(v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeValue(first)
		if err != nil || !EqualValues(back, v) {
			t.Fatalf("%#v came back as %#v (%v)", v, back, err)
		}
		if second, _ := EncodeValue(back); string(second) != string(first) {
			t.Fatalf("encoded as %s, then as %s", first, second)
		}
	})
}

func FuzzDecodeValue(f *testing.F) {
	for _, seed := range []string{"1", `{"a":[1.5,"x"]}`, "9223372036854775808", "nul", `"\ud800"`, "1e400"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := DecodeValue(data)
		if err != nil {
			return
		}
		out, err := EncodeValue(v)
		if err != nil {
			t.Fatalf("%#v cannot be written: %v", v, err)
		}
		if back, err := DecodeValue(out); err != nil || !EqualValues(back, v) {
			t.Fatalf("%s came back as %#v (%v)", out, back, err)
		}
	})
}

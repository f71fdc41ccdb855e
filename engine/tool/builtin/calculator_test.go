package builtin

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"flowctl/flows/machine"

	"pgregory.net/rapid"
)

func TestCalculate(t *testing.T) {
	tests := []struct {
		text string
		want machine.Value
	}{
		{"1 + 2 * 3", int64(7)},
		{"(1 + 2) * 3", int64(9)},
		{"19.99 * 3", 59.97},
		{"0.1 + 0.2", 0.3},
		{"7 / 2", 3.5},
		{"6 / 2", int64(3)},
		{"1 / 3 * 3", int64(1)},
		{"7 % 3", int64(1)},
		{"-7 % 3", int64(-1)},
		{"-2 ** 2", int64(-4)},
		{"(-2) ** 3", int64(-8)},
		{"2 ^ 10", int64(1024)},
		{"2 ** -1", 0.5},
		{"2 ** 0.5", math.Sqrt2},
		{"0 ** 0", int64(1)},
		{"0 ** 2", int64(0)},
		{"(-1) ** 1000001", int64(-1)},
		{"1 ** 99999999999", int64(1)},
		{"+5 - -5", int64(10)},
		{"9007199254740993 + 0", int64(9007199254740993)},
		{"9223372036854775807", int64(math.MaxInt64)},
		{"9223372036854775807 + 1 - 1", int64(math.MaxInt64)},
		{"-9223372036854775807 - 1", int64(math.MinInt64)},
		{"2 ** 62 + (2 ** 62 - 1)", int64(math.MaxInt64)},
		{"1e3", int64(1000)},
		{"1_000 + 0x10", int64(1016)},
		{"abs(-3.5)", 3.5},
		{"min(3, 1, 2)", int64(1)},
		{"max(3, 1, 2.5)", int64(3)},
		{"max([1, 5], 2)", int64(5)},
		{"sum(1, 2, 3.5)", 6.5},
		{"sum([10, 20])", int64(30)},
		{"round(2.5)", int64(3)},
		{"round(-2.5)", int64(-3)},
		{"round(2.449, 1)", 2.4},
		{"round(1 / 3, 4)", 0.3333},
		{"round(12345)", int64(12345)},
		{"sum([1, max(2, 3)]) * 2", int64(8)},
	}
	for _, test := range tests {
		got, err := calculate(test.text)
		if err != nil || got != test.want {
			t.Errorf("%s = %v (%T), %v; want %v", test.text, got, got, err, test.want)
		}
	}
}

func TestCalculateRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"1 / 0", "division by zero"},
		{"1 % 0", "division by zero"},
		{"0 ** -1", "division by zero"},
		{"1 / (0.1 + 0.2 - 0.3)", "division by zero"},
		{"1.5 % 2", "whole numbers"},
		{"9223372036854775807 + 1", "too large to stay exact"},
		{"2 ** 63", "too large to stay exact"},
		{"9223372036854775808", "beyond 9223372036854775807"},
		{"2 ** 100000", "too large"},
		{"9 ** 9 ** 9", "too large"},
		{"(9 ** 999) ** 999", "too large"},
		{"1e999", "in it is beyond"},
		{"(-8) ** 0.5", "no number"},
		{"", "unexpected token"},
		{"1 +", "unexpected token"},
		{"(1", "unexpected token"},
		{"x + 1", "the name x"},
		{"foo(1)", "no function foo"},
		{"len([1])", "no function len"},
		{"now()", "no function now"},
		{"abs(1, 2)", "one number"},
		{"abs()", "needs a number"},
		{"sum([])", "needs a number"},
		{"round(1, 0.5)", "how many digits"},
		{"round(1, 31)", "how many digits"},
		{"1 < 2", "no arithmetic"},
		{"1 == 1 ? 2 : 3", "only numbers"},
		{"[1, 2]", "only numbers"},
		{`"a" + "b"`, "only numbers"},
		{"1..5", "no arithmetic"},
		{"map(1..5, #)", ""},
		{"let x = 1; x", ""},
		{"!1", "no arithmetic"},
		{"not true", "no arithmetic"},
		{"true", "only numbers"},
		{"nil", "only numbers"},
		{"[1][0]", "only numbers"},
		{"{a: 1}.a", "only numbers"},
		{strings.Repeat("1+", 600) + "1", "more than 1000 characters"},
	}
	for _, test := range tests {
		got, err := calculate(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40s = %v, %v; want an error with %q", test.text, got, err, test.want)
		}
	}
}

// What fits is worked out exactly as with big integers, what does not is refused.
func TestCalculateIntegersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		op := rapid.SampledFrom([]string{"+", "-", "*"}).Draw(t, "op")
		want := map[string]func(x, y *big.Int) *big.Int{"+": new(big.Int).Add, "-": new(big.Int).Sub, "*": new(big.Int).Mul}[op](
			big.NewInt(a), big.NewInt(b))
		got, err := calculate(fmt.Sprintf("%d %s %d", a, op, b))
		if !want.IsInt64() {
			if err == nil {
				t.Fatalf("got %v, want an error", got)
			}
			return
		}
		if err != nil || got != want.Int64() {
			t.Fatalf("got %v, %v; want %s", got, err, want)
		}
	})
}

func FuzzCalculate(f *testing.F) {
	for _, text := range []string{"1+2", "2**64", "round(1/3,2)", "sum([1,2],3)", "((((", "1e-400", "#", "a?.b", "if 1 {2} else {3}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := calculate(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		switch x := v.(type) {
		case int64:
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q = %v", text, x)
			}
		default:
			t.Errorf("%q = %T", text, v)
		}
	})
}

package secret

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMask(t *testing.T) {
	m := NewMask([]string{"hunter22", "hunter22-long", "12345", "", "******", "a\"b\\c\n"})
	for text, want := range map[string]string{
		"hunter22!":                     "***!",
		"hunter22-long":                 "***",
		"12345":                         "12345",
		"************":                  "***",
		`{"x": "a\"b\\c\n"}`:            `{"x": "***"}`,
		"aHVudGVyMjI=":                  "***",
		"Basic dXNlcjpodW50ZXIyMg== ok": "Basic dXNlcjp***g== ok",
		"a hunter 22":                   "a hunter 22",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	s := m.Stream()
	if got := s.Add("a hunt") + s.Add("er22 b") + s.End(); got != "a *** b" {
		t.Errorf("in pieces it is shown as %q", got)
	}
}

// However values and texts are made up, none is left, and what was masked does not change again.
func TestMaskLeavesNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		piece := rapid.StringOfN(rapid.RuneFrom([]rune("a*b\"")), 6, 9, -1)
		values := rapid.SliceOfN(piece, 1, 4).Draw(rt, "values")
		m := NewMask(values)
		text := ""
		for _, part := range rapid.SliceOfN(rapid.OneOf(piece, rapid.SampledFrom(values)), 1, 6).Draw(rt, "text") {
			text += part
		}
		got := m.Text(text)
		for _, v := range values {
			if strings.Contains(got, v) {
				rt.Fatalf("%q is left in %q", v, got)
			}
		}
		if again := m.Text(got); again != got {
			rt.Fatalf("%q became %q", got, again)
		}
	})
}

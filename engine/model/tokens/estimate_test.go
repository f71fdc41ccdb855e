package tokens

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// The estimate stays within these parts of o200k's count on every kind of text that runs send.
const leastPart, mostPart = 0.9, 2.0

func TestEstimateIsNearTheEncoding(t *testing.T) {
	for _, s := range samples() {
		got, want := estimate{}.Count(s.text), o200k.Count(s.text)
		part := float64(got) / float64(want)
		t.Logf("%-20s %5d bytes, o200k %4d, estimate %4d: %.2f", s.name, len(s.text), want, got, part)
		if part < leastPart || part > mostPart {
			t.Errorf("%s: the estimate is %d, %.2f of the %d tokens of o200k; allowed are %.1f to %.1f", s.name, got, part, want, leastPart, mostPart)
		}
	}
}

func TestEstimateOfKnownTexts(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
	}{
		{"", 0},
		{"word", 1},
		{"a word", 2},
		{"getUserName", 3},
		{"订单", 2},
		{"订单 A1001", 5},
		{"12", 1},
		{"123", 2},
		{" 1", 2},
		{`{"a":`, 3},
		{strings.Repeat("-", 80), 11},
		{"\n\n", 1},
		{strings.Repeat("\n", 64), 8},
		{"x\n    y", 4},
		{"😀", 2},
		{"\x00", 1},
		{"\xff", 1},
		{"\U00020000", 4},
	} {
		if got := (estimate{}).Count(tc.text); got != tc.want {
			t.Errorf("estimated %d for %q, want %d", got, tc.text, tc.want)
		}
	}
}

// cjkBlocks are the Unicode blocks of Chinese, Japanese and Korean beside the scripts that unicode has tables for.
var cjkBlocks = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x2E80, Hi: 0x303F, Stride: 1}, // radicals, punctuation
	{Lo: 0x3100, Hi: 0x33FF, Stride: 1}, // Bopomofo, enclosed characters, units
	{Lo: 0xFE30, Hi: 0xFE4F, Stride: 1}, // upright punctuation
	{Lo: 0xFF00, Hi: 0xFFEF, Stride: 1}, // full-width and half-width forms
}}

func TestEveryCJKCharacterIsATokenAtLeast(t *testing.T) {
	tables := []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, cjkBlocks}
	seen := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.In(r, tables...) {
			continue
		}
		seen++
		// In a row and between other letters, since those are counted in groups.
		for _, text := range []string{string(r), strings.Repeat(string(r), 20), "a" + string(r) + "b" + string(r)} {
			if got := (estimate{}).Count(text); got < int64(strings.Count(text, string(r))) {
				t.Fatalf("estimated %d for %q", got, text)
			}
		}
	}
	if seen < 100_000 {
		t.Errorf("only %d characters were looked at", seen)
	}
}

func TestBlocksAreInOrderAndCoverAll(t *testing.T) {
	for i := 1; i < len(blocks); i++ {
		if blocks[i].last <= blocks[i-1].last {
			t.Errorf("block %d ends at %#x, not behind the one before", i, blocks[i].last)
		}
	}
	if last := blocks[len(blocks)-1].last; last != unicode.MaxRune {
		t.Errorf("the last block ends at %#x", last)
	}
}

// The estimate of a text is about that of its parts, which is what cutting relies on.
func TestEstimateAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyText().Draw(t, "a"), anyText().Draw(t, "b")
		whole, parts := estimate{}.Count(a+b), estimate{}.Count(a)+estimate{}.Count(b)
		if whole < parts/2-4 || whole > 2*parts+4 {
			t.Fatalf("%d for the whole, %d for the parts", whole, parts)
		}
	})
}

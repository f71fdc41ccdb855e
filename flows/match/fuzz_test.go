package match

import (
	"fmt"
	"strings"
	"testing"
)

func show(v any) string { return fmt.Sprint(v) }

// FuzzFind holds that no text panics and that every hit stands in the text, in order and without overlap.
func FuzzFind(f *testing.F) {
	f.Add("refund", "A[0-9]{4}", "I want a REFUND for Ａ１００１ of 2024-01-31, yes")
	f.Add("退款", "^(退|款)+$", "我的订单2024-001有质量问题，要退款。是的")
	f.Add("gift", "^a@b$", "no gift: 1 000 at 2026-03-05 9:30Z or a@b.co, https://x.org/a. five, 两位 5月1日")
	f.Add("é", "(?i)[^a]|b*", "e\u0301\xff\u3000ｶﾞ")
	f.Fuzz(func(t *testing.T, word, pattern, text string) {
		var hits [][]string
		if m, err := Keyword(word); err == nil {
			hits = append(hits, m.Find(text), m.Meant(text))
		}
		if m, err := Pattern(pattern); err == nil {
			hits = append(hits, m.Find(text))
		}
		for _, list := range [][]Found{Integers(text), Numbers(text), Dates(text), Booleans(text, "zh"),
			BooleansOf(text, "zh", word), NumberWords(text), Formats(text, "email"), Formats(text, "uri"), Formats(text, "date-time")} {
			for _, hit := range list {
				if !strings.Contains(text, hit.Text) || hit.Text == "" {
					t.Fatalf("%q is not in %q", hit.Text, text)
				}
			}
		}
		for _, list := range hits {
			rest := text
			for _, hit := range list {
				_, after, ok := strings.Cut(rest, hit)
				if !ok || hit == "" {
					t.Fatalf("%q is not in the rest %q of %q", hit, rest, text)
				}
				rest = after
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	m, err := Pattern(`^A[0-9]{4}$`)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("I would like to have my money back for the order 我的订单 ", 5) + "A1001"
	for b.Loop() {
		if len(m.Find(text)) != 1 {
			b.Fatal("the hit is gone")
		}
	}
}

package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"flowctl/store"
)

func TestWordsOfAQuery(t *testing.T) {
	for query, want := range map[string][]string{
		"":                            nil,
		" ?! \"%_*\" \x00\xff \ufffd": nil,
		"Red, red and RED":            {"red", "and"},
		"order_id=A1001 (50%)":        {"order", "id", "a1001", "50"},
		"don't e-mail me@example.com": {"don", "t", "e", "mail", "me", "example", "com"},
		"ÄRGER Straße ΣΊΣΥΦΟΣ Привет Ա": {"ärger", "straße", "σίσυφοσ", "привет", "ա"},
		"\u0130I \u212a": {"\u0130i", "\u212a"}, // the dotted I and the Kelvin sign stay apart from ASCII
		"ＡＢｃ":            {"ａｂｃ"},
		"a\u0308b":       {"a\u0308b"},
		"👍 2€":           {"👍", "2"},
		"猫":              {"猫"},
		"颜色":             {"颜色"},
		"我喜欢，蓝色!":        {"我喜", "喜欢", "蓝色"},
		"iPhone手机2024年":  {"iphone", "手机", "2024", "年"},
		"コーヒー":           {"コー", "ーヒ", "ヒー"},
		"か\u3099き":       {"か\u3099", "\u3099き"},
		"ไทย":            {"ไท", "ทย"},
		"한국어 말":          {"한국어", "말"},
	} {
		r := store.NewRecall(store.MemoryFilter{Query: query})
		if got := r.Words(); !slices.Equal(got, want) {
			t.Errorf("words of %q: got %q, want %q", query, got, want)
		}
		for _, w := range want { // what is looked for is what text becomes
			r := store.NewRecall(store.MemoryFilter{Query: w})
			r.Offer(store.MemoryEntry{Value: []byte(query)})
			if len(r.Entries()) != 1 {
				t.Errorf("%q is not found in %q", w, query)
			}
		}
	}
	many := strings.Repeat("w ", 10)
	for i := range 3 * store.MaxWords {
		many += fmt.Sprint("w", i, " ")
	}
	if got := store.NewRecall(store.MemoryFilter{Query: many}).Words(); len(got) != store.MaxWords || got[0] != "w" || got[1] != "w0" {
		t.Errorf("%d words: %q", len(got), got)
	}
}

func TestRecallSaysWhenItIsDone(t *testing.T) {
	for _, one := range []struct {
		f    store.MemoryFilter
		done [3]bool // after none, one and two entries
	}{
		{store.MemoryFilter{}, [3]bool{false, false, false}},
		{store.MemoryFilter{Limit: 2}, [3]bool{false, false, true}},
		{store.MemoryFilter{Limit: 1, Query: "x"}, [3]bool{false, false, false}},
		{store.MemoryFilter{Query: "?"}, [3]bool{true, true, true}},
	} {
		r := store.NewRecall(one.f)
		for i, want := range one.done {
			if r.Done() != want {
				t.Errorf("%+v is done after %d entries: %v", one.f, i, !want)
			}
			r.Offer(store.MemoryEntry{Key: fmt.Sprint("x", i)})
		}
	}
}

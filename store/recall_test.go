package store_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// Which entries a limit leaves does not depend on the order in which they come, nor on what was dropped on the way.
func TestLimitLeavesTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(from, to int, what string) int { return rapid.IntRange(from, to).Draw(t, what) }
		var entries []store.MemoryEntry
		for i := range draw(0, 400, "entries") {
			entries = append(entries, store.MemoryEntry{Namespace: fmt.Sprint(i % 3), Key: fmt.Sprint("k", i),
				Value: []byte(rapid.SampledFrom([]string{"x", "red", "red blue", "red blue green"}).Draw(t, "value"))})
		}
		entries = rapid.Permutation(entries).Draw(t, "order")
		f := store.MemoryFilter{Query: rapid.SampledFrom([]string{"", "red blue green", "x"}).Draw(t, "query"), Bare: rapid.Bool().Draw(t, "bare")}
		all := store.NewRecall(f)
		f.Limit = draw(1, 120, "limit")
		some, look := store.NewRecall(f), draw(0, 400, "looks at")
		for i, e := range entries {
			all.Offer(e)
			some.Offer(e)
			if i == look {
				some.Entries()
			}
		}
		want := all.Entries()
		want = want[:min(f.Limit, len(want))]
		if got := some.Entries(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v gives\n%+v\nwant\n%+v", f, got, want)
		}
	})
}

// A limit bounds what is kept in the meantime, too: the values of an entry may be large.
func TestLimitBoundsWhatIsKept(t *testing.T) {
	const n, size, limit = 2000, 60_000, 3
	value := []byte("needle " + strings.Repeat("x", size))
	for name, key := range map[string]func(i int) string{
		"best first": func(i int) string { return fmt.Sprintf("%04d", i) },
		"best last":  func(i int) string { return fmt.Sprintf("%04d", n-i) },
	} {
		r := store.NewRecall(store.MemoryFilter{Query: "needle", Limit: limit})
		before := heap()
		for i := range n {
			r.Offer(store.MemoryEntry{Key: key(i), Value: value})
		}
		if kept := heap() - before; kept > 100*size {
			t.Errorf("%s: %d bytes are kept of %d entries, of which %d are wanted", name, kept, n, limit)
		}
		if got := r.Entries(); len(got) != limit || string(got[0].Value) != string(value) {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
}

// heap gives the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRecallCopiesWhatItKeeps(t *testing.T) {
	r := store.NewRecall(store.MemoryFilter{})
	buffer := []byte("one")
	r.Offer(store.MemoryEntry{Key: "a", Value: buffer})
	copy(buffer, "two")
	r.Offer(store.MemoryEntry{Key: "b", Value: buffer})
	if got := r.Entries(); string(got[0].Value) != "one" || string(got[1].Value) != "two" {
		t.Errorf("got %q and %q", got[0].Value, got[1].Value)
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

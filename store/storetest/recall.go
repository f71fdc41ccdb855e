package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"flowctl/store"
)

// memory is the store's ability to search and write memory outside of runs. The test is skipped where there is none.
func (b *bench) memory() store.Memory {
	b.Helper()
	m, ok := b.s.(store.Memory)
	if !ok {
		b.Skip("this driver has no memory to search")
	}
	return m
}

func (b *bench) memorize(writes ...store.MemoryWrite) {
	b.Helper()
	b.is("memorize", b.memory().Memorize(b.ctx, writes), nil)
}

// in is a write of any namespace.
func in(namespace, key, value string) store.MemoryWrite {
	return store.MemoryWrite{Namespace: namespace, Key: key, Value: []byte(value)}
}

// recalled gives the entries that a filter chooses, each as namespace/key.
func (b *bench) recalled(f store.MemoryFilter) []string {
	b.Helper()
	entries, err := b.memory().Memories(b.ctx, f)
	if err != nil {
		b.Fatalf("memories %+v: %v", f, err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Namespace+"/"+e.Key)
	}
	return got
}

var memorizeTests = []test{
	{"writes like a commit", func(b *bench) {
		b.create("r")
		b.memorize(set("k", `1`, 0), set("k", `2`, 1), set("gone", `1`, -1), set("gone", "", 1))
		b.is("a commit in between", b.remember(set("k", `3`, 2)), nil)
		b.memorize(set("k", `4`, 3))
		b.memorize()
		b.same("entry", *b.memoryConflict("k"), store.MemoryConflict{Namespace: "n", Key: "k", Version: 4, Value: []byte(`4`)})
		b.same("deleted entry", b.memoryConflict("gone").Version, int64(0))
		b.same("entries", b.recalled(store.MemoryFilter{}), []string{"n/k"})
	}},
	{"is all or nothing", func(b *bench) {
		b.memorize(set("k", `1`, 0))
		err := b.memory().Memorize(b.ctx, []store.MemoryWrite{set("new", `"needle"`, 0), set("k", `"needle"`, 0), set("other", `"needle"`, -1)})
		var conflict *store.MemoryConflict
		if !errors.As(err, &conflict) {
			b.Fatalf("a write of a version that is not there gave %v", err)
		}
		b.same("conflict", *conflict, store.MemoryConflict{Namespace: "n", Key: "k", Version: 1, Value: []byte(`1`)})
		b.same("entries", b.recalled(store.MemoryFilter{}), []string{"n/k"})
		b.same("hits", b.recalled(store.MemoryFilter{Query: "needle"}), []string{})
	}},
	{"keeps and hands out no slice twice", func(b *bench) {
		w := set("k", `"mine"`, -1)
		b.memorize(w)
		clear(w.Value)
		for range 2 {
			entries, err := b.memory().Memories(b.ctx, store.MemoryFilter{Query: "mine"})
			b.is("memories", err, nil)
			b.same("number of entries", len(entries), 1)
			b.same("value", string(entries[0].Value), `"mine"`)
			clear(entries[0].Value)
		}
	}},
	{"is not done on a cancelled context", func(b *bench) {
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		b.is("memorize", b.memory().Memorize(ctx, []store.MemoryWrite{set("k", `1`, -1)}), context.Canceled)
		_, err := b.memory().Memories(ctx, store.MemoryFilter{})
		b.is("memories", err, context.Canceled)
		_, err = b.memory().Memories(ctx, store.MemoryFilter{Query: "needle"})
		b.is("search", err, context.Canceled)
		b.same("entries", b.recalled(store.MemoryFilter{}), []string{})
	}},
}

var recallTests = []test{
	{"gives whole entries", func(b *bench) {
		b.memorize(set("k", `{"a":[1,"猫"]}`, -1), set("k", `{"a":[2,"猫"]}`, -1))
		want, err := b.memory().Remembered(b.ctx, "n", "k")
		b.is("entry", err, nil)
		b.same("version", want.Version, int64(2))
		for _, f := range []store.MemoryFilter{{}, {Query: "猫"}, {Namespace: "n", Keys: "*", Query: "a 猫", Limit: 1}} {
			got, err := b.memory().Memories(b.ctx, f)
			b.is("memories", err, nil)
			b.same(fmt.Sprintf("memories %+v", f), got, []store.MemoryEntry{want})
		}
	}},
	{"chooses by namespace, key and limit", func(b *bench) {
		for _, key := range []string{"b", "a", "a.b", "a.c", "a.b.c", "", "a%", "a_", "a[b]", "a?", "a*b", "A.B", "ä", "猫.b"} {
			b.memorize(in("n", key, `1`))
		}
		b.memorize(in("m", "a.b", `1`), in("", "z", `1`), in("n.n", "a.b", `1`))
		n := func(keys ...string) []string {
			got := []string{}
			for _, key := range keys {
				got = append(got, "n/"+key)
			}
			return got
		}
		for _, one := range []struct {
			f    store.MemoryFilter
			want []string
		}{
			{store.MemoryFilter{Namespace: "n"}, n("", "A.B", "a", "a%", "a*b", "a.b", "a.b.c", "a.c", "a?", "a[b]", "a_", "b", "ä", "猫.b")},
			{store.MemoryFilter{Limit: 3}, []string{"/z", "m/a.b", "n/"}},
			{store.MemoryFilter{Keys: "a.b"}, []string{"m/a.b", "n/a.b", "n.n/a.b"}},
			{store.MemoryFilter{Keys: "a.b", Limit: 2}, []string{"m/a.b", "n/a.b"}},
			{store.MemoryFilter{Namespace: "n", Keys: "a.*"}, n("a.b", "a.b.c", "a.c")},
			{store.MemoryFilter{Namespace: "n", Keys: "a.*", Limit: 2}, n("a.b", "a.b.c")},
			{store.MemoryFilter{Namespace: "n", Keys: "*b"}, n("a*b", "a.b", "b", "猫.b")},
			{store.MemoryFilter{Namespace: "n", Keys: "*.b*"}, n("a.b", "a.b.c", "猫.b")},
			{store.MemoryFilter{Namespace: "n", Keys: "a*b*c"}, n("a.b.c")},
			{store.MemoryFilter{Namespace: "n", Keys: "a.b*b"}, n()},
			{store.MemoryFilter{Namespace: "n", Keys: "猫**"}, n("猫.b")},
			{store.MemoryFilter{Namespace: "n", Keys: "a%"}, n("a%")},
			{store.MemoryFilter{Namespace: "n", Keys: "a_"}, n("a_")},
			{store.MemoryFilter{Namespace: "n", Keys: "a?"}, n("a?")},
			{store.MemoryFilter{Namespace: "n", Keys: "a[b]"}, n("a[b]")},
			{store.MemoryFilter{Namespace: "n", Keys: "a[*"}, n("a[b]")},
			{store.MemoryFilter{Namespace: "nobody"}, n()},
			{store.MemoryFilter{Namespace: "n'; DROP TABLE memory; --"}, n()},
		} {
			b.same(fmt.Sprintf("memories %+v", one.f), b.recalled(one.f), one.want)
		}
	}},
	{"leaves values out", func(b *bench) {
		b.memorize(in("n", "a", `"needle"`), in("n", "a", `"needle pin"`), in("n", "b", `"pin"`), in("m", "a.b", `"pin needle"`), in("n", "gone", `1`))
		b.memorize(set("gone", "", -1))
		for _, f := range []store.MemoryFilter{{}, {Namespace: "n"}, {Keys: "a*"}, {Limit: 2}, {Query: "needle pin"},
			{Query: "pin", Namespace: "n", Keys: "*", Limit: 1}, {Query: "?!"}, {Namespace: "nobody"}} {
			want, err := b.memory().Memories(b.ctx, f)
			b.is("memories", err, nil)
			for i := range want {
				want[i].Value = nil
			}
			f.Bare = true
			got, err := b.memory().Memories(b.ctx, f)
			b.is("memories", err, nil)
			b.same(fmt.Sprintf("memories %+v", f), got, want)
		}
		got, err := b.memory().Memories(b.ctx, store.MemoryFilter{Query: "needle", Limit: 1})
		b.is("memories", err, nil)
		b.same("value", string(got[0].Value), `"pin needle"`)
	}},
	{"keeps the best of many", func(b *bench) {
		var writes []store.MemoryWrite
		for i := range 500 { // the best neither first nor last, and keys in no order
			value := `"needle"`
			if i%100 == 50 {
				value = `"needle pin"`
			}
			writes = append(writes, in("n", fmt.Sprintf("k%03d", i*7%500), value))
		}
		b.memorize(writes...)
		f := store.MemoryFilter{Query: "needle pin"}
		all := b.recalled(f)
		b.same("best hits", all[:6], []string{"n/k050", "n/k150", "n/k250", "n/k350", "n/k450", "n/k000"})
		for _, f.Limit = range []int{1, 3, 5, 7, 218, 219, 499, 500, 501, math.MaxInt} {
			b.same(fmt.Sprintf("memories %+v", f), b.recalled(f), all[:min(f.Limit, len(all))])
		}
	}},
	{"finds words", func(b *bench) {
		b.memorize(in("n", "preferences.color", `"dark BLUE, or red"`), in("n", "preferences.food", `{"likes":["Äpfel","Birnen"],"id":7}`),
			in("n", "颜色", `"我喜欢的颜色是蓝色"`), in("n", "кошка", `"Ёжик и КОТ"`), in("n", "order_A1001", `{"status":"paid","cents":4900}`),
			in("n", "emoji", `"👍 ok"`), in("n", "nihongo", `"コーヒーが好き"`), in("n", "count", `42`), in("m", "color", `"blue"`))
		for query, want := range map[string][]string{
			"blue":                        {"m/color", "n/preferences.color"},
			"BLUE red":                    {"n/preferences.color", "m/color"}, // two words before one
			"Where? In the dark!":         {"n/preferences.color"},
			"äpfel":                       {"n/preferences.food"},
			"ÄP":                          {"n/preferences.food"},
			"pfel, BIRNEN":                {"n/preferences.food"},
			"apfel":                       {}, // accents matter
			"颜色":                          {"n/颜色"},
			"喜":                           {"n/颜色"},
			"是蓝色":                         {"n/颜色"},
			"我的车是蓝色的吗？":                   {"n/颜色"}, // shares words, not the sentence
			"红灯":                          {},
			"ёЖ":                          {"n/кошка"},
			"кОшКа":                       {"n/кошка"},
			"a1001":                       {"n/order_A1001"},
			"order_A1001":                 {"n/order_A1001"},
			"4900":                        {"n/order_A1001"},
			"42":                          {"n/count"},
			"7":                           {"n/preferences.food"},
			"👍":                           {"n/emoji"},
			"コーヒー":                        {"n/nihongo"},
			" \t\n":                       {},
			`"`:                           {},
			`%`:                           {},
			`_`:                           {},
			`*`:                           {},
			`"*" -(^) {:} ''`:             {},
			`"blue`:                       {"m/color", "n/preferences.color"},
			`blue*`:                       {"m/color", "n/preferences.color"},
			`-blue`:                       {"m/color", "n/preferences.color"},
			`key:blue`:                    {"m/color", "n/preferences.color"},
			`NEAR(blue birnen, 3)`:        {"m/color", "n/preferences.color", "n/preferences.food"},
			`{key value}: "dark" + "xyz"`: {"n/preferences.color"},
			`blu_`:                        {"m/color", "n/preferences.color"},
			`dar%red`:                     {"n/preferences.color"},
			`xb%lack`:                     {},
			"\xffblue\x00red":             {"n/preferences.color", "m/color"},
			"'; DROP TABLE memory; --":    {},
		} {
			b.same(fmt.Sprintf("hits of %q", query), b.recalled(store.MemoryFilter{Query: query}), want)
		}
	}},
	{"narrows a search down", func(b *bench) {
		b.memorize(in("n", "a.x", `"needle"`), in("n", "a.y", `"needle pin"`),
			in("n", "b.x", `"needle pin thread"`), in("m", "a.x", `"needle pin"`))
		for _, one := range []struct {
			f    store.MemoryFilter
			want []string
		}{
			{store.MemoryFilter{Query: "needle pin thread"}, []string{"n/b.x", "m/a.x", "n/a.y", "n/a.x"}},
			{store.MemoryFilter{Query: "needle pin thread", Limit: 2}, []string{"n/b.x", "m/a.x"}},
			{store.MemoryFilter{Query: "needle needle NEEDLE pin", Namespace: "n"}, []string{"n/a.y", "n/b.x", "n/a.x"}},
			{store.MemoryFilter{Query: "pin", Keys: "a.*"}, []string{"m/a.x", "n/a.y"}},
			{store.MemoryFilter{Query: "pin", Namespace: "n", Keys: "*.y", Limit: 5}, []string{"n/a.y"}},
			{store.MemoryFilter{Query: "x", Keys: "a.*"}, []string{"m/a.x", "n/a.x"}},
			{store.MemoryFilter{Query: "pin", Namespace: "nobody"}, []string{}},
			{store.MemoryFilter{Query: "?!", Namespace: "n"}, []string{}},
		} {
			b.same(fmt.Sprintf("memories %+v", one.f), b.recalled(one.f), one.want)
		}
	}},
	{"follows every write", func(b *bench) {
		b.create("r")
		hits := func(query string, want ...string) {
			b.Helper()
			b.same("hits of "+query, b.recalled(store.MemoryFilter{Query: query}), append([]string{}, want...))
		}
		b.memorize(set("one", `"needle"`, -1), set("two", `"needle"`, -1))
		b.is("write", b.remember(set("one", `"thread"`, 1), set("three", `"needle"`, 0)), nil)
		hits("needle", "n/three", "n/two")
		hits("thread", "n/one")
		b.is("write", b.remember(set("one", "", 2), set("two", "", -1), set("two", `"thread"`, 0)), nil)
		hits("needle", "n/three")
		hits("thread", "n/two")
		c := next(b.run("r"), 1)
		c.ExpectSeq, c.Events[0].Seq = 7, 8
		c.Memory = []store.MemoryWrite{set("four", `"needle"`, -1), set("three", "", -1)}
		b.refused(c, store.ErrConflict)
		hits("needle", "n/three")
	}},
	{"takes any length of query", func(b *bench) {
		long := strings.Repeat("abcdefghij", 10_000)
		b.memorize(set("long", `"`+long+`"`, -1), set("short", `"`+long[:5000]+`"`, -1), set("words", `"w1 w99 w100"`, -1))
		b.same("hits of a long word", b.recalled(store.MemoryFilter{Query: long}), []string{"n/long"})
		var many []string
		for i := range 5000 {
			many = append(many, fmt.Sprint("w", i))
		}
		b.same("hits of many words", b.recalled(store.MemoryFilter{Query: strings.Join(many, " ")}), []string{"n/words"})
		for i := range store.MaxWords {
			many[i] = fmt.Sprint("v", i) // w100 stands behind them
		}
		b.same("hits of words beyond the bound", b.recalled(store.MemoryFilter{Query: strings.Join(many, " ")}), []string{})
	}},
	{"finds what a plain search finds", searchProperty},
	{"chooses the keys that a plain pattern chooses", keysProperty},
}

// searchWords are words of a query with the parts that are looked for.
var searchWords = []struct {
	text  string
	parts []string
}{
	{"a", []string{"a"}}, {"AB", []string{"ab"}}, {"abc", []string{"abc"}},
	{"bca", []string{"bca"}}, {"abcabcabc", []string{"abcabcabc"}},
	{"Ä", []string{"ä"}}, {"äÖ", []string{"äö"}}, {"ÄÖÜ", []string{"äöü"}}, {"ж", []string{"ж"}}, {"ЖЖж", []string{"жжж"}},
	{"猫", []string{"猫"}}, {"猫狗", []string{"猫狗"}}, {"狗猫狗", []string{"狗猫", "猫狗"}}, {"b猫c", []string{"b", "猫", "c"}},
	{"AND", []string{"and"}}, {"NOT", []string{"not"}}, {"NEAR", []string{"near"}}, {"1", []string{"1"}}, {"👍", []string{"👍"}},
}

// searchProperty compares searches with a count of the words in each entry, after writes upon writes.
func searchProperty(b *bench) {
	m := b.memory()
	fragments := []string{"a", "b", "c", "A", "B", "C", "ä", "Ö", "ü", "Ж", "ж", "猫", "狗", "1", "👍", " ",
		`\"`, "%", "_", "and", "Not", "near"}
	separators := []string{" ", `"`, "*", " -", "(", ")", ":", "^", "'", "+", "{", "}", "%", "_", "\x00", "\\", "。", "\n", ", "}
	namespace := 0
	rapid.Check(b.T, func(t *rapid.T) {
		namespace++
		space := fmt.Sprint(namespace) // a new one each time, since the store stays the same
		texts := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 8), func(s []string) string { return strings.Join(s, "") })
		have := make(map[string]string)
		for range rapid.IntRange(0, 3).Draw(t, "rounds") {
			var writes []store.MemoryWrite
			for range rapid.IntRange(0, 4).Draw(t, "writes") {
				w := in(space, rapid.SampledFrom([]string{"", "猫", "ab", "C.a"}).Draw(t, "key"), `"`+texts.Draw(t, "value")+`"`)
				have[w.Key] = string(w.Value)
				if rapid.IntRange(0, 3).Draw(t, "deletes") == 0 {
					w.Value = nil
					delete(have, w.Key)
				}
				writes = append(writes, w)
			}
			if err := m.Memorize(b.ctx, writes); err != nil {
				t.Fatal(err)
			}
		}
		var query strings.Builder
		parts := make(map[string]bool)
		for range rapid.IntRange(1, 6).Draw(t, "words") {
			word := rapid.SampledFrom(searchWords).Draw(t, "word")
			query.WriteString(rapid.SampledFrom(separators).Draw(t, "separator") + word.text)
			for _, part := range word.parts {
				parts[part] = true
			}
		}
		score := make(map[string]int)
		want := []string{}
		for key, value := range have {
			for part := range parts {
				if strings.Contains(strings.ToLower(key), part) || strings.Contains(strings.ToLower(value), part) {
					score[key]++
				}
			}
			if score[key] > 0 {
				want = append(want, key)
			}
		}
		slices.SortFunc(want, func(a, b string) int {
			if score[a] != score[b] {
				return score[b] - score[a]
			}
			return strings.Compare(a, b)
		})
		found, err := m.Memories(b.ctx, store.MemoryFilter{Namespace: space, Query: query.String()})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range found {
			got = append(got, e.Key)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("hits of %q in %q:\n got %q\nwant %q", query.String(), have, got, want)
		}
	})
}

// keysProperty compares patterns of keys with regular expressions.
func keysProperty(b *bench) {
	all := []string{"", "a", "ab", "aab", "abab", "a*b", "a.b", "a%b", "a_b", "a?", "a[b]", "a\\b", "b", "ba", "猫", "a猫b", "A"}
	for _, key := range all {
		b.memorize(in("n", key, `1`))
	}
	slices.Sort(all)
	rapid.Check(b.T, func(t *rapid.T) {
		pieces := []string{"a", "b", "*", "*", ".", "%", "_", "?", "[", "]", "\\", "猫"}
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 5).Draw(t, "pattern")
		var plain strings.Builder
		for _, part := range parts {
			if part == "*" {
				plain.WriteString(".*")
				continue
			}
			plain.WriteString(regexp.QuoteMeta(part))
		}
		whole := regexp.MustCompile("(?s)^" + plain.String() + "$")
		want := []string{}
		for _, key := range all {
			if whole.MatchString(key) {
				want = append(want, "n/"+key)
			}
		}
		f := store.MemoryFilter{Namespace: "n", Keys: strings.Join(parts, "")}
		if got := b.recalled(f); !slices.Equal(got, want) {
			t.Fatalf("keys of the pattern %q:\n got %q\nwant %q", f.Keys, got, want)
		}
	})
}

// cache is the store's ability to keep answers. The test is skipped where there is none.
func (b *bench) cache() store.Cache {
	b.Helper()
	c, ok := b.s.(store.Cache)
	if !ok {
		b.Skip("this driver keeps no answers")
	}
	return c
}

// cached checks what is kept under a key at n milliseconds; "" is nothing.
func (b *bench) cached(key string, n int64, want string) {
	b.Helper()
	data, err := b.cache().Cached(b.ctx, key, at(n))
	if want == "" {
		b.is(fmt.Sprintf("answer %s at %d", key, n), err, store.ErrNotFound)
		return
	}
	b.is(fmt.Sprintf("answer %s at %d", key, n), err, nil)
	b.same(fmt.Sprintf("answer %s at %d", key, n), string(data), want)
}

func (b *bench) putCached(key, data string, now, until int64) {
	b.Helper()
	b.is("put answer "+key, b.cache().PutCached(b.ctx, key, []byte(data), at(now), at(until)), nil)
}

var cacheTests = []test{
	{"keeps until the time is up", func(b *bench) {
		b.cached("k", 0, "")
		b.putCached("k", "one\x00\xff", 0, 10)
		b.putCached("K", "other", 0, 20)
		b.cached("k", 0, "one\x00\xff")
		b.cached("k", 9, "one\x00\xff")
		b.cached("k", 10, "")
		b.cached("k", 11, "")
		b.cached("K", 11, "other")
		b.cached("k", 5, "one\x00\xff") // reading drops nothing
	}},
	{"replaces", func(b *bench) {
		b.putCached("k", "one", 0, 100)
		b.putCached("k", "two", 1, 10)
		b.cached("k", 5, "two")
		b.cached("k", 10, "")
		b.putCached("k", "three", 20, 30)
		b.cached("k", 25, "three")
		b.putCached("k", "four", 25, 25) // is up at once, and the old answer is gone, too
		b.cached("k", 25, "")
		b.cached("k", 24, "")
	}},
	{"drops what is up", func(b *bench) {
		b.putCached("soon", "1", 0, 10)
		b.putCached("at once", "2", 0, 20)
		b.putCached("later", "3", 0, 21)
		b.putCached("new", "4", 20, 30)
		b.cached("soon", 5, "") // it would still be there if it had not been dropped
		b.cached("at once", 5, "")
		b.cached("later", 5, "3")
		b.cached("new", 5, "4")
	}},
	{"keeps large and empty answers", func(b *bench) {
		large := strings.Repeat("猫x", 200_000)
		b.putCached("large", large, 0, 10)
		b.cached("large", 5, large)
		b.is("put nothing", b.cache().PutCached(b.ctx, "empty", nil, at(0), at(10)), nil)
		data, err := b.cache().Cached(b.ctx, "empty", at(5))
		b.is("empty answer", err, nil)
		b.same("empty answer", data, []byte{})
	}},
	{"keeps and hands out no slice twice", func(b *bench) {
		data := []byte("mine")
		b.is("put", b.cache().PutCached(b.ctx, "k", data, at(0), at(10)), nil)
		clear(data)
		for range 2 {
			got, err := b.cache().Cached(b.ctx, "k", at(5))
			b.is("answer", err, nil)
			b.same("answer", string(got), "mine")
			clear(got)
		}
	}},
	{"is not done on a cancelled context", func(b *bench) {
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		b.is("put", b.cache().PutCached(ctx, "k", []byte("x"), at(0), at(10)), context.Canceled)
		_, err := b.cache().Cached(ctx, "k", at(5))
		b.is("answer", err, context.Canceled)
		b.cached("k", 5, "")
	}},
	{"is written by many", func(b *bench) {
		cache := b.cache()
		var got tally
		together(8, func(i int) {
			for round := range 10 {
				now := at(0).Add(time.Duration(round) * time.Millisecond)
				data := fmt.Appendf(nil, "answer %d", round)
				got.add(cache.PutCached(b.ctx, fmt.Sprint("k", round), data, now, now.Add(time.Hour)))
				kept, err := cache.Cached(b.ctx, fmt.Sprint("k", round), now)
				if err == nil && string(kept) != string(data) {
					err = fmt.Errorf("worker %d reads %q, not %q", i, kept, data)
				}
				got.add(err)
			}
		})
		b.same("calls", got.count, map[string]int{"ok": 160})
	}},
}

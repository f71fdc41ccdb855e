package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"flowctl/store"
)

// checkIndex has SQLite compare the index with every entry of the memory.
func checkIndex(w *conn) error {
	return w.script("INSERT INTO memory_text (memory_text, rank) VALUES ('integrity-check', 1)")
}

func indexInStep(t testing.TB, db *DB) {
	t.Helper()
	if err := db.write(t.Context(), checkIndex); err != nil {
		t.Errorf("the index is out of step with the memory: %v", err)
	}
}

func found(t testing.TB, db *DB, f store.MemoryFilter) []string {
	t.Helper()
	entries, err := db.Memories(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

func memorize(t testing.TB, db *DB, writes ...store.MemoryWrite) {
	t.Helper()
	if err := db.Memorize(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// In a group, one request's failure is rolled back to a savepoint, and that takes its part of the index along.
func TestIndexStaysInStepWhenANeighbourFails(t *testing.T) {
	db := fresh(t)
	memorize(t, db, store.MemoryWrite{Namespace: "n", Key: "old", Value: []byte(`"needle"`)})
	set := func(key, value string, expect int64) op {
		w := store.MemoryWrite{Namespace: "n", Key: key, Expect: &expect}
		if value != "" {
			w.Value = []byte(value)
		}
		return func(c *conn) error { return writeMemories(c, []store.MemoryWrite{w}, time.UnixMilli(1)) }
	}
	broken := errors.New("broken")
	results := queued(t, db,
		set("first", `"needle 1"`, 0),
		func(c *conn) error { return errors.Join(set("old", "", 1)(c), set("lost", `"needle"`, 0)(c), broken) },
		set("old", `"thread"`, 1),
		set("first", `"needle 2"`, 7), // a conflict
		set("last", `"needle"`, 0),
	)
	for i, failed := range []bool{false, true, false, true, false} {
		if (results[i] != nil) != failed {
			t.Errorf("request %d gave %v", i, results[i])
		}
	}
	indexInStep(t, db)
	if got := found(t, db, store.MemoryFilter{Query: "needle"}); !reflect.DeepEqual(got, []string{"first", "last"}) {
		t.Errorf("needle is found in %v", got)
	}
	if got := found(t, db, store.MemoryFilter{Query: "thread"}); !reflect.DeepEqual(got, []string{"old"}) {
		t.Errorf("thread is found in %v", got)
	}
}

// Whoever writes with the shell is found, too; and what REPLACE leaves behind in the index is no hit.
func TestIndexFollowsForeignWrites(t *testing.T) {
	db := fresh(t)
	script := func(text string) {
		t.Helper()
		if err := db.write(t.Context(), func(w *conn) error { return w.script(text) }); err != nil {
			t.Fatal(err)
		}
	}
	script(`INSERT INTO memory (namespace, key, value, version, updated_at) VALUES ('n', 'a', '"needle"', 1, 0), ('n', 'b', '"needle"', 1, 0);
		UPDATE memory SET value = '"thread"' WHERE key = 'b'; UPDATE memory SET key = 'needles' WHERE key = 'b'`)
	if err := db.writer.conn.script("VACUUM"); err != nil {
		t.Fatal(err)
	}
	indexInStep(t, db)
	if got := found(t, db, store.MemoryFilter{Query: "needle"}); !reflect.DeepEqual(got, []string{"a", "needles"}) {
		t.Errorf("needle is found in %v", got)
	}
	script(`REPLACE INTO memory (namespace, key, value, version, updated_at) VALUES ('n', 'a', '"pin cushion"', 1, 0)`)
	if got := found(t, db, store.MemoryFilter{Query: "needle"}); !reflect.DeepEqual(got, []string{"needles"}) {
		t.Errorf("needle is found in %v", got)
	}
	if got := found(t, db, store.MemoryFilter{Query: "cushion"}); !reflect.DeepEqual(got, []string{"a"}) {
		t.Errorf("cushion is found in %v", got)
	}
}

// hasCase says whether a Recall takes the letter, or another case of it, for one whose case does not matter.
func hasCase(r rune) bool {
	if unicode.SimpleFold(r) == r || !unicode.IsLetter(r) {
		return false
	}
	for other := unicode.SimpleFold(r); ; other = unicode.SimpleFold(other) {
		if w := store.NewRecall(store.MemoryFilter{Query: string(other)}).Words(); len(w) == 1 && w[0] != string(other) {
			return true
		}
		if other == r {
			return false
		}
	}
}

// The database offers a Recall only what its index or LIKE let through. That must not lose a hit, so both have to know at
// least the cases of letters that a Recall knows.
func TestNarrowingLosesNoLetter(t *testing.T) {
	for _, one := range []struct {
		name   string
		length int  // of the words
		end    rune // of the letters
		atOnce int  // words in a query, few enough that LIKE looks for them
	}{
		{"index", 3, unicode.MaxRune, store.MaxWords},
		{"LIKE", 1, 0x17f, mostLikes}, // more of them take long
	} {
		t.Run(one.name, func(t *testing.T) {
			db := fresh(t)
			var words []string
			var writes []store.MemoryWrite
			for r := rune(1); r <= one.end; r++ {
				if !hasCase(r) {
					continue
				}
				words = append(words, strings.Repeat(string(r), one.length))
				writes = append(writes, store.MemoryWrite{Key: fmt.Sprintf("%06X", r), Value: []byte(words[len(words)-1])})
			}
			memorize(t, db, writes...)
			if len(writes) < 200 {
				t.Fatalf("only %d letters have a case", len(writes))
			}
			for some := range slices.Chunk(words, one.atOnce) {
				f := store.MemoryFilter{Query: strings.Join(some, " ")}
				if condition, _ := holdsAny(store.NewRecall(f).Words()); condition == "" {
					t.Fatalf("nothing narrows the search for %q down", f.Query)
				}
				all := store.NewRecall(f)
				for _, w := range writes {
					all.Offer(store.MemoryEntry{Key: w.Key, Value: w.Value})
				}
				var want []string
				for _, e := range all.Entries() {
					want = append(want, e.Key)
				}
				if got := found(t, db, f); !slices.Equal(got, want) || len(got) < len(some) {
					t.Errorf("%q is found in %v, want %v", f.Query, got, want)
				}
			}
		})
	}
}

// allocated gives the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is not asked for costs little: values when only names are wanted, and hits that a limit leaves out.
func TestLargeValuesAreReadSparingly(t *testing.T) {
	const n, size = 300, 60_000
	db := fresh(t)
	value := []byte(`"needle ` + strings.Repeat("x", size) + `"`)
	var writes []store.MemoryWrite
	for i := range n {
		writes = append(writes, store.MemoryWrite{Namespace: "n", Key: fmt.Sprintf("k%03d", i), Value: value})
	}
	memorize(t, db, writes...)
	for _, one := range []struct {
		f    store.MemoryFilter
		hits int
		most uint64 // bytes
	}{
		{store.MemoryFilter{Bare: true}, n, size * n / 20},
		{store.MemoryFilter{Namespace: "n", Keys: "k*", Bare: true}, n, size * n / 20},
		{store.MemoryFilter{Query: "needle", Limit: 3}, 3, size * n * 3 / 2}, // the library makes each value once, to be looked at
	} {
		var got []string
		if bytes := allocated(func() { got = found(t, db, one.f) }); len(got) != one.hits || bytes > one.most {
			t.Errorf("memories %+v: %d hits, %d bytes allocated, want at most %d", one.f, len(got), bytes, one.most)
		}
	}
}

// A key that was deleted with the shell goes on, too; and what it left behind is not kept beside the key.
func TestVersionsGoOnAfterForeignDeletes(t *testing.T) {
	db := fresh(t)
	color := store.MemoryWrite{Namespace: "n", Key: "color", Value: []byte(`"red"`)}
	memorize(t, db, color, color, color)
	const gone = "SELECT namespace, key, version FROM memory_gone"
	for version := 4; version <= 5; version++ {
		if err := db.write(t.Context(), func(w *conn) error { return w.script("DELETE FROM memory WHERE key = 'color'") }); err != nil {
			t.Fatal(err)
		}
		if got := query(t, db, gone); !slices.Equal(got, []string{fmt.Sprint("n|color|", version-1)}) {
			t.Errorf("gone is %v", got)
		}
		memorize(t, db, color)
		e, err := db.Remembered(t.Context(), "n", "color")
		if err != nil || e.Version != int64(version) {
			t.Errorf("version %d is %d: %v", version, e.Version, err)
		}
		if got := query(t, db, gone); got != nil {
			t.Errorf("gone is %v although the key is there", got)
		}
	}
	indexInStep(t, db)
}

func TestMemoryOfVersion1IsFound(t *testing.T) {
	db := version1(t)
	indexInStep(t, db)
	for query, want := range map[string][]string{"blue": {"color"}, "lor": {"color"}, "bl": {"color"}, "red": nil} {
		if got := found(t, db, store.MemoryFilter{Query: query}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is found in %v, want %v", query, got, want)
		}
	}
	memorize(t, db, store.MemoryWrite{Namespace: "ann", Key: "color", Value: []byte(`"green"`)})
	indexInStep(t, db)
	if got := found(t, db, store.MemoryFilter{Query: "blue"}); got != nil {
		t.Errorf("blue is found in %v", got)
	}
	if got := found(t, db, store.MemoryFilter{Query: "green"}); !reflect.DeepEqual(got, []string{"color"}) {
		t.Errorf("green is found in %v", got)
	}
}

// memories fills a database with entries such as flows keep about customers: some dozen words, and a Chinese sentence.
func memories(t testing.TB, db *DB, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("red blue green likes favourite colour customer order refund exchange lamp table chair delivery address")
	han := []rune("我喜欢的颜色是蓝他们想要退款订单灯桌子椅地址电话邮件早上晚客户数据库")
	var writes []store.MemoryWrite
	for i := range n {
		var text strings.Builder
		for range 12 {
			text.WriteString(words[random.IntN(len(words))] + " ")
		}
		for range 20 {
			text.WriteRune(han[random.IntN(len(han))])
		}
		writes = append(writes, store.MemoryWrite{Namespace: "shop", Key: fmt.Sprintf("customer.%05d", i),
			Value: fmt.Appendf(nil, `{"text":%q}`, text.String())})
	}
	memorize(t, db, writes...)
}

// BenchmarkMemory reads and searches among 10,000 entries.
func BenchmarkMemory(b *testing.B) {
	db := fresh(b)
	memories(b, db, 10_000)
	for _, one := range []struct {
		name string
		f    store.MemoryFilter
	}{
		{"keys", store.MemoryFilter{Namespace: "shop", Keys: "customer.0123*"}},
		{"rare-word", store.MemoryFilter{Namespace: "shop", Query: "01234"}},
		{"two-common-words", store.MemoryFilter{Namespace: "shop", Query: "favourite chair", Limit: 3}},
		{"two-characters", store.MemoryFilter{Namespace: "shop", Query: "颜色", Limit: 3}},
		{"nothing", store.MemoryFilter{Query: "zebra 黑"}},
		{"sentence", store.MemoryFilter{Namespace: "shop", Query: "What was the colour that I liked, and is it in stock?", Limit: 3}},
		{"chinese-sentence", store.MemoryFilter{Namespace: "shop", Query: "我想知道我喜欢的颜色是什么", Limit: 3}},
	} {
		b.Run(one.name, func(b *testing.B) {
			hits := 0
			for b.Loop() {
				got, err := db.Memories(b.Context(), one.f)
				if err != nil {
					b.Fatal(err)
				}
				hits = len(got)
			}
			b.ReportMetric(float64(hits), "hits")
		})
	}
	b.Run("one-entry", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Remembered(b.Context(), "shop", "customer.01234"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCache reads one of 10,000 answers of 4 KiB.
func BenchmarkCache(b *testing.B) {
	db := open(b, b.TempDir()+"/flowctl.db", Options{Durability: Normal})
	answer := []byte(strings.Repeat("0123456789abcdef", 4096/16))
	now := time.UnixMilli(1)
	if err := db.write(b.Context(), func(w *conn) error {
		for i := range 10_000 {
			if _, err := w.exec("INSERT INTO cache (key, until, data) VALUES (?, ?, ?)",
				fmt.Sprint("sha256:", i), millis(now.Add(time.Hour)), answer); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Cached(b.Context(), "sha256:1234", now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			if err := db.PutCached(b.Context(), fmt.Sprint("sha256:new-", n), answer, now, now.Add(time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

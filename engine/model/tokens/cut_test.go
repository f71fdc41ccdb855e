package tokens

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// runes counts a token per character.
type runes struct{}

func (runes) Count(text string) int64 { return int64(utf8.RuneCountInString(text)) }

func TestWhatFitsIsNotCut(t *testing.T) {
	for _, text := range []string{"", "short", "订单"} {
		for _, limit := range []int64{int64(utf8.RuneCountInString(text)), 100} {
			if got, ok := Cut(runes{}, text, limit); got != text || !ok {
				t.Errorf("%q cut to %d is %q, %v", text, limit, got, ok)
			}
		}
	}
}

func TestCutKeepsTwoThirdsOfTheBeginning(t *testing.T) {
	text := strings.Repeat("b", 600) + strings.Repeat("e", 600)
	got, ok := Cut(runes{}, text, 101)
	want := strings.Repeat("b", 40) + "… [cut: 1,140 of 1,200 tokens left out] …" + strings.Repeat("e", 20)
	if got != want || !ok {
		t.Errorf("cut is %q, %v\nwant %q", got, ok, want)
	}
}

func TestCutThatIsTooSmallForTheMarker(t *testing.T) {
	text := strings.Repeat("b", 1200)
	mark := "… [cut: 1,200 of 1,200 tokens left out] …"
	for _, tc := range []struct {
		limit int64
		want  string
		ok    bool
	}{{-1, "", false}, {0, "", false}, {1, "", false}, {40, "", false}, {41, mark, true}, {42, mark, true}} {
		if got, ok := Cut(runes{}, text, tc.limit); ok != tc.ok || tc.limit < 42 && got != tc.want {
			t.Errorf("cut to %d is %q, %v, want %q, %v", tc.limit, got, ok, tc.want, tc.ok)
		}
	}
	if got, ok := Cut(runes{}, "", -1); got != "" || ok {
		t.Errorf("no text cut to -1 is %q, %v", got, ok)
	}
}

var markers = regexp.MustCompile(`… \[cut: ([0-9,]+) of ([0-9,]+) tokens left out\] …`)

func TestCutHoldsItsLimit(t *testing.T) {
	for _, c := range []Counter{runes{}, estimate{}, o200k} {
		t.Run(fmt.Sprintf("%T", c), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkCut(t, c) })
		})
	}
}

func checkCut(t *rapid.T, c Counter) {
	text := strings.Join(rapid.SliceOfN(anyText(), 1, 20).Draw(t, "texts"), "")
	valid := strings.ToValidUTF8(text, "\uFFFD")
	total := c.Count(valid)
	limit := rapid.Int64Range(0, total+5).Draw(t, "limit")
	got, ok := Cut(c, text, limit)
	bare := c.Count(marker(total, total))
	switch n := c.Count(got); {
	case ok != (total <= limit || bare <= limit):
		t.Fatalf("ok is %v for %d tokens, limit %d, marker %d", ok, total, limit, bare)
	case n > limit:
		t.Fatalf("%d tokens, limit %d", n, limit)
	case !utf8.ValidString(got):
		t.Fatalf("%q is no UTF-8", got)
	case !ok && got != "":
		t.Fatalf("failed with %q", got)
	case total <= limit && got != valid:
		t.Fatalf("a text that fits became %q", got)
	}
	if again, _ := Cut(c, text, limit); again != got {
		t.Fatalf("cut to %q, then to %q", got, again)
	}
	if !ok || total <= limit {
		return
	}
	at := markers.FindAllStringSubmatchIndex(got, -1)
	if len(at) == 0 {
		t.Fatalf("no marker in %q", got)
	}
	head, tail := got[:at[0][0]], got[at[0][1]:]
	if !strings.HasPrefix(valid, head) || !strings.HasSuffix(valid, tail) || len(head)+len(tail) >= len(valid) {
		t.Fatalf("%q is no beginning and end of %q", got, valid)
	}
	if left := number(t, got[at[0][2]:at[0][3]]); left != max(total-c.Count(head)-c.Count(tail), 1) {
		t.Fatalf("the marker says %d of %d: %q and %q are kept", left, total, head, tail)
	}
	if said := number(t, got[at[0][4]:at[0][5]]); said != total {
		t.Fatalf("the marker says %d in all, want %d", said, total)
	}
}

func number(t *rapid.T, grouped string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(grouped, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Cuts use what they may: of plain texts, all but about 1 %, and what a token more or less makes.
func TestCutUsesItsLimit(t *testing.T) {
	for _, s := range samples() {
		text := strings.Repeat(s.text+"\n", 1+20_000/len(s.text))
		for _, c := range []Counter{estimate{}, o200k} {
			for _, limit := range []int64{100, 2000} {
				got, ok := Cut(c, text, limit)
				if n := c.Count(got); !ok || n > limit || n < limit*95/100-8 {
					t.Errorf("%s by %T, cut to %d, has %d tokens", s.name, c, limit, n)
				}
			}
		}
	}
}

// watched counts what it is asked to count.
type watched struct {
	Counter
	calls, bytes *atomic.Int64
}

func (w watched) Count(text string) int64 {
	w.calls.Add(1)
	w.bytes.Add(int64(len(text)))
	return w.Counter.Count(text)
}

// A cut reads a text that is far too long about once, whatever its parts are like.
func TestCutIsNotSlow(t *testing.T) {
	const size = 8 << 20
	even := strings.Repeat("All work and no play makes Jack a dull boy. ", size/44)
	heavy := strings.Repeat("字", size/6) + strings.Repeat(" ", size/2)
	light := strings.Repeat(" ", size/2) + strings.Repeat("字", size/6)
	for name, text := range map[string]string{"even": even, "heavy beginning": heavy, "heavy end": light} {
		w := watched{Counter: estimate{}, calls: new(atomic.Int64), bytes: new(atomic.Int64)}
		got, ok := Cut(w, text, 6000)
		if n := (estimate{}).Count(got); !ok || n > 6000 || n < 5900 {
			t.Errorf("%s: %d tokens, %v", name, n, ok)
		}
		if calls, bytes := w.calls.Load(), w.bytes.Load(); calls > 200 || bytes > 4*size {
			t.Errorf("%s: %d counts of %d bytes in all", name, calls, bytes)
		}
	}
}

// A counter whose count of a whole is more than that of its parts still gets what fits.
type spiteful struct{}

func (spiteful) Count(text string) int64 {
	n := int64(utf8.RuneCountInString(text))
	return n + n*n/500
}

func TestCutFitsAlsoWhereCountsDoNotAddUp(t *testing.T) {
	text := strings.Repeat("b", 5000)
	for limit := int64(0); limit < 400; limit++ {
		got, ok := Cut(spiteful{}, text, limit)
		if n := (spiteful{}).Count(got); n > limit || ok != (limit >= (spiteful{}).Count(marker(55000, 55000))) {
			t.Fatalf("cut to %d has %d, %v", limit, n, ok)
		}
	}
}

// What people see as one character is kept whole or left out whole.
func TestCutDoesNotSplitCharacters(t *testing.T) {
	for _, cluster := range []string{"字", "é", "e\u0301", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏴\U000E0067\U000E0062\U000E007F", "\r\n", "नि"} {
		text := strings.Repeat(cluster, 60)
		for limit := int64(41); limit < 100; limit++ {
			got, ok := Cut(runes{}, text, limit)
			if !ok {
				continue
			}
			for _, part := range markers.Split(got, -1) {
				if part != strings.Repeat(cluster, len(part)/len(cluster)) {
					t.Errorf("%q cut to %d keeps %q", cluster, limit, part)
				}
			}
		}
	}
}

// A character with marks without end is cut like any text, at a rune.
func TestCutOfOneEndlessCharacter(t *testing.T) {
	text := "e" + strings.Repeat("\u0301", 5000)
	got, ok := Cut(runes{}, text, 1000)
	if n := utf8.RuneCountInString(got); !ok || n > 1000 || n < 900 || !utf8.ValidString(got) {
		t.Errorf("cut has %d runes, %v", n, ok)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func BenchmarkCut(b *testing.B) {
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 5000)
	for name, c := range map[string]Counter{"o200k": o200k, "estimate": estimate{}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Cut(c, text, 6000)
			}
		})
	}
}

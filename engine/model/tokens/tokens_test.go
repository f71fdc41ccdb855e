package tokens

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestModelsHaveTheirEncoding(t *testing.T) {
	for _, tc := range []struct {
		models string
		want   Counter
	}{
		{"gpt-4o gpt-4o-mini gpt-4o-2024-08-06 gpt-4.1 gpt-4.1-nano gpt-4.5-preview chatgpt-4o-latest", o200k},
		{"gpt-5 gpt-5-mini gpt-5.4 gpt-5-chat-latest gpt-6 gpt-6.2-sol codex-mini-latest", o200k},
		{"o1 o1-mini o1-preview o3 o3-mini-2025-01-31 o4-mini", o200k},
		{"gpt-oss:20b gpt-oss-120b openai.gpt-oss-120b-1:0 openai/gpt-oss-20b:free", o200k},
		{"openai/gpt-4o openrouter/openai/gpt-4o:extended ft:gpt-4o-mini-2024-07-18:shop::a1 GPT-4o", o200k},
		{"gpt-4 gpt-4-0613 gpt-4-turbo gpt-4-32k azure/gpt-4 ft:gpt-4-0613:shop", cl100k},
		{"gpt-3.5-turbo gpt-35-turbo gpt-3.5-turbo-16k text-embedding-3-small text-embedding-ada-002", cl100k},
		{"claude-sonnet-4-5 gemini-2.5-pro llama3.1:8b deepseek-chat qwen3:8b mistral-large-latest", estimate{}},
		{"o10 o1x gpt-40 gpt-50 my-gpt-4o gpt o open-o1/ gpt-4o/", estimate{}},
	} {
		for _, id := range strings.Fields(tc.models) {
			if got := For(id); got != tc.want {
				t.Errorf("%s is counted by %T, want %T", id, got, tc.want)
			}
		}
	}
	for _, id := range []string{"", " ", "/", ".", "ft:", "\xff"} {
		if got := For(id); got != (estimate{}) {
			t.Errorf("%q is counted by %T, want the estimate", id, got)
		}
	}
}

// The counts are those that OpenAI publishes for its encodings.
func TestEncodingsCountAsPublished(t *testing.T) {
	for _, tc := range []struct {
		text          string
		o200k, cl100k int64
	}{
		{"", 0, 0},
		{"tiktoken is great!", 6, 6},
		{"2 + 2 = 4", 7, 7},
		{"antidisestablishmentarianism", 6, 6},
		{"お誕生日おめでとう", 8, 9},
	} {
		if got := o200k.Count(tc.text); got != tc.o200k {
			t.Errorf("o200k counts %d for %q, want %d", got, tc.text, tc.o200k)
		}
		if got := cl100k.Count(tc.text); got != tc.cl100k {
			t.Errorf("cl100k counts %d for %q, want %d", got, tc.text, tc.cl100k)
		}
	}
}

func TestNamesOfSpecialTokensAreText(t *testing.T) {
	if got := o200k.Count("<|endoftext|>"); got < 3 {
		t.Errorf("counted %d: a special token was read out of a text", got)
	}
}

const loadingVariable = "FLOWCTL_TEST_TOKENS_LOADING"

// TestNothingIsLoadedBeforeTheFirstCount looks at a process of its own, where no other test has counted.
func TestNothingIsLoadedBeforeTheFirstCount(t *testing.T) {
	if os.Getenv(loadingVariable) != "" {
		var start, named, counted runtime.MemStats
		runtime.ReadMemStats(&start)
		c := For("gpt-4o")
		For("claude-sonnet-4-5").Count("an estimate needs no encoding")
		runtime.ReadMemStats(&named)
		c.Count("now it is needed")
		runtime.ReadMemStats(&counted)
		fmt.Printf("allocated %d %d %d\n", start.TotalAlloc, named.TotalAlloc-start.TotalAlloc, counted.TotalAlloc-named.TotalAlloc)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsLoadedBeforeTheFirstCount$")
	cmd.Env = append(os.Environ(), loadingVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var start, naming, counting uint64
	if _, err := fmt.Sscanf(string(out), "allocated %d %d %d\n", &start, &naming, &counting); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	// The vocabulary of o200k takes more than 6 MB.
	const mega = 1 << 20
	if start > 2*mega || naming > mega/4 {
		t.Errorf("%d bytes are allocated at start and %d by For: something is loaded before it is needed", start, naming)
	}
	if counting < 4*mega {
		t.Errorf("the first count allocates %d bytes: it loads no vocabulary, so this test sees nothing", counting)
	}
}

func TestBrokenTextCountsAsReplacementCharacters(t *testing.T) {
	for _, c := range []Counter{o200k, cl100k, estimate{}} {
		for _, text := range []string{"\xff", "a\xffb", "\xe4\xb8", "good \xc3\x28 bad", strings.Repeat("\x80", 50)} {
			if got, want := c.Count(text), c.Count(string([]rune(text))); got != want || got < 1 {
				t.Errorf("%T counts %d for %q, want %d as for the text with replacement characters", c, got, text, want)
			}
		}
	}
}

// Whatever a text holds, it has at most a token per byte, and a count that does not depend on who else is counting.
func TestCountsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		for _, c := range []Counter{o200k, estimate{}} {
			n := c.Count(text)
			if limit := int64(len(string([]rune(text)))); n < 0 || n > limit || n == 0 && text != "" {
				t.Fatalf("%T counts %d for %d bytes", c, n, limit)
			}
			if again := c.Count(text); again != n {
				t.Fatalf("%T counts %d, then %d", c, n, again)
			}
		}
	})
}

// anyText gives texts of all kinds, among them emoji of several parts, accents of their own and broken UTF-8.
func anyText() *rapid.Generator[string] {
	parts := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"word ", "订单号码", "ありがとう", "안녕하세요", "\r\n", "\n\n\t\t", "   ", "{\"a\":1}", "deadbeef0123", "--------"}),
		rapid.SampledFrom([]string{"👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "❤️", "e\u0301", "🏴\U000E0067\U000E0062\U000E007F", "\u200d"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
	)
	return rapid.Map(rapid.SliceOfN(parts, 0, 30), func(s []string) string { return strings.Join(s, "") })
}

func TestEncodingIsSharedByGoroutines(t *testing.T) {
	text := strings.Repeat("The quick brown fox 订单 jumps. ", 50)
	want := o200k.Count(text)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if got := For("gpt-4o").Count(text); got != want {
					t.Errorf("counted %d, want %d", got, want)
				}
			}
		})
	}
	all.Wait()
}

// Time grows with the length of a text, not with its square. The texts are those that patterns and merging may be slow at;
// a quadratic one takes a minute or more.
func TestNoKindOfTextIsSlow(t *testing.T) {
	const size, tooLong = 1 << 16, 10 * time.Second
	for _, unit := range []string{"a", "A", "aB", "1", "字", "-", "/", "'s", "\u0301", "\xff", " ", "\t", "\n", "\r\n", "-\n", "é", "éB",
		" \n", "\u3000\n", strings.Repeat(" ", gapBytes-1) + "\n", strings.Repeat(" \n", gapBytes/2) + "x"} {
		for _, tc := range []struct {
			counter Counter
			size    int
		}{{o200k, size}, {cl100k, size}, {estimate{}, 8 * size}} {
			text := strings.Repeat(unit, tc.size/len(unit))
			begin := time.Now()
			n := tc.counter.Count(text)
			if took := time.Since(begin); took > tooLong {
				t.Errorf("%T takes %v for %d bytes of %q", tc.counter, took, len(text), unit)
			}
			if limit := int64(len([]rune(text)) * 3); n <= 0 || n > limit {
				t.Errorf("%T counts %d for %d bytes of %q", tc.counter, n, len(text), unit)
			}
		}
	}
}

func TestLongGapsAreFound(t *testing.T) {
	long := strings.Repeat(" \n", gapBytes)
	wide := strings.Repeat("\u3000", gapBytes) + "\r"
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"a b\n\nc", ""},
		{"a" + strings.Repeat(" ", 2*gapBytes) + "b", ""}, // no line end in it
		{"a" + long + "b", long},
		{long, long},
		{"a\n  b" + wide + "字" + long, wide},
		{"a \n" + strings.Repeat("x", 2*gapBytes), ""},
	} {
		from, to := gap(tc.text)
		if got := tc.text[from:to]; got != tc.want {
			t.Errorf("found %q in %q, want %q", got, tc.text, tc.want)
		}
		if tc.want == "" && from != len(tc.text) {
			t.Errorf("the text before no gap in %q ends at %d", tc.text, from)
		}
	}
	if got, want := o200k.Count("a"+long+"b"), 2+(estimate{}).Count(long); got != want {
		t.Errorf("counted %d for a gap between letters, want %d", got, want)
	}
}

// The rest of a huge text that is estimated begins at a character's edge.
func TestHugeTextIsSplitBetweenCharacters(t *testing.T) {
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("字", exactBytes/3+100)
		begin, rest := split(text, exactBytes)
		if begin+rest != text || len(begin) > exactBytes || len(begin) <= exactBytes-utf8.UTFMax || !utf8.ValidString(begin) || !utf8.ValidString(rest) {
			t.Errorf("shifted by %d: split after %d bytes", shift, len(begin))
		}
	}
	text := strings.Repeat("字", 2*exactBytes)
	begin, rest := split(text, exactBytes)
	if got, want := o200k.Count(text), o200k.Count(begin)+int64(len(rest)/3); got != want {
		t.Errorf("counted %d for a huge text, want %d", got, want)
	}
}

func BenchmarkCount(b *testing.B) {
	for _, s := range samples() {
		for _, c := range []struct {
			name    string
			counter Counter
		}{{"o200k", o200k}, {"estimate", estimate{}}} {
			b.Run(s.name+"/"+c.name, func(b *testing.B) {
				c.counter.Count("loaded")
				b.SetBytes(int64(len(s.text)))
				for b.Loop() {
					c.counter.Count(s.text)
				}
			})
		}
	}
}

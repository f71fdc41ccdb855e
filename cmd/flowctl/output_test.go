package main

import (
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, keep, want string }{
		{"plain 中文 é", "", "plain 中文 é"},
		{"\x1b]0;title\x07", "", `\x1b]0;title\x07`},
		{"a\r\nb\tc", "\n\t", "a\\x0d\nb\tc"},
		{"\u009b31m", "", `\x9b31m`},
		{"abc\u202edef\u2066\u061c", "", `abc\u202edef\u2066\u061c`},
		{"bad \xff byte", "", `bad \xff byte`},
		{"kept \ufffd", "", "kept \ufffd"},
		{"line\u2028break\x7f", "", `line\u2028break\x7f`},
	} {
		if got := escape(c.text, c.keep); got != c.want {
			t.Errorf("escape(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff中")
	f.Fuzz(func(t *testing.T, text string) {
		got := escape(text, "\n\t")
		if i := strings.IndexFunc(strings.NewReplacer("\n", "", "\t", "", "\ufffd", "").Replace(got), hostile); i >= 0 {
			t.Errorf("escape(%q) = %q still has something hostile", text, got)
		}
		if again := escape(got, "\n\t"); again != got {
			t.Errorf("escaping %q twice gives %q", got, again)
		}
	})
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"exactly ten", 11, "exactly ten"},
		{"a little too long", 8, "a littl…"},
		{"中文字符", 8, "中文字符"},
		{"中文字符", 7, "中文字…"},
		{"中文字符", 6, "中文…"},
	} {
		got := shorten(c.text, c.columns)
		if got != c.want || lipgloss.Width(got) > c.columns {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"plain-1.2_x": "plain-1.2_x",
		"":            "''",
		"two words":   "'two words'",
		"it's":        `'it'\''s'`,
		"$(rm)":       "'$(rm)'",
		"中":           "'中'",
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Duration{
		"just now": 0, "30s ago": 30 * time.Second, "59m ago": time.Hour - time.Second, "47h ago": 47*time.Hour + time.Minute,
		"2d ago": 48 * time.Hour, "in 5m": -5 * time.Minute,
	} {
		if got := ago(now, now.Add(-at)); got != want {
			t.Errorf("%s before now is %q, want %q", at, got, want)
		}
	}
	for text, want := range map[string]string{
		"90m": "2026-01-10T10:30:00.000Z", "7d": "2026-01-03T12:00:00.000Z", "2026-01-02": "2026-01-02T00:00:00.000Z",
		"2026-01-02T15:04:05+01:00": "2026-01-02T14:04:05.000Z", "2026-01-02T15:04": "2026-01-02T15:04:00.000Z",
	} {
		got, err := parseSince(now, text)
		if err != nil || stamp(got) != want {
			t.Errorf("parseSince(%q) = %s, %v, want %s", text, stamp(got), err, want)
		}
	}
	for _, text := range []string{"", "-1h", "x", "1.5d", "99999999d", "yesterday"} {
		if _, err := parseSince(now, text); err == nil {
			t.Errorf("parseSince(%q) gave no error", text)
		}
	}
}

// The mark below a finding's line stands under its column, whatever stands before it.
func TestExcerpt(t *testing.T) {
	for _, c := range []struct {
		line string
		col  int
		want string
	}{
		{"  hander: x", 3, "    |   ^"},
		{"\tx: y", 2, "    | \t^"},
		{"中文: y", 5, "    |       ^"},
		{"short", 99, "    |      ^"},
	} {
		got := excerpt([]string{c.line}, 1, c.col)
		if len(got) != 2 || got[1] != c.want {
			t.Errorf("excerpt(%q, %d) = %q, want %q", c.line, c.col, got, c.want)
		}
	}
	long := strings.Repeat("a", 1000) + "!" + strings.Repeat("b", 40000)
	for _, col := range []int{1, 500, 1001, 41001, 50000} {
		got := excerpt([]string{long}, 1, col)
		mark := strings.IndexRune(got[1], '^') - strings.Index(got[1], "| ")
		shown := []rune(got[0][strings.Index(got[0], "| "):])
		if len(shown) > 180 || len(shown) < 80 {
			t.Errorf("excerpt of a long line at %d shows %d signs", col, len(shown))
		}
		if col == 1001 && shown[mark] != '!' {
			t.Errorf("the mark stands below %q", shown[mark])
		}
	}
	if got := excerpt([]string{"x"}, 2, 1); got != nil {
		t.Errorf("a line that is not there shows %q", got)
	}
}

package secret

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However a text is cut into pieces, what is shown of it is what would be shown of the whole.
func TestStreamIsTheText(t *testing.T) {
	secrets := map[string]string{"A": "sk-test-AAAA1111", "B": "sk-test-AAAA1111-and-more", "C": "test-AAB"}
	r, err := New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"sk-test-AAAA1111", "sk-test-AAAA", "sk-test-AAAA1111-and", "-and-more", "test-AAB", "test-AA", "s", "sk", " ", "中", "hello",
		base64.StdEncoding.EncodeToString([]byte(secrets["A"])), base64.StdEncoding.EncodeToString([]byte("x" + secrets["B"]))}
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "parts"), "")
		s := r.Stream()
		var got strings.Builder
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, min(9, len(rest))).Draw(t, "piece")
			got.WriteString(s.Add(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.End())
		if want := r.Text(whole); got.String() != want {
			t.Fatalf("of %q was shown %q, want %q", whole, got.String(), want)
		}
	})
}

// Only what may become a secret is held back.
func TestStreamShowsAtOnce(t *testing.T) {
	r, err := New(map[string]string{"KEY": "sk-test-AAAA1111"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Stream()
	for _, step := range []struct{ piece, want string }{
		{"hello ", "hello "}, {"sk", ""}, {"-test", ""}, {"ing", "sk-testing"}, {"sk-test-AAAA", ""}, {"1111.", "[secret:KEY]."}, {"sk-", ""},
	} {
		if got := s.Add(step.piece); got != step.want {
			t.Errorf("%q shows %q, want %q", step.piece, got, step.want)
		}
	}
	if got := s.End() + s.End(); got != "sk-" {
		t.Errorf("the end shows %q", got)
	}
	if got := (*Redactor)(nil).Stream().Add("as it is"); got != "as it is" {
		t.Errorf("without secrets it shows %q", got)
	}
}

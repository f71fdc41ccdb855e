package secret

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// Whoever cuts a text cannot know that he cuts a secret: what is left of it before the mark goes too.
func TestCutSecrets(t *testing.T) {
	const key = "sk-SECRETKEY-9f8e7d6c5b4a"
	r, err := New(map[string]string{"KEY": key})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{key, base64.StdEncoding.EncodeToString([]byte(key))} {
		for n := shortestPart; n < len(form); n++ {
			for _, text := range []string{"bbb" + form[:n] + "…", "x " + form[:n] + "… [cut: 3 of 9 bytes]", form[:n] + "… more … " + form[:n] + "…"} {
				got := r.Text(text)
				if strings.Contains(got, form[:n]) {
					t.Fatalf("%q became %q", text, got)
				}
				if again := r.Text(got); again != got {
					t.Fatalf("%q became %q, then %q", text, got, again)
				}
				if clean := string(r.JSON(fmt.Appendf(nil, "{\"error\": %q}", text))); strings.Contains(clean, form[:n]) {
					t.Fatalf("JSON of %q became %s", text, clean)
				}
			}
		}
	}
	for n := shortestPart; n < len(key); n++ {
		tail := key[len(key)-n:]
		if got := r.Text("before …" + tail + " after"); strings.Contains(got, tail) {
			t.Fatalf("the end of %d bytes stays: %q", n, got)
		}
	}
	// Secrets that begin alike give the same mark every time.
	two, err := New(map[string]string{"KEY_A": "sk-proj-AAAAAAAA", "KEY_B": "sk-proj-BBBBBBBB"})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got := two.Text("x sk-proj-…"); got != "x [secret:KEY_A]…" {
			t.Fatalf("got %q", got)
		}
	}
	for _, text := range []string{"see sk-SE…", "nothing …", "…", "wait… sk-S"} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

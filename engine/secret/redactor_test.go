package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"flowctl/flows/machine"

	"pgregory.net/rapid"
)

const key = "sk-test-AAAA1111"

func redactor(t *testing.T, values map[string]string) *Redactor {
	t.Helper()
	r, err := New(values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTextFindsEveryForm(t *testing.T) {
	const odd = `p"w/ü&+ <ß>=1` // everything that some encoding escapes
	r := redactor(t, map[string]string{"LLM_API_KEY": key, "PASSWORD": odd})
	basic := base64.StdEncoding.EncodeToString
	tests := []struct{ name, in, want string }{
		{"as it is", "401: bad key " + key + ".", "401: bad key [secret:LLM_API_KEY]."},
		{"twice", key + key, "[secret:LLM_API_KEY][secret:LLM_API_KEY]"},
		{"base64", "got " + basic([]byte(key)), "got [secret:LLM_API_KEY]"},
		{"base64 without padding", "got " + base64.RawURLEncoding.EncodeToString([]byte(key)) + ".", "got [secret:LLM_API_KEY]."},
		{"query", "?k=" + url.QueryEscape(odd) + "&x=1", "?k=[secret:PASSWORD]&x=1"},
		{"path", "/" + url.PathEscape(odd) + "/x", "/[secret:PASSWORD]/x"},
		{"lower-case escapes", "?k=" + strings.ToLower("P%22W%2F%C3%BC%26%2B") + "+%3c%c3%9f%3e%3d1", "?k=[secret:PASSWORD]"},
		{"every sign escaped", "p%22w%2F%C3%BC%26%2B%20%3C%C3%9F%3E%3D1", "[secret:PASSWORD]"},
		{"JSON", `{"a":"p\"w/ü&+ <ß>=1"}`, `{"a":"[secret:PASSWORD]"}`},
		{"JSON for HTML", `"p\"w/ü\u0026+ \u003cß\u003e=1"`, `"[secret:PASSWORD]"`},
		{"JSON in ASCII", `"p\"w/\u00fc&+ <\u00df>=1"`, `"[secret:PASSWORD]"`},
		{"JSON with escaped slashes", `"p\"w\/ü&+ <ß>=1"`, `"[secret:PASSWORD]"`},
		{"nothing", "an innocent sk-test text", "an innocent sk-test text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := r.Text(test.in); got != test.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", test.in, got, test.want)
			}
		})
	}
}

// A Basic authorization header holds user:password in base64, so the password may begin at any of three places.
func TestTextFindsBase64InsideBase64(t *testing.T) {
	r := redactor(t, map[string]string{"K": key})
	for before := range 7 {
		for after := range 7 {
			whole := strings.Repeat("u", before) + key + strings.Repeat("z", after)
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				got := r.Text("Basic " + enc.EncodeToString([]byte(whole)))
				if !strings.Contains(got, "[secret:K]") {
					t.Fatalf("%d before, %d after: %s", before, after, got)
				}
			}
		}
	}
}

func TestLongerSecretWins(t *testing.T) {
	r := redactor(t, map[string]string{"A": "password1", "B": "password1-and-more"})
	if got := r.Text("x password1-and-more y"); got != "x [secret:B] y" {
		t.Errorf("got %q", got)
	}
}

func TestEqualValuesTakeTheFirstName(t *testing.T) {
	r := redactor(t, map[string]string{"OPENAI_API_KEY": key, "LLM_API_KEY": key})
	if got := r.Text(key); got != "[secret:LLM_API_KEY]" {
		t.Errorf("got %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"TOKEN", "hunter2", "fewer than 8"},
		{"TOKEN", "秘密の鍵です", "fewer than 8"}, // 18 bytes, 6 characters
		{"TOKEN", "", "empty"},
		{"TOKEN", key + "\n", "line break"},
		{"TOKEN", key + "\r\n", "line break"},
		{"TOKEN", "secret:TOK", "looks like the mark"},
		{"TOKEN", "[secret]", "looks like the mark"},
		{"MY-TOKEN", key, "cannot be the name"},
	}
	for _, test := range tests {
		_, err := New(map[string]string{test.name: test.value})
		if err == nil {
			t.Errorf("%q was taken", test.value)
			continue
		}
		if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.name) {
			t.Errorf("error %q does not name %s and say %q", err, test.name, test.want)
		}
		if value := strings.TrimSpace(test.value); test.want != "looks like the mark" && value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("error %q prints the value", err)
		}
	}
}

func TestNewReportsAllProblems(t *testing.T) {
	_, err := New(map[string]string{"A": "short", "B": key + "\n", "C": key})
	if err == nil || !strings.Contains(err.Error(), " A ") || !strings.Contains(err.Error(), " B ") || strings.Contains(err.Error(), " C ") {
		t.Errorf("got %v", err)
	}
}

func TestNilAndEmptyRedactor(t *testing.T) {
	for _, r := range []*Redactor{nil, redactor(t, nil)} {
		v := machine.Values{"a": key}
		if r.Text(key) != key || r.Value(v).(machine.Values)["a"] != key || string(r.JSON([]byte(`"x"`))) != `"x"` {
			t.Error("a redactor without secrets changed something")
		}
	}
}

func TestValueIsDeepAndLeavesItsArgument(t *testing.T) {
	r := redactor(t, map[string]string{"K": key, "PIN": "4929123456789012"})
	in := machine.Values{
		"plain": "x", "n": int64(7), "f": 1.5, "none": nil, "yes": true,
		"list":         []machine.Value{"a", "has " + key, machine.Values{"deep": key}, "z"},
		key:            int64(1),
		"card":         int64(4929123456789012),
		"not the card": int64(49291234567890),
	}
	before := machine.CloneValue(in)
	got := r.Value(in)
	want := machine.Values{
		"plain": "x", "n": int64(7), "f": 1.5, "none": nil, "yes": true,
		"list":         []machine.Value{"a", "has [secret:K]", machine.Values{"deep": "[secret:K]"}, "z"},
		"[secret:K]":   int64(1),
		"card":         "[secret:PIN]",
		"not the card": int64(49291234567890),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if !reflect.DeepEqual(in, before) {
		t.Error("the argument was changed")
	}
}

func TestValueKeepsEntriesWhoseKeysBecomeEqual(t *testing.T) {
	r := redactor(t, map[string]string{"K": key})
	in := machine.Values{key: "a", base64.StdEncoding.EncodeToString([]byte(key)): "b", "[secret:K]": "c"}
	got := r.Value(in).(machine.Values)
	want := machine.Values{"[secret:K]": "c", "[secret:K] (2)": "b", "[secret:K] (3)": "a"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestJSON(t *testing.T) {
	r := redactor(t, map[string]string{"K": key, "PIN": "12345678"})
	tests := []struct{ name, in, want string }{
		{"string", `{"error": {"message": "bad key ` + key + `"}}`, `{"error":{"message":"bad key [secret:K]"}}`},
		{"escapes that hide it", `{"a":"\u0073k-test-\u0041AAA1111"}`, `{"a":"[secret:K]"}`},
		{"number", `{"pin":12345678}`, `{"pin":"[secret:PIN]"}`},
		{"number in another notation", `{"pin":1.2345678e7}`, `{"pin":"[secret:PIN]"}`},
		{"clean document keeps its layout", "{ \"a\" : 1.50 }", "{ \"a\" : 1.50 }"},
		{"not JSON", "<html>" + key, "<html>[secret:K]"},
		{"empty", "", ""},
	}
	for _, test := range tests {
		if got := string(r.JSON([]byte(test.in))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// Secrets that are completed by another one's mark do not survive, and redacting comes to an end.
func TestSecretsThatTouchMarks(t *testing.T) {
	r := redactor(t, map[string]string{"A": "aaaaaaa[secret", "B": "bbbbbbbb", "C": ":B]ccccccc", "D": "D][secret:D"})
	for _, text := range []string{
		"aaaaaaabbbbbbbb", "bbbbbbbbccccccc", "D][secret:D", "D][secret:D][secret:D][secret:D",
		"D][secret:" + strings.Repeat("D][secret:D", 20),
	} {
		got := r.Text(text)
		for _, value := range []string{"aaaaaaa[secret", "bbbbbbbb", ":B]ccccccc", "D][secret:D"} {
			if strings.Contains(got, value) {
				t.Errorf("Text(%q) = %q holds %q", text, got, value)
			}
		}
		if again := r.Text(got); again != got {
			t.Errorf("Text(%q) changes again: %q", got, again)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := redactor(t, map[string]string{"K": key})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				text := fmt.Sprint(i, n, " ")
				if got := r.Text(text + key); got != text+"[secret:K]" {
					t.Errorf("got %q", got)
				}
			}
		})
	}
	wg.Wait()
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(MinLength, 30, -1).Draw(t, "value")
		r, err := New(map[string]string{"NAME": value})
		if err != nil {
			t.Skip("refused")
		}
		var b strings.Builder
		all := forms(value)
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			b.WriteString(rapid.String().Draw(t, "text"))
			b.WriteString(rapid.SampledFrom(append(all, "")).Draw(t, "form"))
		}
		text := b.String()
		got := r.Text(text)
		present := false
		for _, form := range all {
			if strings.Contains(got, form) {
				t.Fatalf("the form %q of %q survives in %q", form, value, got)
			}
			present = present || strings.Contains(text, form)
		}
		if !present && got != text {
			t.Fatalf("text without the secret was changed: %q to %q", text, got)
		}
		if again := r.Text(got); again != got {
			t.Fatalf("%q changes again to %q", got, again)
		}
	})
}

func FuzzRedactor(f *testing.F) {
	f.Add(key, "before ", " after")
	f.Add("\xff\xfe binary \x00", "", "")
	f.Add("aaaaaaa[secret", "[secret:NAME]", ":NAME]")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		r, err := New(map[string]string{"NAME": value})
		if err != nil {
			return
		}
		document, err := json.Marshal(map[string]string{before: value + after, value: before})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			before + value + after, string(document), string(r.JSON(document)), url.QueryEscape(before + value + after),
			base64.StdEncoding.EncodeToString([]byte(before + value + after)),
		} {
			got := r.Text(text)
			for _, form := range forms(value) {
				if strings.Contains(got, form) {
					t.Fatalf("the form %q survives in %q", form, got)
				}
			}
			if again := r.Text(got); again != got {
				t.Fatalf("%q changes again to %q", got, again)
			}
		}
	})
}

func BenchmarkTextWithoutSecrets(b *testing.B) {
	r, err := New(map[string]string{"K": key, "L": "another-secret-value"})
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 2000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if r.Text(text) != text {
			b.Fatal("changed")
		}
	}
}

func Example() {
	r, err := New(map[string]string{"LLM_API_KEY": "sk-test-AAAA1111"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Text("401 Unauthorized: incorrect API key provided: sk-test-AAAA1111"))
	fmt.Println(r.Text("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me:sk-test-AAAA1111"))))
	_, err = New(map[string]string{"PIN": "1234"})
	fmt.Println(err)
	// Output:
	// 401 Unauthorized: incorrect API key provided: [secret:LLM_API_KEY]
	// Authorization: Basic bWU6[secret:LLM_API_KEY]
	// the value of PIN has fewer than 8 characters, too few to be kept out of texts: use a longer one
}

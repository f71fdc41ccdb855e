package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model"
)

func TestObject(t *testing.T) {
	const fence = "```"
	for _, test := range []struct{ name, text, want string }{
		{"bare", ` {"outcome":"confirm"} `, `{"outcome":"confirm"}`},
		{"kept as written", `{ "n": 9007199254740993,"b" :[1,{}] }`, `{ "n": 9007199254740993,"b" :[1,{}] }`},
		{"draft in the reasoning", `<think>maybe {"outcome":"cancel"}</think>{"outcome":"confirm"}`, `{"outcome":"confirm"}`},
		{"reasoning without end", `<think>I wonder {"outcome":"confirm"}`, `{"outcome":"confirm"}`},
		{"reasoning without start", "maybe {\"outcome\":\"cancel\"}\n</think>\n{\"outcome\":\"confirm\"}", `{"outcome":"confirm"}`},
		{"broken draft in reasoning without start", `maybe {"outcome": cancel </think>{"outcome":"confirm"}`, `{"outcome":"confirm"}`},
		{"two drafts in reasoning without start", `{"a":1} or {"a":2}</think>{"a":3}`, `{"a":3}`},
		{"reasoning in reasoning", `<think>a <think>b</think> {"a":1}</think>{"a":2}`, `{"a":2}`},
		{"mark talked about in the reasoning", `<think>no <think> here</think>{"a":2}`, `{"a":2}`},
		{"other marks, any case", `<Thinking>{"a":1}</THINKING>[THINK]{"a":1}[/THINK]{"a":2}`, `{"a":2}`},
		{"reasoning behind", `{"a":2}<think>was it {"a":1}?</think>`, `{"a":2}`},
		{"fence", fence + "json\n{\"a\":1}\n" + fence, `{"a":1}`},
		{"fence without end", fence + "json\n{\"a\":1}", `{"a":1}`},
		{"backticks in a string", fence + "json\n{\"code\":\"" + fence + "go\\nx := 1\\n" + fence + "\"}\n" + fence,
			"{\"code\":\"" + fence + "go\\nx := 1\\n" + fence + "\"}"},
		{"reasoning in a string", `{"note":"keep <think>x</think>"}`, `{"note":"keep <think>x</think>"}`},
		{"end of reasoning in a string", `<think>hm</think>{"note":"</think>"}`, `{"note":"</think>"}`},
		{"braces in a string", `{"note":"}{ [{"}`, `{"note":"}{ [{"}`},
		{"quotes in a string", `so: {"note":"a \"} b"} done`, `{"note":"a \"} b"}`},
		{"prose with a brace behind the fence", fence + "json\n{\"a\":1}\n" + fence + "\nThat closes it: }", `{"a":1}`},
		{"names in braces", `Hello {name}, {}`, `{}`},
		{"footnote", `As [1] says: {"a":1}`, `{"a":1}`},
		{"the same twice", `{"a":1,"b":2} again: {"b":2, "a":1.0}`, `{"a":1,"b":2}`},
		{"byte order mark", "\ufeff{\"a\":1}", `{"a":1}`},
		{"empty", `{}`, `{}`},
		{"nested", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`},
		{"not UTF-8", "{\"a\":\"\xff\"}", "{\"a\":\"\xff\"}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := model.Object(test.text)
			if err != nil || string(got) != test.want {
				t.Errorf("Object(%q)\n gave %s, %v\n want %s", test.text, got, err, test.want)
			}
		})
	}
}

// What is not clear is asked again, never guessed.
func TestObjectRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", " \n", "empty"},
		{"prose", "I would confirm.", "no JSON object"},
		{"reasoning only", `<think>so {"a":1}</think>`, "no JSON object"},
		{"reasoning behind closes the answer", `{"a":1}</think>`, "no JSON object"},
		{"two objects", `{"a":1} {"a":2}`, "two different"},
		{"draft and answer in reasoning without end", `<think>{"a":1} no, {"a":2}`, "two different"},
		{"draft behind the answer", "```json\n{\"a\":1}\n```\nor {\"a\":2}", "two different"},
		{"cut", `{"a":{"b":1}`, "ends too early"},
		{"cut in a string", `{"a":"x`, "ends too early"},
		{"cut at once", `{`, "ends too early"},
		{"broken, with a whole one inside", `{"a": oops, "b": {"a":1}}`, "broken"},
		{"broken, closed in a string", `{"a": "}" oops {"b":1}}`, "broken"},
		{"broken, then a whole one", `{"a":...} {"a":1}`, "broken"},
		{"names without quotes", `{a: {"a":1}}`, "other braces"},
		{"single quotes", `{'a': {"a":1}}`, "other braces"},
		{"comment", "{\"a\":1, // one\n\"b\":2}", "broken"},
		{"list", `[{"a":1}]`, "list"},
		{"list of two", `[ {"a":1}, {"a":1} ]`, "list"},
		{"list alone", `[1,2]`, "no JSON object"},
		{"text", `"{\"a\":1}"`, "no JSON object"},
		{"the same name twice", `{"a":1,"b":[{"c":1,"c":2}]}`, `"c" twice`},
		{"true", `true`, "no JSON object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := model.Object(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Object(%q)\n gave %s, %v\n want an error with %q", test.text, got, err, test.want)
			}
		})
	}
}

// Made-up answers must not take time that grows with the square of their length.
func TestObjectIsQuick(t *testing.T) {
	for _, part := range []string{"<think>", "</think>", "{", "[", "[{", `{"a":`, `[{"a":1},`, `{"a":1}`, "{ ", "<", "[think]", "<think></think>"} {
		start := time.Now()
		_, _ = model.Object(strings.Repeat(part, 1<<20/len(part)))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("1 MiB of %q took %v", part, took)
		}
	}
}

func TestSplitReasoning(t *testing.T) {
	for _, test := range []struct{ name, text, reasoning, answer string }{
		{"none", " Hello. ", "", "Hello."},
		{"block", "<think>\nhm\n</think>\n\nHello.", "hm", "Hello."},
		{"two blocks", "<think>a</think><think>b</think>Hello.", "a\n\nb", "Hello."},
		{"empty block", "<think>\n</think>Hello.", "", "Hello."},
		{"without end", "<think>hm, hello", "hm, hello", ""},
		{"without start", "hm\n</think>\nHello.", "hm", "Hello."},
		{"an end that is talked about", "Close it with </think> please.", "", "Close it with </think> please."},
		{"a block further on", "Write <think>x</think>.", "", "Write <think>x</think>."},
		{"in brackets", "[THINK]a > b[/THINK]Hello.", "a > b", "Hello."},
		{"empty", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if r, a := model.SplitReasoning(test.text); r != test.reasoning || a != test.answer {
				t.Errorf("SplitReasoning(%q) gave %q and %q, want %q and %q", test.text, r, a, test.reasoning, test.answer)
			}
		})
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, "<think>{\"a\":1}</think>```json\n{\"b\":\"```\"}\n```", `{"a":{"b":1}`, `[{"a":1}]`, `{x} {"a":1}</think>`, `{"a":1,"a":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, a := model.SplitReasoning(text)
		if len(r)+len(a) > len(text) {
			t.Errorf("split made %q of %q", r+a, text)
		}
		got, err := model.Object(text)
		if err != nil {
			return
		}
		if !json.Valid(got) || got[0] != '{' || !strings.Contains(text, string(got)) {
			t.Fatalf("Object(%q) gave %q, which is no object of it", text, got)
		}
		// An object alone is read as it is, and reasoning before it and prose behind it change nothing.
		for _, around := range []string{string(got), "<think>x {\"draft\":1}</think>" + string(got), "```json\n" + string(got) + "\n```\nThat is all."} {
			if again, err := model.Object(around); err != nil || string(again) != string(got) {
				t.Fatalf("Object(%q) gave %q, %v", around, again, err)
			}
		}
		if _, err := model.Object(string(got) + ` {"other answer": "` + strings.Repeat("x", len(text)) + `"}`); err == nil {
			t.Fatalf("two objects passed behind %q", got)
		}
	})
}

// Reasoning that is never closed may be all that stands before the answer; an object in the midst of it is a thought.
func TestObjectBehindReasoningThatIsNotClosed(t *testing.T) {
	for text, want := range map[string]string{
		`<think>hm {"a": 1}`:                             `{"a": 1}`,
		"<think>hm\n```json\n{\"a\": 1}\n```\n":          `{"a": 1}`,
		`<think>maybe {"a": 1} no wait, better not. `:    "",
		`<think>maybe {"a": 1}</think>{"a": 2} is it.`:   `{"a": 2}`,
		`<think>first</think>{"a": 2} so I say it.`:      `{"a": 2}`,
		`{"a": 1} and now <think>I go on and on without`: "",
	} {
		got, err := model.Object(text)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

package script_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model"
	"flowctl/engine/model/script"
)

func parse(t *testing.T, source string) *script.Script {
	t.Helper()
	s, err := script.Parse("s.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// told asks for an answer and gives it in one line.
func told(s *script.Script, state string, visit, turn, attempt int64) string {
	resp, err := s.Generate(context.Background(), model.Request{Origin: model.Origin{State: state, Visit: visit, Turn: turn, Attempt: attempt}})
	if err != nil {
		return "error: " + err.Error()
	}
	out := resp.Message.Text
	for _, c := range resp.Message.Calls {
		out += fmt.Sprintf("[%s %s %s]", c.ID, c.Name, c.Args)
	}
	return out
}

const work = `
answers:
  - {state: understand, answer: {intent: refund, n: 9007199254740993, <b: [1.50, null, true, "x<"]}}
  - state: work
    text: I look first.
    calls: [{tool: lookup, args: {id: A1}}, {tool: lookup, args: '{"id":'}, {tool: now}]
  - {state: work, error: rate}
  - {state: work, error: {class: server, status: 503, message: out of order, retry_after: 2s}}
  - {state: work, text: Sent.}
  - {state: work, turn: 7, text: Seven.}
  - {state: work, text: Eight.}
  - {state: work, visit: 2, text: Again.}
  - {state: work, visit: 2, answer: [done]}
`

func TestAnswers(t *testing.T) {
	s := parse(t, work)
	for _, test := range []struct {
		state                string
		visit, turn, attempt int64
		want                 string
	}{
		{"understand", 1, 1, 1, `{"intent":"refund","n":9007199254740993,"<b":[1.50,null,true,"x<"]}`},
		{"understand", 3, 1, 1, `{"intent":"refund","n":9007199254740993,"<b":[1.50,null,true,"x<"]}`},
		{"work", 1, 1, 1, `I look first.[call_1 lookup {"id":"A1"}][call_2 lookup {"id":][call_3 now ]`},
		{"work", 1, 1, 2, `I look first.[call_1 lookup {"id":"A1"}][call_2 lookup {"id":][call_3 now ]`},
		{"work", 1, 2, 0, "error: s.yaml:7:5: the script gives an error of class rate"},
		{"work", 1, 2, 2, "error: s.yaml:8:5: out of order"},
		{"work", 1, 2, 3, "Sent."},
		{"work", 1, 2, 9, "Sent."},
		{"work", 3, 7, 1, "Seven."},
		{"work", 3, 8, 1, "Eight."},
		{"work", 2, 1, 1, "Again."},
		{"work", 2, 2, 1, `["done"]`},
	} {
		// Twice, since an answer is not used up.
		for range 2 {
			if got := told(s, test.state, test.visit, test.turn, test.attempt); got != test.want {
				t.Errorf("%s, visit %d, turn %d, attempt %d: %s\nwant %s", test.state, test.visit, test.turn, test.attempt, got, test.want)
			}
		}
	}
}

func TestMiss(t *testing.T) {
	s := parse(t, work)
	for _, test := range []struct {
		state       string
		visit, turn int64
		want        string
	}{
		{"work", 1, 3, "the script s.yaml has no answer for state work, visit 1, turn 3; for this state it has any visit, turn 1 (line 4), any visit, turn 2 (line 7)"},
		{"work", 2, 7, "visit 2, turn 7; for this state it has"}, // visit 2 has answers of its own
		{"reply", 1, 1, "state reply, visit 1, turn 1; it has answers for understand, work"},
	} {
		_, err := s.Generate(t.Context(), model.Request{Origin: model.Origin{State: test.state, Visit: test.visit, Turn: test.turn}})
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Script || e.Passing() || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if got := told(parse(t, "answers: []"), "a", 1, 1, 1); !strings.Contains(got, "no answers at all") {
		t.Error(got)
	}
}

func TestFailure(t *testing.T) {
	_, err := parse(t, work).Generate(t.Context(), model.Request{Origin: model.Origin{State: "work", Visit: 1, Turn: 2, Attempt: 2}})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Server || e.Status != 503 || e.RetryAfter != 2*time.Second {
		t.Errorf("the error is %+v", e)
	}
}

// Under Retry, a scripted outage passes.
func TestOutagePasses(t *testing.T) {
	r := &model.Retry{Model: parse(t, work), Clock: model.Clock{Sleep: func(context.Context, time.Duration) error { return nil }}}
	var streamed string
	resp, err := r.Generate(t.Context(), model.Request{Origin: model.Origin{State: "work", Visit: 1, Turn: 2}, Stream: func(s string) { streamed += s }})
	if err != nil || resp.Message.Text != "Sent." || streamed != "Sent." {
		t.Errorf("gave %+v, %v, streamed %q", resp, err, streamed)
	}
}

func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := parse(t, work).Generate(ctx, model.Request{Origin: model.Origin{State: "understand", Visit: 1, Turn: 1}}); err != why {
		t.Errorf("gave %v", err)
	}
}

func TestLeftovers(t *testing.T) {
	s := parse(t, work)
	asked := []model.Origin{
		{Run: "r", State: "understand", Visit: 1, Turn: 1, Attempt: 1}, {State: "work", Visit: 1, Turn: 1},
		{State: "work", Visit: 1, Turn: 2, Attempt: 2}, {State: "work", Visit: 2, Turn: 1, Attempt: 4}, {State: "other", Visit: 1, Turn: 1},
	}
	want := []string{
		"s.yaml:9:5: nobody asked for this answer: state work, any visit, turn 2",
		"s.yaml:10:5: nobody asked for this answer: state work, any visit, turn 7",
		"s.yaml:11:5: nobody asked for this answer: state work, any visit, turn 8",
		"s.yaml:13:5: nobody asked for this answer: state work, visit 2, turn 2",
	}
	if got := s.Leftovers(asked); !reflect.DeepEqual(got, want) {
		t.Errorf("left are\n%s", strings.Join(got, "\n"))
	}
	all := append(asked, model.Origin{State: "work", Visit: 1, Turn: 2}, model.Origin{State: "work", Visit: 1, Turn: 7},
		model.Origin{State: "work", Visit: 1, Turn: 8}, model.Origin{State: "work", Visit: 2, Turn: 2})
	if got := s.Leftovers(all); got != nil {
		t.Errorf("left are %v", got)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ name, source, want string }{
		{"empty", "", "s.yaml:1:1: the script is empty; it starts with answers:"},
		{"comment", "# nothing\n", "s.yaml:1:1: the script is empty; it starts with answers:"},
		{"no YAML", "answers: [\n", "s.yaml:1:1: this is no YAML: did not find expected node content"},
		{"tab", "answers:\n\t- x", "s.yaml:2:1: this is no YAML: found character that cannot start any token"},
		{"list", "- a", "s.yaml:1:1: the script must be a mapping"},
		{"no answers", "{}", "s.yaml:1:1: the script needs answers, a list"},
		{"no list", "answers: x", "s.yaml:1:10: answers must be a list"},
		{"null", "answers: ~", "s.yaml:1:10: answers must be a list"},
		{"second document", "answers: []\n---\nanswers: []", "s.yaml:2:1: a second document starts here (---); a script is one"},
		{"unknown key", "answer: []", "s.yaml:1:1: the script has no key \"answer\"; it has answers\ns.yaml:1:1: the script needs answers, a list"},
		{"all at once, sorted", "answers:\n- {text: a, turns: 2}\n- {state: a}\n- 7",
			"s.yaml:2:3: an answer needs state, the name of the state that asks\n" +
				"s.yaml:2:13: an answer has no key \"turns\"; it has state, visit, turn, text, calls, answer, error\n" +
				"s.yaml:3:3: an answer needs one of text, calls (also with text), answer, error\n" +
				"s.yaml:4:3: an answer must be a mapping"},
		{"twice", "answers: [{state: a, text: b, text: c}]", "s.yaml:1:31: an answer gives text twice"},
		{"two kinds", "answers: [{state: a, text: b, answer: {}}]", "s.yaml:1:11: an answer needs one of text, calls (also with text), answer, error"},
		{"numbers", "answers: [{state: a, text: b, visit: 0, turn: 010}]",
			"s.yaml:1:38: visit must be a whole number from 1\ns.yaml:1:47: turn must be a whole number from 1"},
		{"text", "answers: [{state: a, text: 5}]", "s.yaml:1:28: text must be a text; put it in quotes"},
		{"empty text", "answers: [{state: a, text: ''}]", "s.yaml:1:28: text must not be empty"},
		{"alias", "answers: [{state: &s a, text: b}, {state: *s, text: c}]", "s.yaml:1:43: a script must not use aliases: write the value out"},
		{"cycle", "answers: [{state: a, answer: &x [*x]}]", "s.yaml:1:34: a script must not use aliases: write the value out"},
		{"number that JSON has not", "answers: [{state: a, answer: [010, .inf, 1_0, 2026-01-02]}]",
			"s.yaml:1:31: 010 is no value of JSON; put it in quotes if it is a text\n" +
				"s.yaml:1:36: .inf is no value of JSON; put it in quotes if it is a text\n" +
				"s.yaml:1:42: 1_0 is no value of JSON; put it in quotes if it is a text"},
		{"keys", "answers: [{state: a, answer: {~: 1, b: 2, b: 3}}]", "s.yaml:1:31: a key must be a text; put it in quotes\ns.yaml:1:43: b stands here twice"},
		{"calls", "answers: [{state: a, calls: []}, {state: a, calls: [{args: {}}, x]}]",
			"s.yaml:1:29: calls must be a list of {tool, args}\ns.yaml:1:53: a call needs tool, the name of the tool\ns.yaml:1:65: a call must be a mapping"},
		{"class", "answers: [{state: a, error: slow}]", "s.yaml:1:29: the class of an error must be one of authentication, quota, rate, bad_request, server, network, blocked, malformed, script"},
		{"error", "answers: [{state: a, error: {retry_after: 2, message: m}}]",
			"s.yaml:1:29: an error needs class, one of authentication, quota, rate, bad_request, server, network, blocked, malformed, script\n" +
				"s.yaml:1:43: retry_after must be a duration, such as 2s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := script.Parse("s.yaml", []byte(test.source))
			if err == nil || err.Error() != test.want || s != nil {
				t.Errorf("%q gave %v\nwant %s", test.source, err, test.want)
			}
		})
	}
}

// A program can find the places of problems too.
func TestProblemIsFound(t *testing.T) {
	_, err := script.Parse("s.yaml", []byte("answers: 1"))
	var p *script.Problem
	if !errors.As(err, &p) || p.Line != 1 || p.Col != 10 {
		t.Errorf("gave %+v", p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(work))
	f.Add([]byte("answers: [{state: a, answer: &x [*x]}]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		s, err := script.Parse("s", source)
		if (s == nil) == (err == nil) {
			t.Errorf("gave %v, %v", s, err)
		}
	})
}

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// questioning is a rig whose run asks q and keeps the answer in got.
func questioning(t *testing.T, q engine.Question) (r *rig, got *engine.Answer) {
	t.Helper()
	r = newRig(t, newFlow().state("start", "answered", "end").state("end"))
	got = &engine.Answer{}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		ans, err := step.Ask(q)
		*got = ans
		return "answered", err
	})
	return r, got
}

// replying is a reply to a question and what the handler gets, or what the error says.
type replying struct {
	name  string
	q     engine.Question
	reply engine.Reply
	want  engine.Answer // By is the person
	bad   string
}

func replies() []replying {
	yes, no := true, false
	kind := func(k history.QuestionKind, schema string, choices ...history.Choice) engine.Question {
		q := engine.Question{Kind: k, Text: "?", Choices: choices}
		if schema != "" {
			q.Schema = mustSchema(schema)
		}
		return q
	}
	confirm, free := kind(history.KindConfirm, ""), kind(history.KindAsk, "")
	number := kind(history.KindAsk, `{"type":"integer","minimum":1}`)
	form := kind(history.KindAsk, `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`)
	flag, colour := kind(history.KindAsk, `{"type":"boolean"}`), kind(history.KindAsk, `{"type":"string","enum":["red","blue"]}`)
	day := kind(history.KindAsk, `{"type":"string","format":"date"}`)
	order := kind(history.KindAsk, `{"type":"string","pattern":"^A[0-9]{4}$","description":"The order number, such as A1001"}`)
	list := kind(history.KindAsk, `{"type":"array","items":{"type":"string"}}`)
	choice := kind(history.KindAsk, "", history.Choice{Name: "red", Label: "Fiery red"}, history.Choice{Name: "blue", Label: "2"},
		history.Choice{Name: "deep", Label: "The Deep One"},
		history.Choice{Name: "other", Label: "Another", Schema: machine.Values{"type": "integer"}})
	return []replying{
		{"yes", confirm, engine.Reply{Yes: &yes}, engine.Answer{Value: true, Text: "yes"}, ""},
		{"no with a reason", confirm, engine.Reply{Yes: &no, Text: "too dear"}, engine.Answer{Value: false, Text: "too dear"}, ""},
		{"no", confirm, engine.Reply{Yes: &no}, engine.Answer{Value: false, Text: "no"}, ""},
		{"yes in words", confirm, engine.Reply{Text: "Yes, please."}, engine.Answer{Value: true, Text: "Yes, please."}, ""},
		{"yes with more", confirm, engine.Reply{Text: "Yes, do it for A1001"}, engine.Answer{}, "neither yes nor no"},
		{"yes with a reservation", confirm, engine.Reply{Text: "yes, but only 2"}, engine.Answer{}, "neither yes nor no"},
		{"no with a reservation", confirm, engine.Reply{Text: "no, only 2"}, engine.Answer{Value: false, Text: "no, only 2"}, ""},
		{"no in words", confirm, engine.Reply{Text: "no"}, engine.Answer{Value: false, Text: "no"}, ""},
		{"true", confirm, engine.Reply{HasValue: true, Value: true}, engine.Answer{Value: true, Text: "yes"}, ""},
		{"word as JSON", confirm, engine.Reply{HasValue: true, Value: "yes"}, engine.Answer{Value: true, Text: "yes"}, ""},
		{"neither", confirm, engine.Reply{Text: "perhaps"}, engine.Answer{}, `"perhaps" is neither yes nor no; answer yes, or no; what should change may stand behind a no`},
		{"both", confirm, engine.Reply{Text: "yes. no."}, engine.Answer{}, "neither yes nor no"},
		{"a number is neither", confirm, engine.Reply{HasValue: true, Value: 7}, engine.Answer{}, `"7" is neither yes nor no`},
		{"nothing is neither", confirm, engine.Reply{}, engine.Answer{}, "neither yes nor no"},
		{"yes with a value", confirm, engine.Reply{Yes: &yes, Text: "x"}, engine.Answer{}, "a yes takes no value"},
		{"verdict", confirm, engine.Reply{Verdict: history.Done}, engine.Answer{}, "--done"},

		{"text", free, engine.Reply{Text: " as it is "}, engine.Answer{Value: " as it is ", Text: " as it is "}, ""},
		{"empty text", free, engine.Reply{}, engine.Answer{Value: ""}, ""},
		{"number for text", free, engine.Reply{HasValue: true, Value: 5}, engine.Answer{Value: "5", Text: "5"}, ""},
		{"yes to a question", free, engine.Reply{Yes: &yes}, engine.Answer{}, "does not ask for yes or no"},
		{"no JSON", free, engine.Reply{HasValue: true, Value: make(chan int)}, engine.Answer{}, "cannot be stored"},

		{"number", number, engine.Reply{Text: "9007199254740993"}, engine.Answer{Value: int64(9007199254740993), Text: "9007199254740993"}, ""},
		{"too small", number, engine.Reply{Text: "0"}, engine.Answer{}, `"0" will not do; it takes at least 1`},
		{"number as a word", number, engine.Reply{Text: "five"}, engine.Answer{Value: int64(5), Text: "five"}, ""},
		{"no number", number, engine.Reply{Text: "many"}, engine.Answer{}, `"many" will not do; it takes a whole number`},
		{"no number alone", number, engine.Reply{Text: "4 pieces"}, engine.Answer{}, `"4 pieces" will not do`},
		{"empty for a number", number, engine.Reply{}, engine.Answer{}, "an empty answer will not do; it takes a whole number"},

		{"yes for a value", flag, engine.Reply{Text: "Yes, please."}, engine.Answer{Value: true, Text: "Yes, please."}, ""},
		{"no for a value", flag, engine.Reply{Text: "Nope"}, engine.Answer{Value: false, Text: "Nope"}, ""},
		{"true for a value", flag, engine.Reply{Text: "TRUE"}, engine.Answer{Value: true, Text: "TRUE"}, ""},
		{"word as JSON for a value", flag, engine.Reply{HasValue: true, Value: "no"}, engine.Answer{Value: false, Text: "false"}, ""},
		{"neither for a value", flag, engine.Reply{Text: "maybe"}, engine.Answer{}, `"maybe" will not do; it takes yes or no`},
		{"word of an enum", colour, engine.Reply{Text: "RED."}, engine.Answer{Value: "red", Text: "RED."}, ""},
		{"no word of an enum", colour, engine.Reply{Text: "green"}, engine.Answer{}, `"green" will not do; it takes one of: red, blue`},
		{"date", day, engine.Reply{Text: "on 2026年5月1日"}, engine.Answer{Value: "2026-05-01", Text: "on 2026年5月1日"}, ""},
		{"no date", day, engine.Reply{Text: "tomorrow"}, engine.Answer{}, `"tomorrow" will not do; it takes a date such as 2026-01-31`},
		{"pattern", order, engine.Reply{Text: "it is a1001"}, engine.Answer{Value: "A1001", Text: "it is a1001"}, ""},
		{"no such pattern", order, engine.Reply{Text: "B7"}, engine.Answer{}, `"B7" will not do; wanted: The order number, such as A1001`},
		{"list", list, engine.Reply{Text: "ham, cheese"}, engine.Answer{Value: []machine.Value{"ham", "cheese"}, Text: "ham, cheese"}, ""},
		{"list as JSON", list, engine.Reply{Text: `["a, b"]`}, engine.Answer{Value: []machine.Value{"a, b"}, Text: `["a, b"]`}, ""},

		{"form", form, engine.Reply{HasValue: true, Value: machine.Values{"name": "Ann", "age": "7"}},
			engine.Answer{Value: machine.Values{"name": "Ann", "age": int64(7)}, Text: `{"age":7,"name":"Ann"}`}, ""},
		{"form as text", form, engine.Reply{Text: `{"name":"Ann"}`}, engine.Answer{Value: machine.Values{"name": "Ann"}, Text: `{"name":"Ann"}`}, ""},
		{"incomplete form", form, engine.Reply{HasValue: true, Value: machine.Values{"age": 7}}, engine.Answer{}, "name"},

		{"choice by name", choice, engine.Reply{Text: " RED "}, engine.Answer{Choice: "red", Text: "Fiery red"}, ""},
		{"choice by label", choice, engine.Reply{Text: "fiery Red"}, engine.Answer{Choice: "red", Text: "Fiery red"}, ""},
		{"choice by label as a sentence", choice, engine.Reply{Text: "the deep  one."}, engine.Answer{Choice: "deep", Text: "The Deep One"}, ""},
		{"choice by number", choice, engine.Reply{Text: "4."}, engine.Answer{Choice: "other", Text: "Another"}, ""},
		{"number as JSON", choice, engine.Reply{HasValue: true, Value: 1}, engine.Answer{Choice: "red", Text: "Fiery red"}, ""},
		{"a label goes before a number", choice, engine.Reply{Text: "2"}, engine.Answer{Choice: "blue", Text: "2"}, ""},
		{"choice with its value", choice, engine.Reply{Text: "other 42"}, engine.Answer{Choice: "other", Value: int64(42), Text: "other 42"}, ""},
		{"choice with a bad value", choice, engine.Reply{Text: "other few"}, engine.Answer{}, `"few" will not do; it takes a whole number`},
		{"no choice", choice, engine.Reply{Text: "green"}, engine.Answer{},
			`"green" is no choice; choose one of: red (Fiery red), blue (2), deep (The Deep One), other (Another)`},
	}
}

func TestAnswersAreReadByTheirQuestion(t *testing.T) {
	for _, tc := range replies() {
		t.Run(tc.name, func(t *testing.T) {
			r, got := questioning(t, tc.q)
			e := r.engine("w")
			wantStatus(t, r.run(e), store.Waiting)
			tc.reply.Ask = "1.0"
			if tc.bad != "" {
				before := trace(t, e, "run")
				wantUsage(t, e.Answer(context.Background(), "run", tc.reply), tc.bad)
				wantStatus(t, advance(t, e), store.Waiting)
				if after := trace(t, e, "run"); after != before {
					t.Errorf("recorded: %s", after)
				}
				return
			}
			answer(t, e, tc.reply)
			wantStatus(t, advance(t, e), store.Succeeded)
			tc.want.By = history.ByPerson
			if !machine.EqualValues(got.Value, tc.want.Value) || got.Text != tc.want.Text || got.Choice != tc.want.Choice || got.By != tc.want.By {
				t.Errorf("got %+v, want %+v", *got, tc.want)
			}
		})
	}
}

func TestChineseYesAndNo(t *testing.T) {
	r, got := questioning(t, engine.Question{Kind: history.KindConfirm, Text: "好吗？"})
	r.flow.Language = "zh"
	e := r.engine("w")
	r.run(e)
	answer(t, e, engine.Reply{Ask: "1.0", HasValue: true, Value: false})
	advance(t, e)
	if got.Yes() || got.Text != "否" {
		t.Errorf("got %+v", *got)
	}
}

// Refusals of a Chinese flow are Chinese.
func TestChineseRefusals(t *testing.T) {
	schema := func(text string) engine.Question {
		return engine.Question{Kind: history.KindAsk, Text: "？", Schema: mustSchema(text)}
	}
	choice := engine.Question{Kind: history.KindAsk, Text: "？", Choices: []history.Choice{{Name: "red", Label: "红色"}, {Name: "b", Label: "b"}}}
	yes := true
	tests := []struct {
		q     engine.Question
		reply engine.Reply
		want  string // "" where the answer fits
	}{
		{engine.Question{Kind: history.KindConfirm, Text: "？"}, engine.Reply{Text: "随便"}, "“随便”既不是肯定，也不是否定; 请回答“是”或“否”，“否”后面可以写原因或要修改的内容"},
		{schema(`{"type":"boolean"}`), engine.Reply{Text: "随便"}, "“随便”不能作为回答; 需要回答是或否"},
		{schema(`{"type":"boolean"}`), engine.Reply{Text: "好的"}, ""},
		{schema(`{"type":"boolean"}`), engine.Reply{Yes: &yes}, "这个问题不是问是或否; 请回答具体内容"},
		{schema(`{"type":"integer","maximum":5}`), engine.Reply{Text: "很多"}, "“很多”不能作为回答; 需要整数"},
		{schema(`{"type":"integer","maximum":5}`), engine.Reply{Text: "6"}, "“6”不能作为回答; 不能大于 5"},
		{schema(`{"type":"integer","maximum":5}`), engine.Reply{Text: "五"}, ""},
		{schema(`{"type":"integer","maximum":5}`), engine.Reply{Text: "六"}, "“六”不能作为回答; 不能大于 5"},
		{schema(`{"type":"string","format":"date"}`), engine.Reply{Text: "明天"}, "“明天”不能作为回答; 需要日期，如 2026-01-31"},
		{schema(`{"type":"string","minLength":2}`), engine.Reply{}, "空白不能作为回答; 至少 2 个字符"},
		{schema(`{"type":"string","enum":["红色","蓝色"]}`), engine.Reply{Text: "绿色"}, "“绿色”不能作为回答; 只能是：红色、蓝色"},
		{schema(`{"type":"string","pattern":"^[0-9]+$","description":"订单号"}`), engine.Reply{Text: "绿色"}, "“绿色”不能作为回答; 需要：订单号"},
		{schema(`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}},"required":["a","b"]}`), engine.Reply{Text: `{"a":0}`},
			"回答不符合要求：a：必须大于 0；b：缺少这一项"},
		{choice, engine.Reply{Text: "绿色"}, "“绿色”不是可选的回答; 请选择：red（红色）、b"},
		{choice, engine.Reply{Text: "红色。"}, ""},
	}
	for _, test := range tests {
		r, _ := questioning(t, test.q)
		r.flow.Language = "zh"
		e := r.engine("w")
		r.run(e)
		test.reply.Ask = "1.0"
		err := e.Answer(context.Background(), "run", test.reply)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%+v: got %v, want %s", test.reply, err, test.want)
		}
	}
}

func TestQuestionExpires(t *testing.T) {
	r, got := questioning(t, engine.Question{Kind: history.KindAsk, Text: "?", Timeout: time.Hour})
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Waiting)
	ctx := context.Background()
	due := func() int {
		rows, err := e.DueRuns(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if snap.Due().IsZero() || due() != 0 {
		t.Fatalf("due %v, and %d runs are due already", snap.Due(), due())
	}
	wantStatus(t, advance(t, e), store.Waiting) // it looks, and waits on
	r.clock.advance(time.Hour)
	if due() != 1 {
		t.Error("the run is not listed as due")
	}
	if err := e.Answer(ctx, "run", engine.Reply{Ask: "1.0", Text: "late"}); !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("an answer that is late got %v, want ErrNotPending", err)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	if !got.Expired {
		t.Errorf("the handler got %+v", *got)
	}
	if h := trace(t, e, "run"); h != "run_started start asked run_waiting expired transition end run_finished" {
		t.Errorf("history %s", h)
	}
}

func TestQuestionsThatCannotBeAnswered(t *testing.T) {
	r, _ := questioning(t, engine.Question{Kind: history.KindAsk, Text: "?"})
	e := r.engine("w")
	ctx := context.Background()
	if err := e.Answer(ctx, "run", engine.Reply{Ask: "1.0"}); !errors.Is(err, engine.ErrUnknownRun) {
		t.Errorf("an unknown run gave %v", err)
	}
	r.run(e)
	wantUsage(t, e.Answer(ctx, "run", engine.Reply{Ask: "7.7"}), "has no question 7.7", "1.0")
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	if err := e.Answer(ctx, "run", engine.Reply{Ask: "1.0", Text: "y"}); !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("the second answer got %v, want ErrNotPending", err)
	}
	advance(t, e)
	if err := e.Answer(ctx, "run", engine.Reply{Ask: "1.0", Text: "z"}); !errors.Is(err, engine.ErrFinished) {
		t.Errorf("an answer after the end got %v, want ErrFinished", err)
	}
}

// Of ten processes that answer at once, one does.
func TestOneOfManyAnswersCounts(t *testing.T) {
	r, _ := questioning(t, engine.Question{Kind: history.KindAsk, Text: "?"})
	wantStatus(t, r.run(r.engine("first")), store.Waiting)
	const many = 10
	engines := make([]*engine.Engine, many)
	for i := range engines {
		engines[i] = r.engine(fmt.Sprintf("w%d", i))
	}
	var mu sync.Mutex
	answered, refused := 0, 0
	var all sync.WaitGroup
	for i, e := range engines {
		all.Go(func() {
			err := e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0", Text: fmt.Sprint("answer ", i)})
			if err == nil {
				_, err = e.Advance(context.Background(), "run")
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				answered++
			case errors.Is(err, engine.ErrBusy), errors.Is(err, engine.ErrNotPending), errors.Is(err, engine.ErrFinished):
				refused++
			default:
				t.Errorf("process %d got %v", i, err)
			}
		})
	}
	all.Wait()
	if answered != 1 || refused != many-1 {
		t.Errorf("%d answered and %d were refused", answered, refused)
	}
	if h := trace(t, engines[0], "run"); h != "run_started start asked run_waiting answered transition end run_finished" {
		t.Errorf("history %s", h)
	}
}

// What this process answered and then gave back goes on in another, and is no lost process.
func TestAnsweredRunGoesOnElsewhere(t *testing.T) {
	r, got := questioning(t, engine.Question{Kind: history.KindAsk, Text: "?"})
	first := r.engine("first")
	r.run(first)
	answer(t, first, engine.Reply{Ask: "1.0", Text: "x"})
	first.Close()
	second := r.engine("second")
	wantStatus(t, advance(t, second), store.Succeeded)
	if got.Text != "x" {
		t.Errorf("got %+v", *got)
	}
	if resumed := all[*history.RunResumed](t, second); len(resumed) != 1 || resumed[0].Interrupted {
		t.Errorf("it was taken up as %+v", resumed)
	}
}

// A run that was answered stays with its process when it is told something in between.
func TestWordForAnAnsweredRun(t *testing.T) {
	r, _ := questioning(t, engine.Question{Kind: history.KindAsk, Text: "?"})
	e := r.engine("w")
	r.run(e)
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	if err := e.Raise(context.Background(), "run", "steps", 1); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	if h := trace(t, e, "run"); h != "run_started start asked run_waiting answered limit_raised transition end run_finished" {
		t.Errorf("history %s", h)
	}
}

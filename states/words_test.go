package states

import (
	"testing"

	"flowctl/flows/machine"
)

func TestNounsAndDescriptions(t *testing.T) {
	tests := []struct {
		zh                 bool
		name, schema       string
		noun, wanted, isNo string
	}{
		{name: "order_id", schema: `{"type":"string","description":"The order number, such as A1001."}`,
			noun: "order number", wanted: "the order number, such as A1001", isNo: "B7 is no order number."},
		{name: "order_id", schema: `{"type":"string"}`, noun: "order id", wanted: "the order id", isNo: "B7 is no order id."},
		{name: "iban", schema: `{"type":"string","description":"IBAN of the account"}`, noun: "IBAN of the account", wanted: "IBAN of the account"},
		{name: "amount", schema: `{"type":"integer"}`, noun: "amount", wanted: "the amount (a whole number)"},
		{name: "amount", schema: `{"type":"integer","description":"How many pieces"}`, noun: "amount", wanted: "how many pieces"},
		{name: "day", schema: `{"type":"string","format":"date"}`, noun: "day", wanted: "the day (a date such as 2026-01-31)"},
		{name: "why", schema: `{"enum":["late","broken"],"description":"The reason: late or broken"}`, noun: "reason", wanted: "the reason: late or broken"},
		{name: "why", schema: `{"enum":["late","broken"]}`, noun: "why", wanted: "the why (late or broken)"},
		{name: "insured", schema: `{"type":"boolean"}`, noun: "insured", wanted: "the insured (yes or no)"},
		{name: "long", schema: `{"type":"string","description":"A description that goes on and on and never says what it is about at all"}`,
			noun: "description", wanted: "a description that goes on and on and never says what it is about at all"},
		{zh: true, name: "order_id", schema: `{"type":"string","description":"订单号，如2024-001"}`, noun: "订单号", wanted: "订单号，如2024-001", isNo: "B7 不是订单号。"},
		{zh: true, name: "order_id", schema: `{"type":"string","description":"订单号如A1001"}`, noun: "订单号", wanted: "订单号如A1001", isNo: "B7 不是订单号。"},
		{zh: true, name: "order_id", schema: `{"type":"string"}`, noun: "order id", wanted: "order id", isNo: "B7 不是 order id。"},
		{zh: true, name: "amount", schema: `{"type":"integer"}`, noun: "amount", wanted: "amount（整数）"},
	}
	for _, test := range tests {
		w, info := words{zh: test.zh}, mustSchema(t, test.schema).Info()
		if got := w.noun(test.name, info); got != test.noun {
			t.Errorf("%s %s: noun %q, want %q", test.name, test.schema, got, test.noun)
		}
		if got := w.wanted(test.name, info); got != test.wanted {
			t.Errorf("%s %s: wanted %q, want %q", test.name, test.schema, got, test.wanted)
		}
		if got := w.isNo("B7", test.noun, ""); test.isNo != "" && got != test.isNo {
			t.Errorf("%s %s: %q, want %q", test.name, test.schema, got, test.isNo)
		}
	}
}

func TestAskFor(t *testing.T) {
	tests := []struct {
		zh                 bool
		name, schema, want string
		label              string
	}{
		{false, "gift", `{"type":"boolean","description":"gift wrapping"}`, "Gift wrapping: yes or no?", "gift wrapping"},
		{false, "gift_wrap", `{"type":"boolean"}`, "Gift wrap: yes or no?", "gift wrap"},
		{false, "express", `{"type":"boolean","description":"Whether to send it by express."}`, "Whether to send it by express: yes or no?", "whether to send it by express"},
		{false, "express", `{"type":"boolean","description":"Do you want express delivery?"}`, "Do you want express delivery? (yes or no)", "Do you want express delivery"},
		{false, "n", `{"type":"integer","description":"How many?"}`, "How many?", "how many"},
		{false, "n", `{"type":"integer","description":"How many pieces"}`, "Please tell me how many pieces.", "how many pieces"},
		{false, "c", `{"enum":["red","blue"],"description":"Which colour?"}`, "Which colour? (red or blue)", "which colour"},
		{false, "t", `{"type":"array","items":{"enum":["ham","cheese"]},"description":"Your toppings"}`, "Please tell me your toppings (one or more of ham, cheese).", "toppings"},
		{false, "s", `{"type":"string","description":"A text that says far more of itself than fits into one line of a question, and goes on"}`,
			"Please tell me a text that says far more of itself than fits into one line of a question, and goes on.", "text"},
		{true, "bao", `{"type":"boolean","description":"要不要包间"}`, "要不要包间？请回答是或否。", "要不要包间"},
		{true, "bao", `{"type":"boolean","description":"礼品包装"}`, "礼品包装：是或否？", "礼品包装"},
		{true, "bao", `{"type":"boolean","description":"需要包间吗？"}`, "需要包间吗？（是或否）", "需要包间吗"},
		{true, "n", `{"type":"integer","description":"几位？"}`, "几位？", "几位"},
		{true, "t", `{"type":"array","items":{"enum":["火腿","奶酪"]},"description":"配料"}`, "请告诉我配料（可多选：火腿、奶酪）。", "配料"},
	}
	for _, test := range tests {
		w, info := words{zh: test.zh}, mustSchema(t, test.schema).Info()
		if got := w.askFor(test.name, info); got != test.want {
			t.Errorf("%s: %q, want %q", test.schema, got, test.want)
		}
		if got := w.label(test.name, info); got != test.label {
			t.Errorf("%s: label %q, want %q", test.schema, got, test.label)
		}
	}
}

func TestPlanShowsOneLineForEachStep(t *testing.T) {
	steps := []*plannedStep{newStep("a", "Pay\n2. nothing else", "pay", machine.Values{"to": "x\n3. or this", "cents": int64(5), "note": "", "tags": []machine.Value{"a"}}),
		newStep("b", "", "close", nil)}
	want := "The plan: good will\n1. Pay 2. nothing else (pay: cents = 5, note = \"\", tags = [\"a\"], to = \"x\\n3. or this\")\n2. close\nShall I go ahead?"
	if got := (words{}).plan("good\nwill", steps); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeeps(t *testing.T) {
	for text, want := range map[string]bool{"no": true, "Nothing.": true, "no changes": true, "不用改": true, "没有。": true, "无": true,
		"": false, "no, A1002": false, "nothing but the number": false, "不是A1001": false} {
		if got := (words{}).keeps(text); got != want {
			t.Errorf("keeps(%q) is %v, want %v", text, got, want)
		}
	}
}

func TestBareNoIsNoComment(t *testing.T) {
	for text, want := range map[string]bool{"no": true, "No.": true, "nope": true, "No, thanks!": true, "不要": true, "不行。": true, "否": true, "不是。": true, "no, too dear": false, "cancel": false, "不要这个": false} {
		if got := bareNo.MatchString(text); got != want {
			t.Errorf("bare no %q is %v, want %v", text, got, want)
		}
	}
}

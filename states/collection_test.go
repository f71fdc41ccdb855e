package states

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/width"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func mustSchema(t testing.TB, text string) machine.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	return s
}

// testSchemas are the fields that the tests of this file collect.
var testSchemas = map[string]string{
	"order":    `{"type":"string","pattern":"^A[0-9]{4}$","description":"The order number, such as A1001"}`,
	"order_zh": `{"type":"string","pattern":"^[0-9]{4}-[0-9]{3}$","description":"订单号，如2024-001"}`,
	"reason":   `{"type":"string","enum":["broken","late","arrived late","wrong item"]}`,
	"why":      `{"type":"string","enum":["质量问题","发错货","退款","部分退款"],"description":"原因"}`,
	"count":    `{"type":"integer","minimum":1,"maximum":10}`,
	"days":     `{"type":"integer"}`,
	"price":    `{"type":"number"}`,
	"insured":  `{"type":"boolean","description":"Whether the parcel is insured"}`,
	"day":      `{"type":"string","format":"date"}`,
	"until":    `{"type":"string","format":"date"}`,
	"note":     `{"type":"string","description":"A remark."}`,
	"city":     `{"type":"string"}`,
	"mail":     `{"type":"string","format":"email"}`,
	"size":     `{"type":"integer","enum":[1,2,3]}`,
	"from":     `{"type":"string","pattern":"^K[0-9]+$"}`,
	"to":       `{"type":"string","pattern":"^K[0-9]+$"}`,
	"code":     `{"type":"string","pattern":"^[0-9]{6}$"}`,
	"tags":     `{"type":"array","items":{"type":"string"}}`,
	"mail2":    `{"type":"string","format":"email"}`,
	"page":     `{"type":"string","format":"uri","description":"your web page"}`,
	"at":       `{"type":"string","format":"time"}`,
	"express":  `{"type":"boolean","description":"express delivery"}`,
	"sure":     `{"type":"string","enum":["yes","no","maybe"]}`,
	"room":     `{"type":"boolean","description":"要不要包间"}`,
	"guests":   `{"type":"integer","minimum":1,"maximum":10,"description":"人数"}`,
	"weight":   `{"type":"number","exclusiveMinimum":0,"description":"the weight in kg"}`,
	"slot":     `{"type":"string","enum":["morning","afternoon","evening"],"description":"the time of day"}`,
	"cause":    `{"type":"string","enum":["质量问题","不想要了"]}`,
	"many":     `{"type":"integer","description":"How many?"}`,
	"colour":   `{"enum":["red","blue"],"description":"Which colour shall it be?"}`,
	"toppings": `{"type":"array","items":{"enum":["ham","blue cheese","cheese"]},"maxItems":2,"description":"your toppings"}`,
	"orders":   `{"type":"array","items":{"type":"string","pattern":"^A[0-9]{4}$"}}`,
	"sign":     `{"enum":["+","-","none"]}`,
	"short":    `{"type":"string","maxLength":5}`,
}

// collecting makes a collection of fields; standing gives values that are there at the entry.
func collecting(t testing.TB, zh, again bool, names string, standing machine.Values) *collection {
	c := &collection{words: words{zh: zh}, again: again}
	for _, name := range strings.Fields(names) {
		c.fields = append(c.fields, newField(name, mustSchema(t, testSchemas[name]), standing[name]))
	}
	return c
}

// values shows what stands as name=value.
func (c *collection) values() string {
	var out []string
	for _, f := range c.fields {
		if f.value != nil {
			out = append(out, f.name+"="+machine.FormatValue(f.value))
		}
	}
	return strings.Join(out, " ")
}

// inTexts are texts that answer no question, and what the fields find in them.
var inTexts = []struct{ fields, text, want string }{
	{"order reason", "I want a refund for order A1001, it arrived broken", "order=A1001 reason=broken"},
	{"order_zh why", "我的订单2024-001有质量问题，要退货", "order_zh=2024-001 why=质量问题"},
	{"order", "sorry, it is A1001", "order=A1001"},
	{"order", "sorry, it is a1001.", "order=A1001"},
	{"order", "订单Ａ１００１坏了", "order=A1001"},
	{"order", "A1001 and again A1001, a1001", "order=A1001"},
	{"order", "A1001 or A1002", ""},
	{"order", "A10015, BA1001", ""},
	{"order", "B7", ""},
	{"order", "", ""},
	{"reason", "It Is BROKEN", "reason=broken"},
	{"reason", "unbroken", ""},
	{"reason", "it arrived late", "reason=arrived late"},
	{"reason", "it is late and broken", ""},
	{"reason", "the  wrong\nitem came", "reason=wrong item"},
	{"why", "我要部分退款", "why=部分退款"},
	{"why", "我要退款，不是部分退款", "why=退款"},
	{"why", "不是质量问题", ""},
	{"why", "是不是质量问题", "why=质量问题"},
	{"cause", "不想要了", "cause=不想要了"},
	{"cause", "有质量问题", "cause=质量问题"},
	{"reason", "not broken", ""},
	{"reason", "it isn't broken, it arrived late", "reason=arrived late"},
	{"slot", "not in the morning but in the evening", "slot=evening"},
	{"slot", "good morning, the evening please", ""},
	{"order", "A1001A, A1001x2, A1001_2, 1A1001, A1001-B, a1001@b.co", ""},
	{"order", "#A1001", "order=A1001"},
	{"order count", "my order is A 1001", ""},
	{"count", "1 000 pieces", ""},
	{"days", "1 000 pieces", "days=1000"},
	{"days", "five", ""}, // words are for answers
	{"days", "5月6日 3人", "days=3"},
	{"mail insured", "my mail is Ada@Example.com, thanks", "mail=Ada@Example.com"},
	{"mail insured", "yes.no@x.org", "mail=yes.no@x.org"},
	{"mail mail2", "bob@x.org", ""},
	{"mail days", "bob5@x.org", "mail=bob5@x.org"},
	{"mail", "bob@x.org or amy@x.org", ""},
	{"page", "see https://x.org/a.", "page=https://x.org/a"},
	{"at", "at 10:30", ""},
	{"at", "at 10:30Z", "at=10:30:00Z"},
	{"toppings", "a pizza with cheese and ham, no blue cheese", `toppings=["cheese","ham"]`},
	{"toppings", "a pizza", ""},
	{"orders", "a1001 and A1002", `orders=["A1001","A1002"]`},
	{"tags", "red, green", ""},
	{"express days", "express delivery: yes, 5", "express=true days=5"},
	{"express days", "no, 5", "days=5"},
	{"sure days", "no, 5", "days=5"},
	{"sure days", "sure: no, 5", "sure=no days=5"},
	{"count", "I need 3 of them", "count=3"},
	{"count", "我要3个", "count=3"},
	{"count", "３", "count=3"},
	{"count", "order A7, please", ""},
	{"count", "order 2024-7", ""},
	{"count", "I have 500 of them", ""},
	{"count", "I have 500 and want 3", "count=3"},
	{"count", "3 or 4", ""},
	{"count order_zh", "订单2024-001，要2个", "count=2 order_zh=2024-001"},
	{"count code", "my code is 123456, I want 2", "count=2 code=123456"},
	{"days code", "my code is 123456", "code=123456"},
	{"days day", "from 2026-01-31 for 5 days", "days=5 day=2026-01-31"},
	{"days", "on 2026-01-31", ""},
	{"days", "2.5", ""},
	{"days", "-5", "days=-5"},
	{"days", "9007199254740993", "days=9007199254740993"},
	{"days", "99999999999999999999", ""},
	{"price", "at most 1,000.5", "price=1000.5"},
	{"price", "12", "price=12"},
	{"day", "on 31 January 2026", "day=2026-01-31"},
	{"day", "2026年1月31日", "day=2026-01-31"},
	{"day", "on 1/2/2026", ""},
	{"day", "2026-02-30", ""},
	{"size", "size 2, order A7", "size=2"},
	{"size", "size 4", ""},
	{"insured", "ok, I want my money", ""},
	{"insured", "no", ""},
	// One number for two fields, or one id for two, was meant for one of them, and nobody knows for which.
	{"count days", "5", ""},
	{"count days", "5 of them for 30 days", "count=5"},
	{"days price", "5", ""},
	{"days price", "days: 5", "days=5"},
	{"days price", "5 days, whatever the price", ""},
	{"from to", "to K1", "to=K1"},
	{"from to", "K1", ""},
	{"day until", "2026-01-31", ""},
	// Any text will do for these, so none of it is it.
	{"note", "hello", ""},
	{"mail", "me@example.org", "mail=me@example.org"},
	{"note order", "hello A1001", "order=A1001"},
}

func TestFindsValuesInText(t *testing.T) {
	for _, test := range inTexts {
		for _, zh := range []bool{false, true} {
			c := collecting(t, zh, false, test.fields, nil)
			c.read(test.text)
			if got := c.values(); got != test.want {
				t.Errorf("fields %s in %q (zh %v): got %q, want %q", test.fields, test.text, zh, got, test.want)
			}
		}
	}
}

func TestNewestTextCounts(t *testing.T) {
	c := collecting(t, false, true, "order reason", machine.Values{"order": "A1001", "reason": "late"})
	c.read("it is broken, too")
	c.read("the order was A1002")
	c.read("A1002, yes")
	if got, want := c.values(), "order=A1002 reason=broken"; got != want || !c.complete() {
		t.Errorf("got %q (complete %v), want %q", got, c.complete(), want)
	}
	c.read("A1002 or A1003, I do not know")
	if got, want := c.values(), "reason=broken"; got != want || c.complete() {
		t.Errorf("after two at once: got %q (complete %v), want %q", got, c.complete(), want)
	}
}

// dialogue plays answers to a collection and gives the questions.
func (c *collection) dialogue(answers ...string) []string {
	var asked []string
	for _, answer := range answers {
		if c.complete() {
			return append(asked, "complete")
		}
		asked = append(asked, c.engineQuestion())
		c.hear(answer)
	}
	if c.complete() {
		return append(asked, "complete")
	}
	return append(asked, c.engineQuestion())
}

// engineQuestion is the question in the engine's own words.
func (c *collection) engineQuestion() string {
	asked := c.ask()
	if len(asked) == 0 {
		return c.changeQuestion()
	}
	return strings.Join(append(c.noteTexts(), c.request(asked)), "\n")
}

const askOrder, askReason = "Please tell me the order number, such as A1001.", "Please tell me the reason (broken, late, arrived late or wrong item)."

// dialogues are answers to collections, and the questions that follow.
var dialogues = []struct {
	name, fields string
	zh, again    bool
	standing     machine.Values
	text         string // that is read at the entry
	answers      []string
	questions    []string
	values       string
}{
	{name: "all is said", fields: "order reason", text: "A1001 is broken", questions: []string{"complete"}, values: "order=A1001 reason=broken"},
	{name: "all is there", fields: "order", standing: machine.Values{"order": "A1001"}, questions: []string{"complete"}, values: "order=A1001"},
	{name: "what is there can be replaced", fields: "order", standing: machine.Values{"order": "A1001"}, text: "no, A1002",
		questions: []string{"complete"}, values: "order=A1002"},
	{name: "wrong, then right", fields: "order", answers: []string{"B7", "sorry, it is A1001"},
		questions: []string{askOrder, "B7 is no order number.\n" + askOrder, "complete"}, values: "order=A1001"},
	{name: "a long answer is not repeated", fields: "order", answers: []string{"I am not sure where that would be written, can you help?"},
		questions: []string{askOrder, "I found no order number in your answer.\n" + askOrder}},
	{name: "two at once", fields: "order", answers: []string{"A1001 or A1002", "A1002"},
		questions: []string{askOrder, "There is more than one order number: A1001 or A1002. Which one is it?\n" + askOrder, "complete"},
		values:    "order=A1002"},
	{name: "two at once in the first text", fields: "order", text: "A1001 or A1002",
		questions: []string{"There is more than one order number: A1001 or A1002. Which one is it?\n" + askOrder}},
	{name: "an unclear answer, then none", fields: "order", answers: []string{"A1001 or A1002", "B7"},
		questions: []string{askOrder, "There is more than one order number: A1001 or A1002. Which one is it?\n" + askOrder,
			"B7 is no order number.\n" + askOrder}},
	{name: "all that is missing in one question", fields: "order reason count", text: "3 please", answers: []string{"broken", "A1001"},
		questions: []string{"Please tell me:\n- the order number, such as A1001\n- the reason (broken, late, arrived late or wrong item)",
			askOrder, "complete"}, values: "order=A1001 reason=broken count=3"},
	{name: "nothing of it", fields: "order reason", answers: []string{"hello?", "A1001, late"},
		questions: []string{"Please tell me:\n- the order number, such as A1001\n- the reason (broken, late, arrived late or wrong item)",
			"I found none of this in your answer.\nPlease tell me:\n- the order number, such as A1001\n- the reason (broken, late, arrived late or wrong item)",
			"complete"}, values: "order=A1001 reason=late"},
	{name: "a correction beside the answer", fields: "order reason", text: "A1001", answers: []string{"broken, and it is A1002"},
		questions: []string{askReason, "complete"}, values: "order=A1002 reason=broken"},
	{name: "a number in an answer about something else", fields: "count reason", text: "3", answers: []string{"late by 5 days"},
		questions: []string{askReason, "complete"}, values: "count=3 reason=late"},
	{name: "the only text field takes the whole answer", fields: "note", answers: []string{"  Ring twice, A1001.  "},
		questions: []string{"Please tell me a remark.", "complete"}, values: "note=Ring twice, A1001."},
	{name: "an empty answer is none", fields: "note", answers: []string{"  "},
		questions: []string{"Please tell me a remark.", "I found no remark in your answer.\nPlease tell me a remark."}},
	{name: "what is said of the text field changes no other", fields: "order note", text: "A1001", answers: []string{"not A1002"},
		questions: []string{"Please tell me a remark.", "complete"}, values: "order=A1001 note=not A1002"},
	{name: "text that breaks its schema", fields: "short", answers: []string{"far too long", "fine"},
		questions: []string{"Please tell me the short.", "\"far too long\" will not do as short: it takes at most 5 characters.\nPlease tell me the short.",
			"complete"}, values: "short=fine"},
	{name: "an address", fields: "mail", answers: []string{"nowhere", "me@example.org"},
		questions: []string{"Please tell me the mail.", "nowhere will not do as mail: it takes an e-mail address such as name@example.org.\nPlease tell me the mail.",
			"complete"}, values: "mail=me@example.org"},
	{name: "a list", fields: "tags", answers: []string{`["a","b"]`}, questions: []string{"Please tell me the tags.", "complete"}, values: `tags=["a","b"]`},
	{name: "a list of one", fields: "tags", answers: []string{`red`}, questions: []string{"Please tell me the tags.", "complete"}, values: `tags=["red"]`},
	{name: "a number out of bounds", fields: "count", answers: []string{"50", "5"},
		questions: []string{"Please tell me the count (a whole number).",
			"50 will not do as count: it takes at most 10.\nPlease tell me the count (a whole number).", "complete"}, values: "count=5"},
	{name: "an id is no number", fields: "count", answers: []string{"A1001"},
		questions: []string{"Please tell me the count (a whole number).", "A1001 will not do as count: it takes a number that stands alone.\nPlease tell me the count (a whole number)."}},
	{name: "yes or no", fields: "insured", answers: []string{"maybe", "yes please"},
		questions: []string{"Whether the parcel is insured: yes or no?",
			"maybe is neither yes nor no.\nWhether the parcel is insured: yes or no?", "complete"}, values: "insured=true"},
	{name: "texts that cannot be told apart", fields: "note city", answers: []string{"Ring twice, Rome", "Ring twice", "Rome"},
		questions: []string{"Please tell me:\n- a remark\n- the city",
			"I cannot tell apart what you told me, so one at a time.\nPlease tell me a remark.", "Please tell me the city.", "complete"},
		values: "note=Ring twice city=Rome"},
	{name: "numbers that cannot be told apart", fields: "count days", answers: []string{"5", "5", "30"},
		questions: []string{"Please tell me:\n- the count (a whole number)\n- the days (a whole number)",
			"I cannot tell apart what you told me, so one at a time.\nPlease tell me the count (a whole number).",
			"Please tell me the days (a whole number).", "complete"}, values: "count=5 days=30"},
	{name: "ids that cannot be told apart", fields: "from to", answers: []string{"K1 and K2", "K1", "K2"},
		questions: []string{"Please tell me:\n- the from\n- the to",
			"I cannot tell apart what you told me, so one at a time.\nPlease tell me the from.", "Please tell me the to.", "complete"},
		values: "from=K1 to=K2"},
	{name: "an id for the one that is missing", fields: "from to", standing: machine.Values{"from": "K1"}, answers: []string{"K2"},
		questions: []string{"Please tell me the to.", "complete"}, values: "from=K1 to=K2"},
	{name: "again, and something is new", fields: "order reason", again: true, standing: machine.Values{"order": "A1001", "reason": "late"},
		text: "it is broken", questions: []string{"complete"}, values: "order=A1001 reason=broken"},
	{name: "again, and nothing is new", fields: "order reason", again: true, standing: machine.Values{"order": "A1001", "reason": "late"},
		text: "A1001 is wrong", answers: []string{"the number", "A1002"},
		questions: []string{"What should change? At the moment: order number: A1001; reason: late.",
			"I found no new value in your answer.\nWhat should change? At the moment: order number: A1001; reason: late.", "complete"},
		values: "order=A1002 reason=late"},
	{name: "again, and it shall stay", fields: "order", again: true, standing: machine.Values{"order": "A1001"}, answers: []string{"Nothing."},
		questions: []string{"What should change? At the moment: order number: A1001.", "complete"}, values: "order=A1001"},
	{name: "again, and the change is unclear", fields: "order", again: true, standing: machine.Values{"order": "A1001"},
		answers: []string{"A1002 or A1003", "A1001"},
		questions: []string{"What should change? At the moment: order number: A1001.",
			"There is more than one order number: A1002 or A1003. Which one is it?\n" + askOrder, "complete"}, values: "order=A1001"},
	{name: "again, and a number is named", fields: "days price", again: true, standing: machine.Values{"days": int64(3), "price": int64(4)},
		answers: []string{"5", "the price: 5"},
		questions: []string{"What should change? At the moment: days: 3; price: 4.",
			"I found no new value in your answer.\nWhat should change? At the moment: days: 3; price: 4.", "complete"}, values: "days=3 price=5"},
	{name: "again, and the correction does not fit", fields: "order count", again: true, standing: machine.Values{"order": "A1001", "count": int64(3)},
		text: "no, 30 of them", answers: []string{"ok, 10"},
		questions: []string{"30 will not do as count: it takes at most 10.\nWhat should change? At the moment: order number: A1001; count: 3.", "complete"},
		values:    "order=A1001 count=10"},
	{name: "again, and one of two corrections does not fit", fields: "order count", again: true, standing: machine.Values{"order": "A1001", "count": int64(3)},
		text: "no, order A1002 and the count is 30", answers: []string{"nothing"},
		questions: []string{"30 will not do as count: it takes at most 10.\nWhat should change? At the moment: order number: A1002; count: 3.", "complete"},
		values:    "order=A1002 count=3"},
	{name: "again with text", fields: "note", again: true, standing: machine.Values{"note": "old"}, text: "no", answers: []string{"new"},
		questions: []string{"What should change? At the moment: remark: old.", "complete"}, values: "note=new"},
	{name: "again, and one was unset", fields: "order reason", again: true, standing: machine.Values{"reason": "late"}, text: "yes",
		answers: []string{"A1002"}, questions: []string{askOrder, "complete"}, values: "order=A1002 reason=late"},

	{name: "yes beside another value was asked for", fields: "express days", answers: []string{"yes, 5"},
		questions: []string{"Please tell me:\n- express delivery (yes or no)\n- the days (a whole number)", "complete"}, values: "express=true days=5"},
	{name: "yes and no at once", fields: "express", answers: []string{"okay no", "no"},
		questions: []string{"Express delivery: yes or no?", "I read both yes and no in your answer.\nExpress delivery: yes or no?", "complete"},
		values:    "express=false"},
	{name: "again, and a no before a value", fields: "express days", again: true, standing: machine.Values{"express": true, "days": int64(5)},
		answers: []string{"no, 2"}, questions: []string{"What should change? At the moment: express delivery: yes; days: 5.", "complete"},
		values: "express=true days=2"},
	{name: "again, and a yes before a value", fields: "express days", again: true, standing: machine.Values{"express": false, "days": int64(5)},
		answers: []string{"yes, but only 2"}, questions: []string{"What should change? At the moment: express delivery: no; days: 5.", "complete"},
		values: "express=false days=2"},
	{name: "again, and nothing but yes", fields: "express days", again: true, standing: machine.Values{"express": false, "days": int64(5)},
		answers: []string{"yes", "express: yes, and 2"}, questions: []string{"What should change? At the moment: express delivery: no; days: 5.",
			"I found no new value in your answer.\nWhat should change? At the moment: express delivery: no; days: 5.", "complete"},
		values: "express=true days=2"},
	{name: "again, and the only field is a yes or no", fields: "express", again: true, standing: machine.Values{"express": false},
		answers: []string{"yes"}, questions: []string{"What should change? At the moment: express delivery: no.", "complete"}, values: "express=true"},
	{name: "a correction named beside the answer", fields: "express days", standing: machine.Values{"express": true},
		answers: []string{"5, without express delivery"}, questions: []string{"Please tell me the days (a whole number).", "complete"},
		values: "express=false days=5"},
	{name: "a correction and no answer", fields: "order days", text: "A1001", answers: []string{"no wait, A1002", "2"},
		questions: []string{"Please tell me the days (a whole number).", "Please tell me the days (a whole number).", "complete"},
		values:    "order=A1002 days=2"},
	{name: "denied", fields: "slot", answers: []string{"not morning", "evening"},
		questions: []string{"Please tell me the time of day (morning, afternoon or evening).",
			"\"not morning\" is no time of day.\nPlease tell me the time of day (morning, afternoon or evening).", "complete"}, values: "slot=evening"},
	{name: "found in the first text, and wrong", fields: "count", text: "12 of them",
		questions: []string{"12 will not do as count: it takes at most 10.\nPlease tell me the count (a whole number)."}},
	{name: "several wrong in the first text", fields: "count", text: "12 of them, 50 cm long", questions: []string{"Please tell me the count (a whole number)."}},
	{name: "a wrong date in the first text", fields: "day", text: "on 2026-02-30",
		questions: []string{"2026-02-30 will not do as day: there is no such day.\nPlease tell me the day (a date such as 2026-01-31)."}},
	{name: "dates that are none", fields: "day", answers: []string{"tomorrow", "1 May", "1/2/2026", "1.5.2026 or 2.5.2026", "1 May 2026"},
		questions: []string{"Please tell me the day (a date such as 2026-01-31).",
			"tomorrow will not do as day: it takes a date such as 2026-01-31.\nPlease tell me the day (a date such as 2026-01-31).",
			"\"1 May\" will not do as day: the year is missing, write it such as 2026-01-31.\nPlease tell me the day (a date such as 2026-01-31).",
			"\"1/2/2026\" will not do as day: it can mean two days, write it such as 2026-01-31.\nPlease tell me the day (a date such as 2026-01-31).",
			"\"1.5.2026\" will not do as day: it can mean two days, write it such as 2026-01-31.\nPlease tell me the day (a date such as 2026-01-31).",
			"complete"}, values: "day=2026-05-01"},
	{name: "a time without zone", fields: "at", answers: []string{"at 10:30", "10:30+02:00."},
		questions: []string{"Please tell me the at.", "\"10:30\" will not do as at: it takes a time with zone such as 15:04:05Z.\nPlease tell me the at.",
			"complete"}, values: "at=10:30:00+02:00"},
	{name: "an address in a sentence", fields: "mail", answers: []string{"it is bob@x.org."}, questions: []string{"Please tell me the mail.", "complete"},
		values: "mail=bob@x.org"},
	{name: "an address that only its schema knows", fields: "page", answers: []string{"urn:isbn:123"},
		questions: []string{"Please tell me your web page.", "complete"}, values: "page=urn:isbn:123"},
	{name: "a number with its unit", fields: "weight", answers: []string{"2.5kg", "heavy", "0", "2.5"},
		questions: []string{"Please tell me the weight in kg.",
			"\"2.5kg\" will not do as weight in kg: it takes a number that stands alone.\nPlease tell me the weight in kg.",
			"heavy will not do as weight in kg: it takes a number.\nPlease tell me the weight in kg.",
			"0 will not do as weight in kg: it takes more than 0.\nPlease tell me the weight in kg.", "complete"}, values: "weight=2.5"},
	{name: "no whole number", fields: "count", answers: []string{"2.5", "twelve", "five people"},
		questions: []string{"Please tell me the count (a whole number).",
			"\"2.5\" will not do as count: it takes a whole number.\nPlease tell me the count (a whole number).",
			"twelve will not do as count: it takes at most 10.\nPlease tell me the count (a whole number).", "complete"}, values: "count=5"},
	{name: "descriptions that are questions", fields: "many", answers: []string{"x", "3 or 4", "5"},
		questions: []string{"How many?", "x will not do: it takes a whole number.\nHow many?",
			"There is more than one: 3 or 4. Which one is it?\nHow many?", "complete"}, values: "many=5"},
	{name: "a question with its words", fields: "colour", answers: []string{"green", strings.Repeat("green or so ", 9), "red"},
		questions: []string{"Which colour shall it be? (red or blue)", "green will not do.\nWhich colour shall it be? (red or blue)",
			"I found none of this in your answer.\nWhich colour shall it be? (red or blue)", "complete"}, values: "colour=red"},
	{name: "items of a list", fields: "toppings", answers: []string{"ham and fish, please", "ham, cheese, blue cheese", "Ham and cheese, thanks"},
		questions: []string{"Please tell me your toppings (one or more of ham, blue cheese, cheese).",
			"fish will not do as toppings: it takes ham, blue cheese or cheese.\nPlease tell me your toppings (one or more of ham, blue cheese, cheese).",
			"\"ham, cheese, blue cheese\" will not do as toppings: it takes at most 2 items.\nPlease tell me your toppings (one or more of ham, blue cheese, cheese).",
			"complete"}, values: `toppings=["ham","cheese"]`},
	{name: "no items", fields: "toppings", answers: []string{"none"},
		questions: []string{"Please tell me your toppings (one or more of ham, blue cheese, cheese).", "complete"}, values: `toppings=[]`},
	{name: "a list of texts", fields: "tags", answers: []string{"red, dark green and blue."}, questions: []string{"Please tell me the tags.", "complete"},
		values: `tags=["red","dark green","blue"]`},
	{name: "again with a list", fields: "tags days", again: true, standing: machine.Values{"tags": []machine.Value{"a", "b"}, "days": int64(1)},
		questions: []string{"What should change? At the moment: tags: a, b; days: 1."}, values: `tags=["a","b"] days=1`},
	{name: "a word that is a sign", fields: "sign", answers: []string{"+"}, questions: []string{"Please tell me the sign (+, - or none).", "complete"},
		values: "sign=+"},

	{name: "中文：包间", fields: "room guests", zh: true, text: "我要包间，三位", answers: []string{"三位"},
		questions: []string{"请告诉我人数。", "complete"}, values: "room=true guests=3"},
	{name: "中文：不要包间", fields: "room guests", zh: true, answers: []string{"不要包间，两位"},
		questions: []string{"请告诉我：\n- 要不要包间（是或否）\n- 人数", "complete"}, values: "room=false guests=2"},
	{name: "中文：随便", fields: "room", zh: true, answers: []string{"随便", "不用"},
		questions: []string{"要不要包间？请回答是或否。", "随便既不是肯定，也不是否定。\n要不要包间？请回答是或否。", "complete"}, values: "room=false"},
	{name: "中文：修改", fields: "room guests", zh: true, again: true, standing: machine.Values{"room": true, "guests": int64(3)}, answers: []string{"不，五位"},
		questions: []string{"要修改什么？目前：要不要包间：是；人数：3。", "complete"}, values: "room=true guests=5"},
	{name: "中文：不，六位", fields: "room guests", zh: true, again: true, standing: machine.Values{"room": true, "guests": int64(3)}, text: "不，六位",
		questions: []string{"complete"}, values: "room=true guests=6"},
	{name: "中文：太多", fields: "guests", zh: true, text: "20位", answers: []string{"很多人", "五"},
		questions: []string{"20 不能作为人数：不能大于 10。\n请告诉我人数。", "很多人不能作为人数：需要整数。\n请告诉我人数。", "complete"}, values: "guests=5"},
	{name: "中文：缺年份", fields: "day", zh: true, text: "5月1日", answers: []string{"明天", "2026年5月1日"},
		questions: []string{"5月1日不能作为 day：缺少年份，请写成 2026-01-31 这样。\n请告诉我 day（日期，如 2026-01-31）。",
			"明天不能作为 day：需要日期，如 2026-01-31。\n请告诉我 day（日期，如 2026-01-31）。", "complete"}, values: "day=2026-05-01"},
	{name: "中文：不是", fields: "why", zh: true, answers: []string{"不是质量问题", "发错货"},
		questions: []string{"请告诉我原因（质量问题、发错货、退款或部分退款）。",
			"不是质量问题不是原因。\n请告诉我原因（质量问题、发错货、退款或部分退款）。", "complete"}, values: "why=发错货"},
	{name: "中文", fields: "order_zh why", zh: true, text: "我的订单2024-001有质量问题，要退货", questions: []string{"complete"},
		values: "order_zh=2024-001 why=质量问题"},
	{name: "中文：缺两项", fields: "order_zh why", zh: true, text: "你好", answers: []string{"B7", "2024-001发错货了"},
		questions: []string{"请告诉我：\n- 订单号，如2024-001\n- 原因（质量问题、发错货、退款或部分退款）",
			"我在您的回答中没有找到需要的内容。\n请告诉我：\n- 订单号，如2024-001\n- 原因（质量问题、发错货、退款或部分退款）", "complete"},
		values: "order_zh=2024-001 why=发错货"},
	{name: "中文：不对", fields: "order_zh", zh: true, answers: []string{"B7", "2024-001或2024-002", "2024-002"},
		questions: []string{"请告诉我订单号，如2024-001。", "B7 不是订单号。\n请告诉我订单号，如2024-001。",
			"订单号有多个：2024-001或2024-002。请只给一个。\n请告诉我订单号，如2024-001。", "complete"}, values: "order_zh=2024-002"},
	{name: "中文：没有变化", fields: "order_zh why", zh: true, again: true, standing: machine.Values{"order_zh": "2024-001", "why": "发错货"},
		answers: []string{"不用改"}, questions: []string{"要修改什么？目前：订单号：2024-001；原因：发错货。", "complete"},
		values: "order_zh=2024-001 why=发错货"},
	{name: "中文：是或否", fields: "insured", zh: true, answers: []string{"好的"},
		questions: []string{"Whether the parcel is insured：是或否？", "complete"}, values: "insured=true"},
}

func TestDialogues(t *testing.T) {
	for _, test := range dialogues {
		t.Run(test.name, func(t *testing.T) {
			c := collecting(t, test.zh, test.again, test.fields, test.standing)
			if test.text != "" {
				c.read(test.text)
			}
			got := c.dialogue(test.answers...)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.questions) {
				t.Errorf("questions\n%s\nwant\n%s", strings.Join(got, "\n---\n"), strings.Join(test.questions, "\n---\n"))
			}
			if c.values() != test.values {
				t.Errorf("values %q, want %q", c.values(), test.values)
			}
		})
	}
}

// FuzzCollection: whatever is said, each value that stands fits its schema, and nothing breaks.
func FuzzCollection(f *testing.F) {
	for _, text := range []string{"", "A1001 or Ａ１００２", "订单2024-001，要2个", "1,000.5 on 31 January 2026, K1", "yes no", "\xff\xfe", "0x1 -5 .5 ５"} {
		f.Add(text, "no, A1002")
	}
	f.Fuzz(func(t *testing.T, text, answer string) {
		for _, zh := range []bool{false, true} {
			c := collecting(t, zh, true, "order reason why count days price day size code tags note mail page at express room toppings orders", nil)
			c.read(text)
			for range 4 {
				if c.complete() {
					break
				}
				if question := c.engineQuestion(); strings.TrimSpace(question) == "" {
					t.Fatal("the question is empty")
				}
				c.hear(answer)
			}
			for _, field := range c.fields {
				if field.value == nil {
					continue
				}
				if err := field.schema.Check(field.value); err != nil {
					t.Errorf("%s = %v from %q and %q: %v", field.name, field.value, text, answer, err)
				}
				if said := strings.ToLower(width.Fold.String(text + "\n" + answer)); (field.by == findPattern || field.by == findWord) &&
					!strings.Contains(strings.Join(strings.Fields(said), " "), strings.ToLower(machine.FormatValue(field.value))) {
					t.Errorf("%s = %v, which was never said in %q and %q", field.name, field.value, text, answer)
				}
			}
		}
	})
}

// What a model reads is taken where the rules left something open.
func TestExtract(t *testing.T) {
	tests := []struct {
		name, fields string
		again        bool
		standing     machine.Values
		texts        []string // the first answers no question, others the one before
		read         machine.Values
		values, next string // next: what is asked then
	}{
		{name: "what is missing", fields: "order count", texts: []string{"A1001 please"}, read: machine.Values{"order": "A1002", "count": int64(2)},
			values: "order=A1001 count=2"},
		{name: "what is unclear", fields: "order", texts: []string{"A1001 or A1002"}, read: machine.Values{"order": "A1002"}, values: "order=A1002"},
		{name: "null, blanks and empty lists", fields: "city tags note", texts: []string{"hm"},
			read: machine.Values{"city": " \n", "tags": []machine.Value{}, "note": nil}, next: "the city, the tags, a remark"},
		{name: "text without its blanks", fields: "city", texts: []string{"hm"}, read: machine.Values{"city": " Rome "}, values: "city=Rome"},
		{name: "what does not fit without its blanks", fields: "order", texts: []string{"hm"}, read: machine.Values{"order": "B7"}, next: "the order number, such as A1001"},
		{name: "what stands on the first visit", fields: "order count", standing: machine.Values{"count": int64(3)}, texts: []string{"hm"},
			read: machine.Values{"order": "A1001", "count": int64(4)}, values: "order=A1001 count=3"},
		{name: "what stands later", fields: "order count", again: true, standing: machine.Values{"order": "A1001", "count": int64(3)}, texts: []string{"hm"},
			read: machine.Values{"order": "A1001", "count": int64(4)}, values: "order=A1001 count=4"},
		{name: "what the rules changed", fields: "order count", again: true, standing: machine.Values{"order": "A1001"}, texts: []string{"A1002"},
			read: machine.Values{"order": "A1003", "count": int64(4)}, values: "order=A1002 count=4"},
		{name: "a refused correction", fields: "count", again: true, standing: machine.Values{"count": int64(3)}, texts: []string{"50 pieces"},
			read: machine.Values{"count": int64(5)}, values: "count=5"},
		{name: "a refused correction that stays", fields: "count", again: true, standing: machine.Values{"count": int64(3)}, texts: []string{"50 pieces"},
			read: machine.Values{"count": int64(3)}, values: "count=3", next: "what should change"},
		{name: "one by one no longer", fields: "city note insured", texts: []string{"hm", "guess"}, read: machine.Values{"city": "Rome"},
			values: "city=Rome", next: "a remark, whether the parcel is insured"},
	}
	for _, test := range tests {
		c := collecting(t, false, test.again, test.fields, test.standing)
		for i, text := range test.texts {
			if i == 0 {
				c.read(text)
				continue
			}
			c.ask()
			c.hear(text)
		}
		if !c.puzzled() {
			t.Errorf("%s: nobody would ask a model", test.name)
		}
		c.extract(test.read)
		if got := c.values(); got != test.values {
			t.Errorf("%s: %s stands, want %s", test.name, got, test.values)
		}
		next := ""
		if !c.complete() {
			var names []string
			for _, f := range c.ask() {
				names = append(names, c.words.wanted(f.name, f.info))
			}
			if next = strings.Join(names, ", "); next == "" {
				next = "what should change"
			}
		}
		if !strings.Contains(next, test.next) || (next == "") != (test.next == "") {
			t.Errorf("%s: asks for %q, want %q", test.name, next, test.next)
		}
	}
}

// A model is given what says something, and nothing twice.
func TestUnshown(t *testing.T) {
	c := collecting(t, false, true, "order note", nil)
	if got := c.unshown([]string{"no", " ", "Thanks!", "yes", "the first", " the first ", "no, the other"}); strings.Join(got, "|") != "the first|no, the other" {
		t.Errorf("the texts are %q", got)
	}
	c.ask()
	if got := c.unshown([]string{"the first", "no"}); strings.Join(got, "|") != "no" {
		t.Errorf("the answers are %q", got)
	}
}

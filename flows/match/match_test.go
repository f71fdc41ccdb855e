package match

import (
	"reflect"
	"strings"
	"testing"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func TestKeyword(t *testing.T) {
	tests := []struct {
		word, text string
		want       []string
	}{
		{"refund", "I want a refund.", []string{"refund"}},
		{"refund", "REFUND me, Refund!", []string{"REFUND", "Refund"}},
		{"refund", "ｒｅｆｕｎｄ please", []string{"ｒｅｆｕｎｄ"}},
		{"ＲＥＦＵＮＤ", "refund", []string{"refund"}},
		{"refund", "refundable, prerefund, refunds", nil},
		{"refund", "refund2, 2refund, _refund, refund_x, non-refund, refund-free, refund@x.org, a.refund", nil},
		{"refund", "a/refund, refund: refund- refund.", []string{"refund", "refund", "refund", "refund"}},
		{"refund", "退款-refund。我要refund.", []string{"refund", "refund"}},
		{"42", "142 423 42a 42", []string{"42"}},
		{"возврат", "возврат2, iвозвратx", []string{"возврат", "возврат"}}, // other scripts keep to themselves
		{"возврат", "авиа-возврат", nil},
		{"money back", "money  back\nor money\tback", []string{"money  back", "money\tback"}},
		{"money back", "money　back", []string{"money　back"}},
		{"money back", "moneyback", nil},
		{"退款", "我要退款，马上退款", []string{"退款", "退款"}},
		{"退款", "申请退款流程", []string{"退款"}},
		{"iphone", "我的iPhone坏了", []string{"iPhone"}},
		{"iphone", "我的iPhones坏了", nil},
		{"かんたん", "とてもかんたんです", []string{"かんたん"}},
		{"ｶﾀｶﾅ", "カタカナ", []string{"カタカナ"}},
		{"환불", "환불해주세요", []string{"환불"}},
		{"возврат", "Хочу ВОЗВРАТ", []string{"ВОЗВРАТ"}},
		{"возврат", "возвраты", nil},
		{"cafe", "cafe\u0301", nil}, // the accent is part of the letter
		{"café", "CAFÉ", []string{"CAFÉ"}},
		{"K", "5 \u212A", []string{"\u212A"}}, // the sign of Kelvin
		{"🎁", "a 🎁🎁!", []string{"🎁", "🎁"}},
		{"aa", "aaa", nil},
		{"no", "", nil},
		{"ok", "ok\xff", []string{"ok"}},
	}
	for _, test := range tests {
		m, err := Keyword(test.word)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Find(test.text); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q in %q: got %q, want %q", test.word, test.text, got, test.want)
		}
		if m.Source() != test.word {
			t.Errorf("Source gives %q for %q", m.Source(), test.word)
		}
	}
	for _, empty := range []string{"", "  ", "\u3000"} {
		if _, err := Keyword(empty); err == nil {
			t.Errorf("Keyword(%q) is no error", empty)
		}
	}
}

func TestPattern(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          []string
	}{
		{`^A[0-9]{4}$`, "my order A1001, not a2002", []string{"A1001", "a2002"}},
		{`^A[0-9]{4}$`, "A10011 BA1001 xA1001y", nil},
		{`^A[0-9]{4}$`, "订单A1001有问题", []string{"A1001"}},
		{`^A[0-9]{4}$`, "订单Ａ１００１有问题", []string{"Ａ１００１"}},
		// What stands in a longer token is no hit.
		{`A[0-9]{4}`, "1A1001 A1001A A1001x2 A1001_2 _A1001 A1001-B B-A1001 a1001@b.co x.A1001 A1001.pdf é-A1001 A1001é", nil},
		{`A[0-9]{4}`, "A1001. A1002, (A1003) #A1004 order:A1005 A1006/A1007 A1008's A1009- @A1010",
			[]string{"A1001", "A1002", "A1003", "A1004", "A1005", "A1006", "A1007", "A1008", "A1009", "A1010"}},
		{`A[0-9]{4}`, "订单-A1001。A1002.谢谢 ב-A1003", []string{"A1001", "A1002", "A1003"}},
		{`[0-9/ -]{6,}`, "12345-67A", nil}, // nor is a shorter hit that ends at a joint
		{`[0-9]{5}`, "12345.67 and 12345-6", nil},
		{`@[a-z]+`, "bob@shop", []string{"@shop"}}, // who starts with a sign means just that
		{`^\d{4}-\d{3}$`, "我的订单2024-001有质量问题，要退款", []string{"2024-001"}},
		{`^(a|b)$`, "x a b", []string{"a", "b"}},
		{`^a$|^b$`, "x a b", []string{"a", "b"}},
		{`^(?:^a|b$)$`, "x a b", []string{"a", "b"}},
		{`\Aa\z`, "x a", []string{"a"}},
		{`price \$5`, "price $5", []string{"price $5"}},
		{`refund|refunds`, "refunds", []string{"refunds"}},
		{`[0-9]+( [a-z])?`, "12 ab", []string{"12"}}, // the longer hit is blocked, the shorter is not
		{`[0-9]{4}`, "12345", nil},
		{`退款，谢谢`, "退款，谢谢", []string{"退款，谢谢"}},
		{`退款,谢谢`, "退款，谢谢", []string{"退款，谢谢"}},
		{`[，。]`, "a，b。", []string{"，", "。"}},
		{`[^，]+`, "甲，乙", []string{"甲，乙"}}, // a full-width comma is a comma, which [^，] has not excluded
		{`[Ａ-Ｃ]{2}`, "ab AB", []string{"ab", "AB"}},
		{`x*`, "aaa", nil}, // an empty hit is none
		{`(?i)order`, "ORDER", []string{"ORDER"}},
		{`\bid`, "id x-id", []string{"id"}},
		{`.`, "a\xff", []string{"a", "\xff"}},
		{`[a-z]+`, "ab cd", []string{"ab", "cd"}},
	}
	for _, test := range tests {
		m, err := Pattern(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Find(test.text); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s in %q: got %q, want %q", test.pattern, test.text, got, test.want)
		}
		if m.Source() != test.pattern {
			t.Errorf("Source gives %q for %q", m.Source(), test.pattern)
		}
	}
	for pattern, want := range map[string]string{
		"A[": "missing closing ]", "(?=x)": "(?=", `\，`: "escape", "": "finds nothing", "^$": "finds nothing", `\1`: "escape",
	} {
		if _, err := Pattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Pattern(%q) gives %v, want an error with %q", pattern, err, want)
		}
	}
}

func TestMeant(t *testing.T) {
	tests := []struct {
		word, text string
		want       int
	}{
		{"refund", "a refund please", 1},
		{"refund", "no refund please", 0},
		{"refund", "No, refund please", 1}, // the clause ends between them
		{"refund", "I do not want a refund", 0},
		{"refund", "I don't need any refund", 0},
		{"refund", "I don’t like the refund", 0},
		{"refund", "dont refund", 0},
		{"refund", "never refund, but refund", 1},
		{"refund", "without refund", 0},
		{"refund", "I have not got my refund", 1}, // still about a refund
		{"refund", "I know refund and cannot refund", 1},
		{"refund", "a piano refund", 1},
		{"no refund", "no refund please", 1},
		{"morning", "not in the morning", 0},
		{"morning", "not this morning but in the morning", 1},
		{"morning", "NOT MORNING", 0},
		{"exchange", "I do not want to exchange it", 0},
		{"质量问题", "有质量问题", 1},
		{"质量问题", "不是质量问题", 0},
		{"质量问题", "并不是因为质量问题", 0},
		{"质量问题", "并非质量问题", 0},
		{"质量问题", "没有质量问题", 0},
		{"质量问题", "是不是质量问题", 1},
		{"质量问题", "有没有质量问题？", 1},
		{"退款", "不要退款", 0},
		{"退款", "我不想退款", 0},
		{"退款", "我不想要退款", 0},
		{"退款", "不需要退款，不用退款", 0},
		{"退款", "别退款", 0},
		{"退款", "特别退款", 1},
		{"退款", "能不能退款", 1},
		{"退款", "要不要退款", 1},
		{"退款", "要不退款吧", 1},
		{"退款", "退不退款", 1},
		{"退款", "不得不退款", 1},
		{"退款", "我不要换货，要退款", 1},
		{"不想要了", "不想要了", 1},
		{"想要", "不想要", 0},
	}
	for _, test := range tests {
		m, err := Keyword(test.word)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Meant(test.text); len(got) != test.want {
			t.Errorf("%q in %q: got %q, want %d", test.word, test.text, got, test.want)
		}
	}
}

func found(list []Found) string {
	var words []string
	for _, f := range list {
		words = append(words, f.Text+"="+strings.TrimSpace(show(f.Value)))
	}
	return strings.Join(words, " ")
}

func TestIntegers(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2", "2=2"},
		{"I want 2 of them", "2=2"},
		{"我要2个", "2=2"},
		{"我要２个", "２=2"},
		{"-5 degrees", "-5=-5"},
		{"(-5)", "-5=-5"},
		{"+5", "+5=5"},
		{"quantity: 5.", "5=5"},
		{"0", "0=0"},
		{"1,000 pieces", "1,000=1000"},
		{"1,234,567", "1,234,567=1234567"},
		{"3,4", "3=3 4=4"},
		{"1 000 pieces", "1 000=1000"},
		{"1\u00a0234 or 1'000'000", "1\u00a0234=1234 1'000'000=1000000"},
		{"-1 000", "-1 000=-1000"},
		{"2 500", "2=2 500=500"}, // perhaps two bulbs of 500 watts
		{"30 123 000 and 1 0000", "30 123 000=30123000 1=1"},
		{"49 30 123 000", "49=49 30=30 123=123"},
		{"1,00 and 3,05", ""},
		{"my order is A 1001", ""},
		{"I 5 and X 6, a 7", "5=5 6=6 7=7"},
		{"第5", ""},
		{"5月6日 3人", "3=3"},
		{"1 May for 3, on 3 march miles", "3=3 3=3"},
		{"30 February 2024 for 2", "2=2"},
		{"2024,123", "2024=2024 123=123"},
		{"买3，退2", "3=3 2=2"},
		{"No.5", "5=5"},
		{"#5", "5=5"},
		{"50%", "50=50"},
		{"$5 and ¥6", "5=5 6=6"},
		{"13800138000", "13800138000=13800138000"},
		{"9007199254740993", "9007199254740993=9007199254740993"},
		{"99999999999999999999", ""}, // more than a whole number can be
		{"A1001", ""},
		{"a1 1b 5kg", ""},
		{"我的订单2024-001有质量问题，要退款", ""},
		{"order 2024-001", ""},
		{"x-5 and 订单-5", ""},
		{"3-5", ""},
		{"--5", ""},
		{"1.5", ""},
		{"3.0", ""},
		{".5", ""},
		{"v1.2.3 and 1.2.3", ""},
		{"at 10:30", ""},
		{"1/2", ""},
		{"007", ""},
		{"2024-01-31", ""},
		{"2024年1月31日到3个", "3=3"},
		{"31 January 2024", ""},
		{"1_000", ""},
		{"5-star", ""},
		{"...5", "5=5"},
		{"é5", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got := found(Integers(test.text)); got != test.want {
			t.Errorf("Integers(%q): got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct{ text, want string }{
		{"1.5", "1.5=1.5"},
		{"重1.5公斤", "1.5=1.5"},
		{"-0.25", "-0.25=-0.25"},
		{"about .5", ".5=0.5"},
		{"1,000.25", "1,000.25=1000.25"},
		{"3.0", "3.0=3"},
		{"7", "7=7"},
		{"1.2.3 1.5kg 01.5", ""},
		{"2024.1.31", ""},
		{"1.000,50", ""},
		{"1 000.5", "1 000.5=1000.5"},
		{"99.-", "99=99"},
	}
	for _, test := range tests {
		if got := found(Numbers(test.text)); got != test.want {
			t.Errorf("Numbers(%q): got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestDates(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2024-01-31", "2024-01-31=2024-01-31"},
		{"on 2024/1/31.", "2024/1/31=2024-01-31"},
		{"2024.1.31", "2024.1.31=2024-01-31"},
		{"在2024年1月31日之前", "2024年1月31日=2024-01-31"},
		{"２０２４年１月３１号", "２０２４年１月３１号=2024-01-31"},
		{"2024 年 1 月 31 日", "2024 年 1 月 31 日=2024-01-31"},
		{"31.1.2024 or 31/01/2024", "31.1.2024=2024-01-31 31/01/2024=2024-01-31"},
		{"1/31/2024", "1/31/2024=2024-01-31"},
		{"5/5/2024", "5/5/2024=2024-05-05"},
		{"1/2/2024", ""}, // two readings
		{"1.2.2024", ""},
		{"31 January 2024, Feb 1st, 2024", "31 January 2024=2024-01-31 Feb 1st, 2024=2024-02-01"},
		{"Sept. 3 2024", "Sept. 3 2024=2024-09-03"},
		{"2024-02-30", ""},
		{"2024-13-01", ""},
		{"0000-01-01", ""},
		{"2024-01-31-001 and A2024-01-31 and 12024-01-31 and 2024-01-311", ""},
		{"2024-01-31T10:00:00Z", "2024-01-31=2024-01-31"},
		{"1月31日", ""}, // no year
		{"January 2024", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got := found(Dates(test.text)); got != test.want {
			t.Errorf("Dates(%q): got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestNoDates(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2024-02-30", "2024-02-30=no_such_day"},
		{"2024-13-01 and 32.1.2024", "2024-13-01=no_such_day 32.1.2024=no_such_day"},
		{"31 February 2024", "31 February 2024=no_such_day"},
		{"1/2/2024", "1/2/2024=two_readings"},
		{"5月1日", "5月1日=no_year"},
		{"五月一号", "五月一号=no_year"},
		{"十二月三十一日", "十二月三十一日=no_year"},
		{"on 1 May or May 2nd.", "1 May=no_year May 2nd=no_year"},
		{"I may 5 times, march 3 miles", ""},
		{"2024-01-31, 31 January 2024, 2024年1月31日, Jan 31, 2024", ""},
		{"January 2024", ""},
		{"2024-02-30-1", ""},
	}
	for _, test := range tests {
		var got []string
		for _, d := range NoDates(test.text) {
			got = append(got, d.Text+"="+string(d.Why))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("NoDates(%q): got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestNumberWords(t *testing.T) {
	tests := []struct{ text, want string }{
		{"five", "five=5"},
		{"Twelve, please", "Twelve=12"},
		{"we are five people", "five=5"},
		{"zero", "zero=0"},
		{"one", "one=1"},
		{"just one", "one=1"},
		{"make it four", "four=4"},
		{"two or three", "two=2 three=3"},
		{"the blue one, this one, no one", ""},
		{"twenty five, two hundred, twenty-five, five-star, half past five, five thirty, 2 five", ""},
		{"at five", ""},
		{"five o'clock", ""},
		{"often", ""},
		{"五", "五=5"},
		{"五个人", "五=5"},
		{"两位", "两=2"},
		{"十二", "十二=12"},
		{"二十", "二十=20"},
		{"九十九个", "九十九=99"},
		{"零", "零=0"},
		{"一共三人", "三=3"},
		{"我们五个，谢谢", "五=5"},
		{"一个", "一=1"},
		{"一位吧", "一=1"},
		{"我要一个包间", ""},
		{"要一个包间，三位客人", "三=3"},
		{"5月6号两位", "两=2"},
		{"一下，一起，万一，十分", ""},
		{"第三个，周五，星期三，三点", ""},
		{"三百，五六个，两三位，三分之一", ""},
		{"三点五个", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got := found(NumberWords(test.text)); got != test.want {
			t.Errorf("NumberWords(%q): got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestFormats(t *testing.T) {
	const id = "123e4567-e89b-12d3-a456-426614174000"
	tests := []struct{ format, text, want string }{
		{"email", "my mail is Ada@Example.com, thanks", "Ada@Example.com=Ada@Example.com"},
		{"email", "bob@x.org.", "bob@x.org=bob@x.org"},
		{"email", "<bob@x.org>, mailto:amy.lee+x@a-b.co!", "bob@x.org=bob@x.org amy.lee+x@a-b.co=amy.lee+x@a-b.co"},
		{"email", "邮箱是bob@x.org谢谢", "bob@x.org=bob@x.org"},
		{"email", "bob＠x.org，谢谢", "bob＠x.org=bob@x.org"},
		{"email", "a@b, @b.co, x@y@z.org, bob at x.org", ""},
		{"uri", "see https://x.org/a?b=1#c.", "https://x.org/a?b=1#c=https://x.org/a?b=1#c"},
		{"uri", "(https://x.org/a_(b)), <ftp://y.org>!", "https://x.org/a_(b)=https://x.org/a_(b) ftp://y.org=ftp://y.org"},
		{"uri", "网址是https://x.org/a，谢谢", "https://x.org/a=https://x.org/a"},
		{"uri", "https://zh.wikipedia.org/wiki/中国", ""}, // where does it end?
		{"uri", "www.x.org http://", ""},
		{"uuid", "it is " + id + ".", id + "=" + id},
		{"uuid", id + "1 x" + id + " " + id + "-1", ""},
		{"time", "at 9:30Z or 10:30:05+02:00.", "9:30Z=09:30:00Z 10:30:05+02:00=10:30:05+02:00"},
		{"time", "at 10:30, please", "10:30=10:30"}, // no zone: the schema refuses it
		{"time", "1:10:30:40 and 25:00 and 2026-03-05T10:30:00Z", ""},
		{"date-time", "2026-03-05 10:30z", "2026-03-05 10:30z=2026-03-05T10:30:00Z"},
		{"date-time", "on 2026-03-05T10:30:00Z.", "2026-03-05T10:30:00Z=2026-03-05T10:30:00Z"},
		{"date-time", "2026-03-05 10:30", "2026-03-05 10:30=2026-03-05 10:30"},
		{"hostname", "x.org", ""},
	}
	for _, test := range tests {
		if got := found(Formats(test.text, test.format)); got != test.want {
			t.Errorf("%s in %q: got %q, want %q", test.format, test.text, got, test.want)
		}
	}
}

func TestSame(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"The Blue One.", "the  blue one", true}, {"蓝色。", "蓝色", true}, {"ＲＥＤ", "red", true}, {" red!", "Red", true}, {"...", ".", false},
		{"red", "reds", false}, {"C#", "C", false}, {"C++", "c++", true}, {"", "", true}, {"blue?", "blue", false},
	}
	for _, test := range tests {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("Same(%q, %q) is %v", test.a, test.b, got)
		}
	}
}

func TestExact(t *testing.T) {
	const list = `{"type":"array","items":{"type":"string"}}`
	tests := []struct{ lang, schema, text, want string }{
		{"en", `{"type":"boolean"}`, "Nope", "false"},
		{"en", `{"type":"boolean"}`, "TRUE", "true"},
		{"en", `{"type":["boolean","null"]}`, "yes, please", "true"},
		{"zh", `{"type":"boolean"}`, "是", "true"},
		{"en", `{"type":"boolean"}`, "是", "-"},
		{"en", `{"type":"boolean"}`, "yes and no", "-"},
		{"en", `{"type":"string","enum":["red","blue"]}`, "RED.", "red"},
		{"en", `{"type":"string","enum":["red","blue"]}`, "dark red", "-"},
		{"zh", `{"type":"string","enum":["红色","蓝色"]}`, "蓝色。", "蓝色"},
		{"en", `{"type":"string","enum":["red","RED"]}`, "RED", "RED"},
		{"en", `{"enum":["+","-"]}`, "+", "+"},
		{"en", `{"enum":[10,20]}`, "twenty", "20"},
		{"en", `{"enum":[10,20]}`, "15", "-"},
		{"en", `{"enum":["small",20,true]}`, "yes", "true"},
		{"en", `{"type":"string","format":"date"}`, "2026年5月1日", "2026-05-01"},
		{"en", `{"type":"string","format":"date"}`, "on 2026-05-01, please", "2026-05-01"},
		{"en", `{"type":"string","format":"date"}`, "2026-05-01 or 2026-05-02", "-"},
		{"en", `{"type":"string","format":"date"}`, "tomorrow", "-"},
		{"en", `{"type":"string","format":"email"}`, "it is bob@x.org.", "bob@x.org"},
		{"en", `{"type":"string","format":"time"}`, "10:30", "-"},
		{"en", `{"type":"string","pattern":"^A[0-9]{4}$"}`, "sorry, a1001", "A1001"},
		{"en", `{"type":"string","pattern":"^A[0-9]{4}$"}`, "A1001 or A1002", "-"},
		{"en", `{"type":"string","pattern":"^[A-Z ]+$"}`, "new york", "NEW YORK"},
		{"en", `{"type":"integer","maximum":5}`, "five", "5"},
		{"zh", `{"type":"integer"}`, "五", "5"},
		{"en", `{"type":"integer","maximum":5}`, "6", "-"},
		{"en", `{"type":"integer"}`, "1,000.", "1000"},
		{"en", `{"type":"integer"}`, "4 pieces", "-"},
		{"en", `{"type":"number"}`, "2.5", "2.5"},
		{"en", `{"type":"string"}`, "5", "-"},
		{"en", `{}`, "5", "-"},
		{"en", `{"type":"object"}`, "5", "-"},
		{"en", list, "ham, cheese and olives.", `["ham","cheese","olives"]`},
		{"en", list, "ham; cheese, and olives", `["ham","cheese","olives"]`},
		{"zh", list, "火腿、奶酪和橄榄。", `["火腿","奶酪","橄榄"]`},
		{"en", list, "None.", `[]`},
		{"en", list, `["a, b"]`, "-"}, // JSON, which is for others to read
		{"en", list, "brandy", `["brandy"]`},
		{"en", `{"type":"array","items":{"enum":["ham","cheese"]}}`, "HAM, Cheese", `["ham","cheese"]`},
		{"en", `{"type":"array","items":{"enum":["ham","cheese"]}}`, "ham, fish", "-"},
		{"en", `{"type":"array","items":{"type":"integer"},"maxItems":2}`, "1, two", `[1,2]`},
		{"en", `{"type":"array","items":{"type":"integer"},"maxItems":2}`, "1, 2, 3", "-"},
		{"en", `{"type":"array","minItems":1}`, "none", "-"},
	}
	for _, test := range tests {
		s, err := schema.Compile([]byte(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if v, ok := Exact(test.text, s, test.lang); ok {
			got = machine.FormatValue(v)
		}
		if got != test.want {
			t.Errorf("%q by %s: got %s, want %s", test.text, test.schema, got, test.want)
		}
	}
	s, err := schema.Compile([]byte(`{"type":"integer","maximum":5}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := Exact("six", s, "en"); ok || !machine.EqualValues(v, int64(6)) {
		t.Errorf("six, of at most 5, is %v, %v; want 6, which does not fit", v, ok)
	}
}

func TestBooleans(t *testing.T) {
	tests := []struct{ lang, text, want string }{
		{"en", "yes", "yes=true"},
		{"en", "Yes, please", "Yes=true"},
		{"en", "ＹＥＳ！", "ＹＥＳ=true"},
		{"en", "y", "y=true"},
		{"en", "n", "n=false"},
		{"en", "ok go ahead", "ok go ahead=true"},
		{"en", "That is correct.", "That is correct=true"},
		{"en", "that is not correct", "that is not correct=false"},
		{"en", "I do not agree", "I do not agree=false"},
		{"en", "don't confirm", "don't confirm=false"},
		{"en", "not wrong", ""},
		{"en", "please do not", "please do not=false"},
		{"en", "please do", "please do=true"},
		{"zh", "没有问题", "没有问题=true"},
		{"zh", "别确认", "别确认=false"},
		{"en", "No, thanks", "No=false"},
		{"en", "no problem", "no problem=true"},
		{"en", "I don't want that", "I don't want that=false"},
		{"en", "of course not", "of course not=false"},
		{"en", "yes no", "yes no=true yes no=false"},
		{"en", "yes. no.", "yes=true no=false"},
		{"en", "not sure", ""},
		{"en", "is that right?", ""},
		{"en", "please check order no 5", ""},
		{"en", "no one told me", ""},
		{"en", "right now I am busy", ""},
		{"en", "nothing", ""},
		{"en", "是", ""},
		{"zh", "是", "是=true"},
		{"zh", "是的，谢谢", "是的=true"},
		{"zh", "不是", "不是=false"},
		{"zh", "不是的。", "不是的=false"},
		{"zh", "好", "好=true"},
		{"zh", "好的谢谢", "好的谢谢=true"},
		{"zh", "不好", "不好=false"},
		{"zh", "不好意思", ""},
		{"zh", "对", "对=true"},
		{"zh", "对于这个订单", ""},
		{"zh", "不对", "不对=false"},
		{"zh", "对不对？", ""},
		{"zh", "可以吗", ""},
		{"zh", "可以", "可以=true"},
		{"zh", "确认", "确认=true"},
		{"zh", "我不确定", ""},
		{"zh", "取消", "取消=false"},
		{"zh", "取消订单A1001", ""},
		{"zh", "不用了，谢谢", "不用了=false"},
		{"zh", "否", "否=false"},
		{"zh", "没问题", "没问题=true"},
		{"zh", "没有", "没有=false"},
		{"zh", "OK", "OK=true"},
		{"zh", "ok的", "ok的=true"},
		{"zh", "", ""},
	}
	for _, test := range tests {
		if got := found(Booleans(test.text, test.lang)); got != test.want {
			t.Errorf("Booleans(%q, %s): got %q, want %q", test.text, test.lang, got, test.want)
		}
	}
}

func TestYesNo(t *testing.T) {
	const yes, no, neither = "yes", "no", "neither"
	for text, want := range map[string]string{
		"yes": yes, "Yes, please": yes, "ok, go ahead": yes, "sure, thank you very much!": yes, "no problem": yes, "yes. that's right": yes,
		"that would be great": yes, "please go ahead and do it": yes, "y": yes, "OK": yes, "all good": yes, "fine, do it": yes,
		"no": no, "No, the address is wrong": no, "nope, make it 4": no, "don't do it": no, "no thanks": no, "please do not": no,
		"": neither, "maybe": neither, "is that ok?": neither, "yes and no": neither, "not sure": neither,
		"yes, but only 2": neither, "Yes, IF it is blue": neither, "yes, 4 pieces": neither, "yes, the quantity is 4": neither,
		"yes, for order A1002": neither, "yes please, and add one more": neither, "ok, don't refund": neither, "ok, wait": neither,
		"yes, do not refund": neither, "all good, no refund needed": neither, "it's fine, don't bother": neither, "it's fine, leave it": neither,
		"alright, forget it": neither, "that's ok, no need": neither, "ok, hold on": neither, "yes. no wait": neither,
		"ok, I will think about it": neither, "fine, later": neither, "sure, after I check": neither, "yes, once I have the parcel": neither,
		"right, the quantity is wrong": neither, "sure, what does it cost?": neither, "ok is the wrong word": neither,
	} {
		testYesNo(t, text, "en", want)
	}
	for text, want := range map[string]string{
		"好的": yes, "好的，谢谢": yes, "好的，麻烦尽快": yes, "没问题": yes, "可以，请执行吧": yes, "是的。": yes, "对": yes, "ok": yes,
		"不": no, "不用了": no, "不要，地址错了": no, "别": no, "否": no,
		"好的，别退了": neither, "行，不要退": neither, "OK，不用退了": neither, "好的，等等": neither, "可以，再等等": neither,
		"好的，我再想想": neither, "行，明天再说": neither, "好，只退2件": neither, "好的，多少钱？": neither, "对，数量是4": neither,
		"是的，订单号是A1002": neither, "好的，不过改成两位": neither, "可以，但要快": neither, "好吗": neither, "是不是": neither,
	} {
		testYesNo(t, text, "zh", want)
	}
}

func testYesNo(t *testing.T, text, lang, want string) {
	t.Helper()
	got := "neither"
	if yes, ok := YesNo(text, lang); ok && yes {
		got = "yes"
	} else if ok {
		got = "no"
	}
	if got != want {
		t.Errorf("YesNo(%q, %s) is %s, want %s", text, lang, got, want)
	}
}

func TestBooleansOf(t *testing.T) {
	tests := []struct{ lang, text, want string }{
		{"en", "gift wrap: yes, 2", "gift wrap: yes=true"},
		{"en", "no gift wrap, 2", "no gift wrap=false"},
		{"en", "Gift Wrap = no", "Gift Wrap = no=false"},
		{"en", "gift wrap? Yes!", "gift wrap? Yes=true"},
		{"en", "2, without gift wrap", "without gift wrap=false"},
		{"en", "please do not gift wrap it", "please do not gift wrap it=false"},
		{"en", "gift wrap. yes", ""},
		{"en", "gift wrap for 2: yes", ""},
		{"en", "yes, but only 2", ""},
		{"en", "no, 2", ""},
		{"en", "no gift wrap?", ""},
		{"en", "gift wrap", ""},
		{"en", "no giftwrap", ""},
		{"en", "gift wrap yes and no", ""},
		{"zh", "不要包间，3个", "不要包间=false"},
		{"zh", "我要包间，3人", "我要包间=true"},
		{"zh", "包间：不用，3人", "包间：不用=false"},
		{"zh", "要，3人", ""},
	}
	for _, test := range tests {
		if got := found(BooleansOf(test.text, test.lang, "gift wrap", "包间")); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

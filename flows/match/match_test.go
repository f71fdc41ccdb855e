package match

import (
	"reflect"
	"strings"
	"testing"
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
		{"refund", "refund2 and 2refund", []string{"refund", "refund"}}, // a digit is no letter
		{"42", "142 423 42a 42", []string{"42", "42"}},
		{"refund", "non-refund/refund_x", []string{"refund", "refund"}},
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
		{"!", "no! yes!!", []string{"!", "!", "!"}},
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
		{`A[0-9]{4}`, "1A1001B", []string{"A1001"}}, // kinds differ on both sides
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
		{`\bid`, "id x-id", []string{"id", "id"}},
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

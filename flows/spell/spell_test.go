package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"refund", "exchange", "question", "order_id", "to"}
	tests := []struct{ word, want string }{
		{"refnd", "refund"},
		{"refudn", "refund"}, // swapped neighbours are one edit
		{"Refund", "refund"},
		{"orderId", "order_id"},
		{"order-id", "order_id"},
		{"exchang", "exchange"},
		{"ot", "to"},
		{"banana", ""},
		{"answer", ""},
		{"x", ""},
		{"", ""},
		{"refund", ""}, // it is known: nothing else was meant
		{"退款", ""},
	}
	for _, test := range tests {
		if got := Nearest(test.word, known); got != test.want {
			t.Errorf("Nearest(%q) = %q, want %q", test.word, got, test.want)
		}
	}
}

func TestNearestDoesNotDependOnOrder(t *testing.T) {
	if a, b := Nearest("cot", []string{"cat", "cut"}), Nearest("cot", []string{"cut", "cat"}); a != b || a != "cat" {
		t.Errorf("got %q and %q, want cat twice", a, b)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("refnd", "refund")
	f.Add("\xff", "世界")
	f.Fuzz(func(t *testing.T, word, known string) {
		if got := Nearest(word, []string{known}); got != "" && got != known {
			t.Errorf("Nearest(%q, %q) = %q, which is not a known word", word, known, got)
		}
	})
}

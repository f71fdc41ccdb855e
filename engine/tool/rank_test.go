package tool

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func specs(t testing.TB) []machine.ToolSpec {
	parameters, err := schema.Compile([]byte(`{"type":"object","properties":{"tracking_number":{"type":"string","description":"number of the parcel"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return []machine.ToolSpec{
		{Name: "lookup_order", Description: "Look up one order by its number."},
		{Name: "refund_order", Description: "Refund one paid order in full."},
		{Name: "weather", Description: "The weather of a city, today and tomorrow."},
		{Name: "trace", Description: "Where it is now.", Parameters: parameters},
		{Name: "tuikuan", Description: "为客户的订单退款。"},
		{Name: "tianqi", Description: "查询城市的天气。"},
		{Name: "sendMail", Description: "Send a message to a customer."},
	}
}

func TestTheBestToolsAreFound(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"I want a refund", 1, "refund_order"},
		{"What about my orders?", 2, "lookup_order refund_order"},
		{"Where is my parcel?", 1, "trace"},
		{"will it rain in the city tomorrow", 1, "weather"},
		{"请给我的订单退款", 1, "tuikuan"},
		{"上海天气怎么样", 1, "tianqi"},
		{"send them mail", 1, "sendMail"},
		{"nothing that fits", 2, "lookup_order refund_order"}, // of equals the earlier
		{"refund", 99, "lookup_order refund_order weather trace tuikuan tianqi sendMail"},
		{"", 1, "lookup_order"},
	} {
		if got := strings.Join(Best(tc.text, specs(t), tc.n), " "); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.text, got, tc.want)
		}
	}
}

// Whatever is asked, n different tools come out, in the written order, the same every time.
func TestTheChoiceIsStable(t *testing.T) {
	all := specs(t)
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.String().Draw(t, "text"), rapid.IntRange(1, 9).Draw(t, "n")
		got := Best(text, all, n)
		if fmt.Sprint(got) != fmt.Sprint(Best(text, all, n)) || len(got) != min(n, len(all)) {
			t.Fatalf("chose %v", got)
		}
		place := -1
		for _, name := range got {
			for i, spec := range all {
				if spec.Name == name {
					if i <= place {
						t.Fatalf("chose %v", got)
					}
					place = i
				}
			}
		}
	})
}

package tokens_test

import (
	"fmt"
	"strings"

	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
)

func Example() {
	counter := tokens.For("openai/gpt-4o")
	fmt.Println("text:", counter.Count("tiktoken is great!"))

	request := model.Request{Messages: []model.Message{{Role: model.User, Text: "tiktoken is great!"}}}
	fmt.Println("request:", tokens.Request(counter, request, false))

	window, known := tokens.Window("gpt-4o-mini")
	fmt.Println("window:", window, known)

	cut, _ := tokens.Cut(counter, strings.Repeat("all work and no play ", 400), 25)
	fmt.Println(cut)
	// Output:
	// text: 6
	// request: 13
	// window: 128000 true
	// all work and no… [cut: 1,994 of 2,001 tokens left out] …no play
}

func ExampleCorrection() {
	var c tokens.Correction
	for _, reported := range []int64{1_210, 1_190, 2_900, 1_200} { // the endpoint's figures for what was counted as 1,000
		c = c.Add(1_000, reported)
	}
	fmt.Println(c.Apply(10_000))
	// Output: 12000
}

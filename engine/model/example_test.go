package model_test

import (
	"fmt"

	"flowctl/engine/model"
)

func ExampleObject() {
	answer, err := model.Object("<think>Or {\"intent\": \"question\"}?</think>\n```json\n{\"intent\": \"refund\"}\n```")
	fmt.Println(string(answer), err)
	_, err = model.Object(`{"intent": "refund"} or {"intent": "question"}`)
	fmt.Println(err)
	// Output:
	// {"intent": "refund"} <nil>
	// the answer holds two different JSON objects; exactly one is wanted
}

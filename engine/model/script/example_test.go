package script_test

import (
	"context"
	"fmt"

	"flowctl/engine/model"
	"flowctl/engine/model/script"
)

func ExampleParse() {
	s, err := script.Parse("answers.yaml", []byte("answers:\n  - {state: greet, text: Hello.}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	greet := model.Origin{State: "greet", Visit: 1, Turn: 1}
	resp, err := s.Generate(context.Background(), model.Request{Origin: greet})
	fmt.Println(resp.Message.Text, err)
	fmt.Println(s.Leftovers([]model.Origin{greet}))
	fmt.Println(s.Leftovers(nil))
	// Output:
	// Hello. <nil>
	// []
	// [answers.yaml:2:5: nobody asked for this answer: state greet, any visit, turn 1]
}

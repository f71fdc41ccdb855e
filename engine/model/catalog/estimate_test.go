package catalog

import (
	"errors"
	"net/http"
	"testing"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
)

// said is an answer without a word on what it used, or with some.
func said(usage string) modeltest.Reply {
	return modeltest.Reply{Body: `{"model":"x"` + usage + `,"choices":[{"index":0,"message":{"role":"assistant","content":"It is done.","reasoning_content":"so it is"},"finish_reason":"stop"}]}`}
}

// What an answer used is counted where the endpoint says nothing of it, as the request goes out; a report stands.
func TestUsageIsEstimatedWhereTheEndpointIsSilent(t *testing.T) {
	c := tokens.For("x")
	hello := model.Request{HowTo: "Answer in plain text.", Messages: []model.Message{{Role: model.User, Text: "What is the matter with my order?"}},
		Tools: []model.Tool{{Name: "look", Description: "Look it up."}}}
	answer := tokens.Message(c, model.Message{Text: "It is done.", Reasoning: "so it is"}, true)
	for _, test := range []struct {
		name      string
		reply     modeltest.Reply
		change    func(*openai.Config)
		estimated bool
		prompt    int64
		output    int64
	}{
		{"silent", said(""), nil, true, tokens.Request(c, hello, false), answer},
		{"null", said(`,"usage":null`), nil, true, tokens.Request(c, hello, false), answer},
		{"zero", said(`,"usage":{"prompt_tokens":0,"completion_tokens":0}`), nil, true, tokens.Request(c, hello, false), answer},
		{"reported", said(`,"usage":{"prompt_tokens":7,"completion_tokens":3}`), nil, false, 7, 3},
		{"half reported", said(`,"usage":{"prompt_tokens":7}`), nil, false, 7, 0},
		{"in text", modeltest.Reply{Body: `{"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"{\"action\":\"finish\",\"final_answer\":\"so\"}"},"finish_reason":"stop"}]}`},
			func(cfg *openai.Config) { cfg.Protocol = openai.ProtocolJSON }, true,
			tokens.Request(c, (&model.JSONProtocol{}).Sent(hello), false), tokens.Message(c, model.Message{Text: `{"action":"finish","final_answer":"so"}`}, true)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := modeltest.New(modeltest.Options{})
			defer s.Close()
			s.Push(test.reply)
			cfg := openai.Config{BaseURL: s.URL, Model: "x", Prices: &model.Prices{Prompt: 1e6, Completion: 1e6}}
			if test.change != nil {
				test.change(&cfg)
			}
			resp := ask(t, open(t, New(Options{}), flow("h", "/d", endpoint("a", cfg)), model.Use{Name: "a"}), hello)
			if resp.Estimated != test.estimated || resp.Usage.PromptTokens != test.prompt || resp.Usage.CompletionTokens != test.output {
				t.Errorf("estimated %v, %+v; want %v, %d and %d tokens", resp.Estimated, resp.Usage, test.estimated, test.prompt, test.output)
			}
			if want := float64(test.prompt + test.output); resp.Cost == nil || *resp.Cost != want {
				t.Errorf("it costs %v, want %v", resp.Cost, want)
			}
		})
	}
}

// An exchange that fails is not estimated: nobody knows whether it used anything.
func TestNothingIsEstimatedOfAFailure(t *testing.T) {
	s := modeltest.New(modeltest.Options{})
	defer s.Close()
	s.Push(modeltest.Reply{Status: http.StatusBadRequest, Body: `{"error":{"message":"no"}}`})
	opened := open(t, New(Options{}), flow("h", "/d", endpoint("a", openai.Config{BaseURL: s.URL, Model: "x"})), model.Use{Name: "a"})
	resp, err := opened.Generate(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}})
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Usage != (model.Usage{}) || resp.Estimated || resp.Usage != (model.Usage{}) {
		t.Errorf("gave %+v, %v", resp, err)
	}
}

// A model without key is ready where one that stands in for it can be called; it says so only of the chain.
func TestAChainIsReadyWithItsFallback(t *testing.T) {
	s := modeltest.New(modeltest.Options{})
	defer s.Close()
	s.Push(modeltest.Reply{Text: "from the spare"})
	m := flow("h", "/d", endpoint("first", openai.Config{Model: "m", APIKeyEnv: "MINE", Fallback: []string{"spare"}}),
		endpoint("spare", openai.Config{Model: "n", BaseURL: s.URL}), endpoint("alone", openai.Config{Model: "m", APIKeyEnv: "MINE", Fallback: []string{"lost"}}),
		endpoint("lost", openai.Config{Model: "m", APIKeyEnv: "MINE"}))
	c := New(Options{})
	for name, want := range map[string]struct {
		ready machine.ModelCase
		own   bool
	}{"first": {machine.ModelReady, false}, "spare": {machine.ModelReady, true}, "alone": {machine.ModelMissing, false}} {
		if ready, _ := c.Case(m, name); ready != want.ready || c.Ready(m, name) != want.own || (c.Check(m, name) == nil) != want.own {
			t.Errorf("%s: %s, ready itself %v, want %+v", name, ready, c.Ready(m, name), want)
		}
	}
	if resp := ask(t, open(t, c, m, model.Use{Name: "first"}), model.Request{}); resp.Message.Text != "from the spare" || resp.By != "spare" {
		t.Errorf("gave %+v", resp)
	}
}

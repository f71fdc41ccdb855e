package openai

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
)

func choices(message, finish string) string {
	return `{"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":` + finish + `}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
}

// The ways in which endpoints write an answer.
func TestAnswersOfEndpoints(t *testing.T) {
	call := func(c ...model.Call) model.Message { return model.Message{Role: model.Assistant, Calls: c} }
	said := func(text string) model.Message { return model.Message{Role: model.Assistant, Text: text} }
	const f = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	one := call(model.Call{ID: "c", Name: "f", Args: "{}"})
	for _, test := range []struct {
		name, body string
		want       model.Message
		finish     model.Finish
	}{
		{"plain", choices(`{"role":"assistant","content":"Hi"}`, `"stop"`), said("Hi"), model.Stop},
		{"blanks first", "\n\n \r\n" + choices(`{"content":"Hi"}`, `"stop"`), said("Hi"), model.Stop},
		{"byte order mark", "\ufeff" + choices(`{"content":"Hi"}`, `"stop"`), said("Hi"), model.Stop},
		{"more behind", choices(`{"content":"Hi"}`, `"stop"`) + "\n\n", said("Hi"), model.Stop},
		{"content null", choices(`{"content":null,"tool_calls":[`+f+`]}`, `"tool_calls"`), one, model.Stop},
		{"content missing", choices(`{"tool_calls":[`+f+`]}`, `"tool_calls"`), one, model.Stop},
		{"no tool calls, null", choices(`{"content":"Hi","tool_calls":null,"refusal":null,"reasoning_content":null}`, `null`), said("Hi"), model.Stop},
		{"calls and stop", choices(`{"content":"","tool_calls":[`+f+`]}`, `"stop"`), one, model.Stop},
		{"calls and null", choices(`{"content":"","tool_calls":[`+f+`]}`, `null`), one, model.Stop},
		{"calls and function_call", choices(`{"content":"","tool_calls":[`+f+`]}`, `"function_call"`), one, model.Stop},
		{"calls and a word of its own", choices(`{"content":"","tool_calls":[`+f+`]}`, `"eos"`), one, model.Stop},
		{"calls cut", choices(`{"content":"","tool_calls":[`+f+`]}`, `"length"`), one, model.Length},
		{"cut in other words", choices(`{"content":"Hi"}`, `"max_tokens"`), said("Hi"), model.Length},
		{"no calls and tool_calls", choices(`{"content":"","tool_calls":[]}`, `"tool_calls"`), said(""), model.Stop},
		{"the old form", choices(`{"content":null,"function_call":{"name":"f","arguments":"{}"}}`, `"function_call"`), call(model.Call{Name: "f", Args: "{}"}), model.Stop},
		{"ids twice, empty, null, a number", choices(`{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"1"}},{"id":"c","function":{"name":"f","arguments":"2"}},`+
			`{"id":"","function":{"name":"f","arguments":"3"}},{"id":null,"function":{"name":"f","arguments":"4"}},{"id":5,"function":{"name":"f","arguments":"5"}},{"function":{"name":"f","arguments":"6"}}]}`, `"stop"`),
			call(model.Call{ID: "c", Name: "f", Args: "1"}, model.Call{ID: "c", Name: "f", Args: "2"}, model.Call{Name: "f", Args: "3"},
				model.Call{Name: "f", Args: "4"}, model.Call{ID: "5", Name: "f", Args: "5"}, model.Call{Name: "f", Args: "6"}), model.Stop},
		{"arguments an object, null, missing", choices(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n": 9007199254740993}}},{"id":"b","function":{"name":"f","arguments":null}},{"id":"c","function":{"name":"f"}}]}`, `"stop"`),
			call(model.Call{ID: "a", Name: "f", Args: `{"n":9007199254740993}`}, model.Call{ID: "b", Name: "f"}, model.Call{ID: "c", Name: "f"}), model.Stop},
		{"list with thinking", choices(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm {\"outcome\":\"x\"}"}]},{"type":"text","text":"{\"outcome\":"},{"type":"text","text":"\"ok\"}"}]}`, `"stop"`),
			model.Message{Role: model.Assistant, Text: `{"outcome":"ok"}`, Reasoning: `hm {"outcome":"x"}`}, model.Stop},
		{"list with other parts", choices(`{"content":["a",{"text":"b"},{"type":"reference","reference_ids":[1]},{"type":"reasoning","text":"why"},null,7]}`, `"stop"`),
			model.Message{Role: model.Assistant, Text: "ab", Reasoning: "why"}, model.Stop},
		{"empty list", choices(`{"content":[]}`, `"stop"`), said(""), model.Stop},
		{"reasoning_content", choices(`{"content":"Hi","reasoning_content":" why\n"}`, `"stop"`), model.Message{Role: model.Assistant, Text: "Hi", Reasoning: " why\n"}, model.Stop},
		{"reasoning", choices(`{"content":"Hi","reasoning":"why"}`, `"stop"`), model.Message{Role: model.Assistant, Text: "Hi", Reasoning: "why"}, model.Stop},
		{"both", choices(`{"content":"Hi","reasoning":"why","reasoning_content":"why"}`, `"stop"`), model.Message{Role: model.Assistant, Text: "Hi", Reasoning: "why"}, model.Stop},
		{"error null", `{"error":null,` + choices(`{"content":"Hi"}`, `"stop"`)[1:], said("Hi"), model.Stop},
		{"unknown fields", `{"object":7,"created":"now","choices":[{"index":"0","logprobs":[],"message":{"role":"assistant","content":"Hi","audio":{}},"finish_reason":"stop"}]}`, said("Hi"), model.Stop},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := at(t, serve(t, modeltest.Options{}, modeltest.Reply{Body: test.body}), Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi})
			if err != nil || !reflect.DeepEqual(got.Message, test.want) || got.Finish != test.finish {
				t.Errorf("gave %+v, %v\nwant %+v", got, err, test.want)
			}
			// An endpoint may answer as a whole though it was asked for a stream.
			var watched string
			again, err := at(t, serve(t, modeltest.Options{}, modeltest.Reply{Body: test.body}), Config{}, Options{}).
				Generate(t.Context(), model.Request{Messages: hi, Stream: func(s string) { watched += s }})
			if err != nil || !reflect.DeepEqual(again, got) || watched != got.Message.Text {
				t.Errorf("for a stream gave %+v, %v, watched %q", again, err, watched)
			}
		})
	}
}

// What looks like success and is none.
func TestNoAnswers(t *testing.T) {
	for _, test := range []struct {
		name, body string
		class      model.Class
		want       string
	}{
		{"error 502", `{"error":{"message":"upstream","code":502}}`, model.Server, "upstream"},
		{"error 429", `{"error":{"message":"slow down","code":"429"}}`, model.Rate, "slow down"},
		{"error 400", `{"error":{"message":"too long","code":400}}`, model.BadRequest, "too long"},
		{"error 401", `{"error":{"message":"no","code":401}}`, model.Authentication, "no"},
		{"quota", `{"error":{"message":"broke","code":"insufficient_quota"}}`, model.Quota, "broke"},
		{"overloaded", `{"error":{"message":"busy","type":"overloaded_error"}}`, model.Server, "busy"},
		{"rate in words", `{"error":{"message":"busy","type":"rate_limit_error"}}`, model.Rate, "busy"},
		{"filter", `{"error":{"message":"harmful","code":"content_filter"}}`, model.Blocked, "harmful"},
		{"error in text", `{"error":"something broke"}`, model.Malformed, "something broke"},
		{"error beside choices", `{"choices":[],"error":{"message":"upstream","code":503}}`, model.Server, "upstream"},
		{"error in the choice", `{"choices":[{"message":{"content":"Hi"},"error":{"message":"upstream","code":502}}]}`, model.Server, "upstream"},
		{"finish error", choices(`{"content":"Hi"}`, `"error"`), model.Server, "broke off"},
		{"no resources", choices(`{"content":""}`, `"insufficient_system_resource"`), model.Server, "overloaded"},
		{"choices empty", `{"choices":[]}`, model.Malformed, "no choices"},
		{"choices null", `{"choices":null}`, model.Malformed, "no choices"},
		{"choices missing", `{"id":"x"}`, model.Malformed, "no choices"},
		{"choices no list", `{"choices":{}}`, model.Malformed, "cannot be read"},
		{"message null", `{"choices":[{"message":null}]}`, model.Malformed, "no message"},
		{"message missing", `{"choices":[{"text":"Hi"}]}`, model.Malformed, "no message"},
		{"null", `null`, model.Malformed, "no choices"},
		{"nothing", ``, model.Malformed, "with nothing"},
		{"blanks", "\n\n\n", model.Malformed, "with nothing"},
		{"page", "\n<!DOCTYPE html><html><body>Login</body></html>", model.Malformed, "base_url"},
		{"text", "OK", model.Malformed, "begins with OK"},
		{"cut", `{"choices":[{"message":{"content":"H`, model.Malformed, "cannot be read"},
		{"filtered", choices(`{"content":null}`, `"content_filter"`), model.Blocked, "refused to answer"},
		{"filtered with text", choices(`{"content":"I cannot help"}`, `"content_filter"`), model.Blocked, "refused to answer"},
		{"refusal", choices(`{"content":null,"refusal":"I will not."}`, `"stop"`), model.Blocked, "I will not."},
		{"refusal in a list", choices(`{"content":[{"type":"refusal","refusal":"Never."}]}`, `"stop"`), model.Blocked, "Never."},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, modeltest.Options{})
			for _, req := range []model.Request{{Messages: hi}, {Messages: hi, Stream: func(string) {}}} {
				if req.Stream != nil && (test.body == "OK" || test.body == "null" || strings.TrimSpace(test.body) == "") {
					continue // in a stream these are other faults
				}
				body := test.body
				if body == "" {
					body = "\n" // an empty body stands for a made one in the test endpoint
				}
				s.Push(modeltest.Reply{Body: body})
				_, err := at(t, s, Config{}, Options{}).Generate(t.Context(), req)
				var e *model.Error
				if !errors.As(err, &e) || e.Class != test.class || !strings.Contains(err.Error(), test.want) {
					t.Errorf("gave %v (%+v), want %s with %q", err, e, test.class, test.want)
				}
				if !strings.HasPrefix(err.Error(), "127.0.0.1:") {
					t.Errorf("%v does not name the endpoint", err)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for body, want := range map[string]model.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`: {PromptTokens: 10, CompletionTokens: 5, CachedTokens: 4, ReasoningTokens: 3},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":6,"prompt_tokens_details":null}`:                                       {PromptTokens: 10, CompletionTokens: 5, CachedTokens: 6},
		`{"prompt_tokens":10.0,"completion_tokens":null}`:                                                                                           {PromptTokens: 10},
		`{"prompt_tokens":-1,"completion_tokens":"many"}`:                                                                                           {},
		`null`: {},
	} {
		got, err := readWhole([]byte(`{"choices":[{"message":{"content":"Hi"}}],"usage":` + body + `}`))
		if err != nil || got.Usage != want {
			t.Errorf("%s gave %+v, %v", body, got.Usage, err)
		}
	}
}

func FuzzReadWhole(f *testing.F) {
	f.Add([]byte(choices(`{"content":[{"type":"text","text":"x"}],"tool_calls":[{"id":1,"function":{"arguments":{}}}]}`, `"stop"`)))
	f.Add([]byte(`{"error":[{"message":[]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readWhole(body)
		var e *model.Error
		if err != nil && (!errors.As(err, &e) || e.Error() == "") || err == nil && got.Message.Role != model.Assistant {
			t.Errorf("gave %+v, %v", got, err)
		}
	})
}

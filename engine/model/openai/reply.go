package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"flowctl/engine/model"
)

// reply is an answer, or one event of a stream, as endpoints send it.
type reply struct {
	Model   loose    `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
}

type choice struct {
	Index        loose           `json:"index"`
	Message      *message        `json:"message"`
	Delta        *message        `json:"delta"`
	FinishReason loose           `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type message struct {
	Content          content   `json:"content"`
	Refusal          loose     `json:"refusal"`
	ReasoningContent loose     `json:"reasoning_content"`
	Reasoning        loose     `json:"reasoning"`
	ToolCalls        []call    `json:"tool_calls"`
	FunctionCall     *function `json:"function_call"` // the form before there were several
}

type call struct {
	Index    loose    `json:"index"`
	ID       loose    `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      loose `json:"name"`
	Arguments loose `json:"arguments"`
}

// reasoning gives what the endpoint says beside the answer. It has several names; some endpoints send two of them.
func (m *message) reasoning() string {
	for _, text := range []string{string(m.ReasoningContent), string(m.Reasoning), m.Content.reasoning} {
		if text != "" {
			return text
		}
	}
	return ""
}

func (m *message) refusal() string {
	if m.Refusal != "" {
		return string(m.Refusal)
	}
	return m.Content.refusal
}

func (m *message) calls() []call {
	if m.FunctionCall != nil && len(m.ToolCalls) == 0 {
		return []call{{Function: *m.FunctionCall}}
	}
	return m.ToolCalls
}

type usage struct {
	figures
}

// UnmarshalJSON implements json.Unmarshaler. Figures that are none are no reason to lose an answer.
func (u *usage) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &u.figures) != nil {
		u.figures = figures{}
	}
	return nil
}

type figures struct {
	Prompt        count `json:"prompt_tokens"`
	Completion    count `json:"completion_tokens"`
	CacheHit      count `json:"prompt_cache_hit_tokens"`
	PromptDetails struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *usage) tokens() model.Usage {
	if u == nil {
		return model.Usage{}
	}
	return model.Usage{
		PromptTokens: int64(u.Prompt), CompletionTokens: int64(u.Completion),
		CachedTokens: int64(max(u.PromptDetails.Cached, u.CacheHit)), ReasoningTokens: int64(u.CompletionDetails.Reasoning),
	}
}

// readWhole reads an answer that came as a whole.
func readWhole(body []byte) (model.Response, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return model.Response{}, malformed("it answered with nothing")
	}
	if body[0] == '<' {
		return model.Response{}, malformed("it answered with a web page, not with JSON: look at base_url, which mostly ends in /v1; the page begins with %s", readable(string(body[:min(len(body), 200)])))
	}
	if p, ok := errorIn(body, false); ok {
		return model.Response{}, p.failure()
	}
	var r reply
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&r); err != nil {
		return model.Response{}, malformed("its answer cannot be read (%v); it begins with %s", err, readable(string(body[:min(len(body), 200)])))
	}
	if len(r.Choices) == 0 {
		return model.Response{}, malformed("its answer holds no choices")
	}
	c := r.Choices[0]
	if p, ok := problemOf(c.Error); ok {
		return model.Response{}, p.failure()
	}
	if c.Message == nil {
		return model.Response{}, malformed("its answer holds no message")
	}
	a := answer{text: c.Message.Content.text, reasoning: c.Message.reasoning(), refusal: c.Message.refusal(), finish: string(c.FinishReason)}
	for _, called := range c.Message.calls() {
		a.calls = append(a.calls, model.Call{ID: string(called.ID), Name: string(called.Function.Name), Args: string(called.Function.Arguments)})
	}
	return a.response(r.Model, r.Usage)
}

// What the reasons mean that an answer does not end well for. Once one of them has come in a stream, no later one counts.
const (
	wasCut     = "cut"
	wasBlocked = "blocked"
)

var finishes = map[string]string{
	"content_filter": wasBlocked, "content_filtered": wasBlocked, "safety": wasBlocked, "refusal": wasBlocked,
	"length": wasCut, "max_tokens": wasCut, "model_length": wasCut,
}

// sticks says whether a reason counts whatever comes behind it.
func sticks(finish string) bool { return finishes[strings.ToLower(finish)] != "" }

// answer is what was read, whichever way it came.
type answer struct {
	text, reasoning, refusal, finish string
	calls                            []model.Call
}

// response says how an answer ended. The presence of calls counts: endpoints say stop, nothing, or anything else to them.
func (a answer) response(name loose, used *usage) (model.Response, error) {
	out := model.Response{
		Message: model.Message{Role: model.Assistant, Text: a.text, Reasoning: a.reasoning, Calls: a.calls},
		Finish:  model.Stop, Usage: used.tokens(), Model: string(name),
	}
	switch kind := finishes[strings.ToLower(a.finish)]; {
	case kind == wasBlocked:
		return model.Response{}, a.blocked(out)
	case kind == wasCut:
		out.Finish = model.Length
	case a.finish == "error":
		return model.Response{}, &model.Error{Class: model.Server, Err: errors.New("it broke off with an error that it does not name")}
	case a.finish == "insufficient_system_resource":
		return model.Response{}, &model.Error{Class: model.Server, Err: errors.New("it broke off because it is overloaded")}
	}
	if strings.TrimSpace(a.refusal) != "" {
		return model.Response{}, a.blocked(out)
	}
	return out, nil
}

// blocked says that the provider refused to answer, and what that has cost all the same.
func (a answer) blocked(out model.Response) error {
	err := blocked(a.refusal)
	err.Usage, err.ID = out.Usage, out.Model
	return err
}

// content is the text of a message: a string, nothing, or a list of parts, of which some are no answer.
type content struct {
	text, reasoning, refusal string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if data[0] != '[' || json.Unmarshal(data, &parts) != nil {
		parts = []json.RawMessage{data}
	}
	for _, raw := range parts {
		c.add(raw)
	}
	return nil
}

func (c *content) add(raw json.RawMessage) {
	var part struct {
		Type     string  `json:"type"`
		Text     loose   `json:"text"`
		Refusal  loose   `json:"refusal"`
		Thinking content `json:"thinking"` // a string, or parts again
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		c.text += text
		return
	}
	if json.Unmarshal(raw, &part) != nil {
		return
	}
	switch part.Type {
	case "thinking", "reasoning":
		c.reasoning += part.Thinking.text + string(part.Text)
	case "refusal":
		c.refusal += string(part.Refusal)
	case "", "text", "output_text":
		c.text += string(part.Text)
	}
}

// loose is a string that some endpoints write as something else: null is "", and any other value its JSON.
type loose string

// UnmarshalJSON implements json.Unmarshaler.
func (l *loose) UnmarshalJSON(data []byte) error {
	var text string
	switch {
	case string(data) == "null":
	case json.Unmarshal(data, &text) == nil:
		*l = loose(text)
	default:
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			return err
		}
		*l = loose(compact.String())
	}
	return nil
}

// number reads a loose whole number.
func (l loose) number() (int, bool) {
	n, err := strconv.Atoi(string(l))
	return n, err == nil
}

// count is a number of tokens. What is none counts as nothing.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return nil
	}
	*c = count(min(n, 1e15))
	return nil
}

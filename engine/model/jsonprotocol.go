package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// JSONProtocol lets a model that has no tool calls of its own make them in text. Each of its answers is one JSON object
//
//	{"thought": "…", "action": "use_tool", "tool_name": "…", "tool_args": {…}}
//	{"thought": "…", "action": "finish", "final_answer": …}
//
// which becomes the same Response that a model with tool calls gives: a call without id, the text of the final answer,
// or, where the request offers FinishTool, a call of that. An answer that is no such object has a Problem. The request is
// put the other way round: the tools stand in the system text, calls are objects of the above form, and a tool's result is
// what the user says next. A request that has neither tools nor a schema for its answer goes to the model in plain text.
//
// The text of an answer is not streamed while it comes, since it is the object; it is given to Stream once, at the end.
type JSONProtocol struct {
	Model Model
}

// The actions of the protocol.
const (
	actionUseTool = "use_tool"
	actionFinish  = "finish"
)

// Sent gives a request as it is put to the model. It changes nothing that the request points to.
func (p *JSONProtocol) Sent(req Request) Request {
	sent := req
	sent.Messages = asText(req.Messages, !plain(req))
	if plain(req) {
		return sent
	}
	sent.HowTo = ""
	tools, final := splitTools(req)
	sent.Tools = nil
	sent.Messages = withInstructions(sent.Messages, instructions(tools, final))
	sent.Answer = protocolSchema(tools, final)
	return sent
}

// plain says whether a request is put in plain text, without the protocol's object.
func plain(req Request) bool { return len(req.Tools) == 0 && req.Answer == nil }

// Generate implements Model.
func (p *JSONProtocol) Generate(ctx context.Context, req Request) (Response, error) {
	sent := p.Sent(req)
	if !plain(req) {
		sent.Stream = nil
	}
	resp, err := p.Model.Generate(ctx, sent)
	var failed *Error
	if errors.As(err, &failed) {
		inText := *failed
		inText.InText = true
		return resp, &inText
	}
	if err != nil {
		return resp, err
	}
	resp.InText = true
	if plain(req) {
		return resp, nil
	}
	if len(resp.Message.Calls) == 0 { // a model that can call after all is understood too
		resp = readAction(resp, offers(req.Tools, FinishTool), req.Answer != nil)
	}
	if req.Stream != nil && resp.Message.Text != "" {
		req.Stream(resp.Message.Text)
	}
	return resp, nil
}

// splitTools takes the reserved tool from the others. Its parameters are the schema of the final answer.
func splitTools(req Request) (tools []Tool, final json.RawMessage) {
	final = req.Answer
	for _, t := range req.Tools {
		if t.Name == FinishTool {
			final = t.Parameters
			continue
		}
		tools = append(tools, t)
	}
	return tools, final
}

func offers(tools []Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

func instructions(tools []Tool, final json.RawMessage) string {
	var b strings.Builder
	b.WriteString("Answer with exactly one JSON object and nothing else.\n")
	answer := "your answer, as text"
	if final != nil {
		answer = "your answer"
	}
	if len(tools) > 0 {
		b.WriteString("To use a tool, one at a time:\n" +
			`{"thought": "one sentence: why you do this", "action": "use_tool", "tool_name": "name of the tool", "tool_args": {}}` +
			"\nTo give your final answer:\n")
	}
	fmt.Fprintf(&b, `{"thought": "one sentence: why this is the answer", "action": "finish", "final_answer": %q}`, answer)
	if final != nil {
		fmt.Fprintf(&b, "\nfinal_answer is a JSON value of this JSON Schema: %s", compact(final))
	}
	if len(tools) > 0 {
		b.WriteString("\nThe result of a tool is the next message. The tools, each with the JSON Schema of its tool_args:")
	}
	for _, t := range tools {
		fmt.Fprintf(&b, "\n- %s: %s\n  %s", t.Name, strings.ReplaceAll(t.Description, "\n", "\n  "), compact(t.Parameters))
	}
	return b.String()
}

// withInstructions puts the protocol at the end of the system text, which stands first.
func withInstructions(messages []Message, text string) []Message {
	if len(messages) > 0 && messages[0].Role == System {
		messages[0].Text = strings.TrimSpace(messages[0].Text + "\n\n" + text)
		return messages
	}
	return append([]Message{{Role: System, Text: text}}, messages...)
}

// protocolSchema is the schema of the protocol's object, for endpoints that can hold to one.
func protocolSchema(tools []Tool, final json.RawMessage) json.RawMessage {
	if final == nil {
		final = json.RawMessage(`{"type":"string"}`)
	}
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"thought":{"type":"string"},"action":{"type":"string","enum":[`)
	if len(tools) == 0 {
		fmt.Fprintf(&b, `"finish"]},"final_answer":%s},"required":["thought","action","final_answer"]}`, compact(final))
		return json.RawMessage(b.String())
	}
	b.WriteString(`"use_tool","finish"]},"tool_name":{"type":"string","enum":[`)
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(t.Name))
	}
	fmt.Fprintf(&b, `]},"tool_args":{"type":"object"},"final_answer":%s},"required":["thought","action"]}`, compact(final))
	return json.RawMessage(b.String())
}

// asText writes calls and their results as the protocol has them, and in objects also what else an assistant said: each of
// its messages shows the form that is wanted. Messages of the user that follow each other become one,
// since many small models want the two sides to take turns.
func asText(messages []Message, objects bool) []Message {
	var out []Message
	say := func(m Message) {
		if n := len(out); n > 0 && m.Role == User && out[n-1].Role == User {
			out[n-1].Text += "\n\n" + m.Text
			return
		}
		out = append(out, m)
	}
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		if m.Role != Assistant || len(m.Calls) == 0 {
			if m.Role == Assistant && objects {
				m.Text = answerText(m.Text)
			}
			say(m)
			continue
		}
		results := map[string]string{}
		for i+1 < len(messages) && messages[i+1].Role == ToolRole {
			i++
			results[messages[i].CallID] = messages[i].Text
		}
		for n, c := range m.Calls {
			said := Message{Role: Assistant, Text: callText(c, "")}
			if n == 0 {
				said.Text, said.Reasoning = callText(c, m.Text), m.Reasoning
			}
			say(said)
			if result, ok := results[c.ID]; ok {
				say(Message{Role: User, Text: "Result of " + c.Name + ":\n" + result})
			}
		}
	}
	return out
}

// callText writes a call as the object by which the model would make it.
func callText(c Call, thought string) string {
	args := quoted(c.Args) // what is no JSON is shown as the text that it is
	if strings.TrimSpace(c.Args) == "" {
		args = "{}"
	} else if json.Valid([]byte(c.Args)) {
		args = compact(json.RawMessage(c.Args))
	}
	if c.Name == FinishTool {
		return fmt.Sprintf(`{"thought": %s, "action": "finish", "final_answer": %s}`, quoted(thought), args)
	}
	return fmt.Sprintf(`{"thought": %s, "action": "use_tool", "tool_name": %s, "tool_args": %s}`, quoted(thought), quoted(c.Name), args)
}

// answerText writes an answer as the object by which the model would give it. An object of the protocol stays as it is.
func answerText(text string) string {
	answer := quoted(text)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
		var a action
		if json.Unmarshal([]byte(trimmed), &a) == nil && !a.bare() {
			return text
		}
		answer = compact(json.RawMessage(trimmed))
	}
	return fmt.Sprintf(`{"thought": "", "action": "finish", "final_answer": %s}`, answer)
}

// bare says whether an object has none of the protocol's fields: it is an answer without its envelope.
func (a action) bare() bool {
	return absent(a.Action) && absent(a.ToolName) && absent(a.ToolArgs) && absent(a.FinalAnswer)
}

// action is the protocol's object. What has the wrong type is said in words, so nothing is decoded further here.
type action struct {
	Thought     json.RawMessage `json:"thought"`
	Action      json.RawMessage `json:"action"`
	ToolName    json.RawMessage `json:"tool_name"`
	ToolArgs    json.RawMessage `json:"tool_args"`
	FinalAnswer json.RawMessage `json:"final_answer"`
}

// readAction turns the object of an answer into what a model with tool calls would have given. Where an object is wanted
// (finishTool, object), one without the protocol's envelope is the answer itself: whether it fits is for its schema to say.
func readAction(resp Response, finishTool, object bool) Response {
	raw, err := Object(resp.Message.Text)
	if err != nil {
		resp.Problem = err.Error()
		return resp
	}
	var a action
	if err := json.Unmarshal(raw, &a); err != nil { // it is an object, and each field takes any value
		resp.Problem = err.Error()
		return resp
	}
	if reasoning, _ := SplitReasoning(resp.Message.Text); resp.Message.Reasoning == "" {
		resp.Message.Reasoning, resp.Aloud = reasoning, reasoning != ""
	}
	switch name := strings.ToLower(strings.TrimSpace(textOf(a.Action))); {
	case name == actionUseTool && strings.TrimSpace(textOf(a.ToolName)) != "":
		resp.Message.Text = textOf(a.Thought)
		resp.Message.Calls = []Call{{Name: strings.TrimSpace(textOf(a.ToolName)), Args: textOf(a.ToolArgs)}}
	case name == actionUseTool:
		resp.Problem = `with the action "use_tool", tool_name must be the name of a tool`
	case name == actionFinish && absent(a.FinalAnswer):
		resp.Problem = `with the action "finish", final_answer must be there`
	case name == actionFinish && finishTool:
		resp.Message.Text = textOf(a.Thought)
		resp.Message.Calls = []Call{{Name: FinishTool, Args: textOf(a.FinalAnswer)}}
	case name == actionFinish:
		resp.Thought, resp.Message.Text = textOf(a.Thought), textOf(a.FinalAnswer)
	case a.bare() && finishTool:
		resp.Message.Text, resp.Message.Calls = "", []Call{{Name: FinishTool, Args: string(raw)}}
	case a.bare() && object:
		resp.Message.Text = string(raw)
	case absent(a.Action):
		resp.Problem = `the JSON object has no action; it must be "use_tool" or "finish"`
	default:
		resp.Problem = fmt.Sprintf(`the action must be "use_tool" or "finish", not %s`, brief(string(a.Action)))
	}
	return resp
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// textOf gives a string's text, nothing for null, and any other value as the JSON that it is.
func textOf(raw json.RawMessage) string {
	var text string
	switch {
	case absent(raw):
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	}
	return compact(raw)
}

// compact writes JSON without blanks. What is no JSON stays as it is.
func compact(raw json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return string(raw)
	}
	return buf.String()
}

// quoted writes a text as a JSON string, without escapes for HTML.
func quoted(text string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(buf.String(), "\n")
}

// brief cuts a text for a message.
func brief(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return text
}

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// sending says which of the fields that not every endpoint knows a request has.
type sending struct {
	schema bool // response_format with a JSON Schema
	usage  bool // stream_options
}

// What endpoints name when they refuse one of these fields.
var (
	schemaWords = []string{"response_format", "response format", "json_schema", "json schema", "schema", "structured output", "grammar", "guided"}
	usageWords  = []string{"stream_options", "stream options", "include_usage"}
)

// drop leaves out the field that an endpoint has refused and gives the note that says so, "" if there is none to drop.
func (s *sending) drop(err error) string {
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.BadRequest || e.Status == 0 {
		return ""
	}
	text := strings.ToLower(e.Error())
	names := func(word string) bool { return strings.Contains(text, word) }
	switch {
	case s.usage && slices.ContainsFunc(usageWords, names):
		s.usage = false
		return "the endpoint does not say what a stream used; the request was sent again without asking for it"
	case s.schema && slices.ContainsFunc(schemaWords, names):
		s.schema = false
		return model.NoteNoSchema
	}
	return ""
}

// request writes a request in the library's form. What the library would leave out, or check by the model's name before
// anything is sent, is put in later by exchange.patch: what an endpoint takes is for the endpoint to say.
func (m *Model) request(req model.Request, send sending) openai.ChatCompletionRequest {
	messages := req.Native()
	out := openai.ChatCompletionRequest{Messages: make([]openai.ChatCompletionMessage, len(messages))}
	for i, msg := range messages {
		out.Messages[i] = openai.ChatCompletionMessage{Role: string(msg.Role), Content: msg.Text, ToolCallID: msg.CallID}
		for _, c := range msg.Calls {
			out.Messages[i].ToolCalls = append(out.Messages[i].ToolCalls, openai.ToolCall{
				ID: c.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: functionName(c.Name), Arguments: arguments(c.Args)},
			})
		}
	}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if parameters == nil {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out.Tools = append(out.Tools, openai.Tool{Type: openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: parameters}})
	}
	if send.schema {
		out.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: req.Answer},
		}
	}
	if send.usage {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return out
}

// longestName is the longest name of a function that endpoints take.
const longestName = 64

// functionName gives a call's name as endpoints take it back. A model may have made it up, with blanks, dots, or nothing in
// it; endpoints refuse the whole history for that.
func functionName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), longestName)]
}

// arguments gives a call's arguments as endpoints want them back: the text of a JSON object. What the model made of them
// may be no JSON; endpoints refuse the whole history for that, so it is put into an object.
func arguments(text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "" || trimmed == "null":
		return "{}"
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return text
	}
	wrapped, err := machine.EncodeValue(machine.Values{"not_an_object": strings.ToValidUTF8(text, "\uFFFD")})
	if err != nil { // a string can always be encoded
		return "{}"
	}
	return string(wrapped)
}

// fields gives the fields of the body that exchange.patch sets.
func (m *Model) fields(req model.Request) (map[string]json.RawMessage, error) {
	set := machine.Values{"model": m.to.model}
	for _, t := range []*float64{m.cfg.Temperature, req.Temperature} {
		if t != nil {
			set["temperature"] = *t
		}
	}
	for _, n := range []int64{m.cfg.MaxTokens, req.MaxTokens} {
		if n > 0 {
			set[m.maxTokensField()] = n
		}
	}
	for name, v := range m.extra {
		set[name] = v
	}
	out := make(map[string]json.RawMessage, len(set))
	for name, v := range set {
		raw, err := machine.EncodeValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = raw
	}
	return out, nil
}

// maxTokensField is the name for the longest answer. OpenAI's newer models refuse the name that all others know.
func (m *Model) maxTokensField() string {
	if host := m.to.base.Hostname(); host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// patch finishes a body that the library has written. Equal requests give equal bytes: fields stand in the order of their
// names.
func (x *exchange) patch(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(fields["messages"], &messages); err != nil {
		return nil, err
	}
	for i, m := range x.messages {
		if _, ok := messages[i]["content"]; !ok {
			messages[i]["content"] = json.RawMessage(`""`) // some endpoints take neither null nor nothing
		}
		// Endpoints that want reasoning back miss the field where a message with calls has none.
		if x.sendBack && m.Role == model.Assistant && (m.Reasoning != "" || len(m.Calls) > 0) {
			raw, err := machine.EncodeValue(m.Reasoning)
			if err != nil {
				return nil, err
			}
			messages[i]["reasoning_content"] = raw
		}
	}
	written, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	fields["messages"] = written
	for name, raw := range x.fields {
		fields[name] = raw
	}
	if written, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	return plain(written), nil
}

// plain undoes the escapes that Go's JSON writer makes for HTML pages. They mean the same, but some models get to see them.
func plain(body []byte) []byte {
	escapes := []struct{ long, short string }{{`\u003c`, "<"}, {`\u003e`, ">"}, {`\u0026`, "&"}}
	out := make([]byte, 0, len(body))
scan:
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			out = append(out, body[i])
			continue
		}
		for _, e := range escapes {
			if bytes.HasPrefix(body[i:], []byte(e.long)) {
				out = append(out, e.short...)
				i += len(e.long) - 1
				continue scan
			}
		}
		out = append(out, body[i], body[i+1]) // two characters, so that an escaped backslash starts nothing
		i++
	}
	return out
}

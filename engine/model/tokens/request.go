package tokens

import (
	"bytes"
	"encoding/json"

	"flowctl/engine/model"
)

// What chat formats put around texts, in tokens. OpenAI's formats need three around a message and one for its role, and
// three to begin the answer; those of others differ by one or two.
const (
	messageTokens = 4  // around a message, its role among them
	callTokens    = 8  // around a tool call: that it is one, and where its name and its arguments are
	toolTokens    = 12 // around a tool's definition
	toolsTokens   = 8  // around all tools together, where there are any
	answerTokens  = 12 // around the schema of the answer
	requestTokens = 3  // to begin the answer
)

// Parameters and arguments of a tool that has none, as they are sent.
const (
	noParameters = `{"type":"object","properties":{}}`
	noArguments  = `{}`
)

// Message counts a message with what its format puts around it: its text, the name, id and arguments of its calls, the id
// of the call that it answers. Its reasoning counts only where that is sent back to the endpoint.
func Message(c Counter, m model.Message, reasoningSent bool) int64 {
	n := messageTokens + c.Count(m.Text) + c.Count(m.CallID)
	if reasoningSent {
		n += c.Count(m.Reasoning)
	}
	for _, call := range m.Calls {
		args := call.Args
		if args == "" {
			args = noArguments
		}
		n += callTokens + c.Count(call.ID) + c.Count(call.Name) + c.Count(args)
	}
	return n
}

// Tools counts the definitions of tools: name, description and the compact JSON of the parameters.
func Tools(c Counter, tools []model.Tool) int64 {
	if len(tools) == 0 {
		return 0
	}
	var n int64 = toolsTokens
	for _, t := range tools {
		parameters := noParameters
		if len(t.Parameters) > 0 {
			parameters = compact(t.Parameters)
		}
		n += toolTokens + c.Count(t.Name) + c.Count(t.Description) + c.Count(parameters)
	}
	return n
}

// Request counts all that a request sends: messages, tools, and the schema of the answer where one is sent. It does not
// count the answer, nor the instructions that model.JSONProtocol adds.
func Request(c Counter, r model.Request, reasoningSent bool) int64 {
	n := requestTokens + Tools(c, r.Tools)
	for _, m := range r.Native() {
		n += Message(c, m, reasoningSent)
	}
	if len(r.Answer) > 0 && !r.NoSchema {
		n += answerTokens + c.Count(compact(r.Answer))
	}
	return n
}

// compact gives JSON without the space between its parts, and what is no JSON as it is.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Reply is what the server answers. A reply without Body and Lines is written as an endpoint writes it, as a whole or, if
// the request asks for that, as a stream.
type Reply struct {
	Text, Reasoning string
	Calls           []Call
	Finish          string // "": tool_calls where there are calls, else stop
	Prompt, Output  int64  // usage in tokens

	Status int               // 0: 200
	Header map[string]string // added to the answer's, or in place of them
	Body   string            // sent as it is, instead of the above
	Lines  []string          // of a stream, sent as they are, each with a line break
	Stall  bool              // after what was written nothing follows until the client leaves or the server is closed
	Cut    bool              // after what was written the connection is cut
}

// Call is a tool call of a reply.
type Call struct{ ID, Name, Args string }

// write sends a reply.
func (r Reply) write(w http.ResponseWriter, req *http.Request, c Chat, ended <-chan struct{}) {
	body, kind := r.Body, "application/json"
	switch {
	case len(r.Lines) > 0:
		body, kind = strings.Join(r.Lines, "\n")+"\n", "text/event-stream"
	case body == "" && c.Stream && r.Status == 0:
		body, kind = r.stream(c), "text/event-stream"
	case body == "":
		body = r.whole(c)
	}
	w.Header().Set("Content-Type", kind)
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // a client that has left reads nothing
	if !r.Stall && !r.Cut {
		return
	}
	_ = http.NewResponseController(w).Flush()
	if r.Stall {
		select {
		case <-req.Context().Done():
		case <-ended:
		}
	}
	panic(http.ErrAbortHandler) // the server's way to cut a connection
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// object is a JSON object of the wire.
type object = map[string]any

func (r Reply) usage() object {
	return object{"prompt_tokens": r.Prompt, "completion_tokens": r.Output, "total_tokens": r.Prompt + r.Output}
}

func encode(o object) string {
	data, _ := json.Marshal(o) // made of strings and numbers
	return string(data)
}

func (c Call) wire() object {
	return object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}}
}

func (r Reply) whole(c Chat) string {
	message := object{"role": "assistant", "content": r.Text}
	if r.Reasoning != "" {
		message["reasoning_content"] = r.Reasoning
	}
	if len(r.Calls) > 0 {
		calls := make([]object, len(r.Calls))
		for i, call := range r.Calls {
			calls[i] = call.wire()
		}
		message["tool_calls"] = calls
		if r.Text == "" {
			message["content"] = nil
		}
	}
	return encode(object{"id": "chatcmpl-test", "object": "chat.completion", "model": c.Model, "usage": r.usage(),
		"choices": []object{{"index": 0, "message": message, "finish_reason": r.finish()}}})
}

// stream writes the reply in many small pieces, with the comments that some endpoints send in between.
func (r Reply) stream(c Chat) string {
	var b strings.Builder
	event := func(delta object, finish any) {
		b.WriteString("data: " + encode(object{"id": "chatcmpl-test", "object": "chat.completion.chunk", "model": c.Model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}) + "\n\n: keep-alive\n\n")
	}
	event(object{"role": "assistant"}, nil)
	for _, piece := range pieces(r.Reasoning) {
		event(object{"reasoning_content": piece}, nil)
	}
	for _, piece := range pieces(r.Text) {
		event(object{"content": piece}, nil)
	}
	for i, call := range r.Calls {
		event(object{"tool_calls": []object{{"index": i, "id": call.ID, "type": "function", "function": object{"name": call.Name, "arguments": ""}}}}, nil)
		for _, piece := range pieces(call.Args) {
			event(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	event(object{}, r.finish())
	if len(c.StreamOptions) > 0 {
		b.WriteString("data: " + encode(object{"choices": []object{}, "model": c.Model, "usage": r.usage()}) + "\n\n")
	}
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// pieces cuts a text into parts of up to five bytes, never inside a rune.
func pieces(text string) []string {
	var out []string
	for len(text) > 0 {
		n := min(5, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Chat is the body of a request, as far as the server looks at it.
type Chat struct {
	Model          string          `json:"model"`
	Messages       []Message       `json:"messages"`
	Tools          []Tool          `json:"tools"`
	Stream         bool            `json:"stream"`
	StreamOptions  json.RawMessage `json:"stream_options"`
	ResponseFormat json.RawMessage `json:"response_format"`
	Temperature    *float64        `json:"temperature"`
	MaxTokens      int64           `json:"max_tokens"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"` // nil: it is not there
	Reasoning  *string         `json:"reasoning_content"`
	ToolCalls  []ToolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// Text gives the content of a message, "" where it is no string.
func (m Message) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		return ""
	}
	return text
}

// ToolCall is one call of an assistant's message.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is a tool that a request offers.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func parse(body []byte) (Chat, error) {
	var c Chat
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("the body is no request: %w", err)
	}
	if c.Model == "" {
		return c, fmt.Errorf("you must provide a model parameter")
	}
	if len(c.Messages) == 0 {
		return c, fmt.Errorf("messages: at least one is required")
	}
	return c, nil
}

// check says what strict endpoints refuse of a request, "" if it is legal.
func (s *Server) check(c Chat) string {
	var format struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(c.ResponseFormat, &format) // none: no format
	switch {
	case s.opt.NoSchema && format.Type == "json_schema":
		return "This response_format type is unavailable now"
	case s.opt.NoUsage && len(c.StreamOptions) > 0:
		return "Unrecognized request argument supplied: stream_options"
	}
	h := history{server: s, tools: len(c.Tools) > 0, ids: map[string]bool{}}
	for i, m := range c.Messages {
		if problem := h.next(i, m); problem != "" {
			return fmt.Sprintf("messages.[%d]: %s", i, problem)
		}
	}
	if problem := h.pending(); problem != "" {
		return problem
	}
	if last := c.Messages[len(c.Messages)-1].Role; last != "user" && last != "tool" {
		return fmt.Sprintf("the last message must be of the user or a tool, not of %s", last)
	}
	return checkTools(c.Tools)
}

func checkTools(tools []Tool) string {
	names := map[string]bool{}
	for i, t := range tools {
		var parameters struct {
			Type string `json:"type"`
		}
		switch {
		case t.Type != "function" || t.Function.Name == "":
			return fmt.Sprintf("tools.[%d]: a function with a name is required", i)
		case names[t.Function.Name]:
			return fmt.Sprintf("tools.[%d]: the name %s is not unique", i, t.Function.Name)
		case json.Unmarshal(t.Function.Parameters, &parameters) != nil || parameters.Type != "object":
			return fmt.Sprintf("tools.[%d]: parameters must be a schema of type object", i)
		}
		names[t.Function.Name] = true
	}
	return ""
}

// history is the state of a conversation as it is read from its start.
type history struct {
	server *Server
	tools  bool            // some are offered
	ids    map[string]bool // of all calls
	open   []string        // calls of the last assistant message that have no answer yet
	began  bool            // a message that is not the system's has come
}

func (h *history) next(i int, m Message) string {
	if m.Role != "tool" {
		if problem := h.pending(); problem != "" {
			return problem
		}
	}
	switch m.Role {
	case "system":
		if i > 0 {
			return "a system message must be the first"
		}
		return checkText(m)
	case "user":
		h.began = true
		return checkText(m)
	case "assistant":
		if !h.began {
			return "the first message after the system's must be the user's"
		}
		return h.assistant(m)
	case "tool":
		return h.tool(m)
	}
	return fmt.Sprintf("%q is not one of system, user, assistant, tool", m.Role)
}

// pending says that calls were left without answer.
func (h *history) pending() string {
	if len(h.open) == 0 {
		return ""
	}
	return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
		"The following tool_call_ids did not have response messages: " + strings.Join(h.open, ", ")
}

// checkText wants content that is a string and not empty, as system, user and tool messages must have it.
func checkText(m Message) string {
	switch {
	case len(m.ToolCalls) > 0:
		return fmt.Sprintf("a %s message has no tool_calls", m.Role)
	case len(m.Content) == 0 || m.Content[0] != '"':
		return fmt.Sprintf("content of a %s message: expected a string, got %s", m.Role, orNothing(m.Content))
	case m.Text() == "":
		return fmt.Sprintf("content of a %s message must not be empty", m.Role)
	}
	return ""
}

func orNothing(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return string(raw)
}

func (h *history) assistant(m Message) string {
	switch {
	case len(m.Content) == 0 || m.Content[0] != '"':
		return "content of an assistant message: expected a string, got " + orNothing(m.Content)
	case m.Text() == "" && len(m.ToolCalls) == 0:
		return "an assistant message needs content or tool_calls"
	case len(m.ToolCalls) > 0 && !h.tools && !h.server.opt.CallsWithoutTools:
		return "tool_calls are there, but no tools are offered"
	}
	for _, c := range m.ToolCalls {
		switch {
		case c.ID == "":
			return "a tool call needs an id"
		case h.ids[c.ID]:
			return fmt.Sprintf("the tool call id %s is not unique", c.ID)
		case c.Type != "function" || c.Function.Name == "":
			return "a tool call needs type function and a name"
		case !isObject(c.Function.Arguments):
			return fmt.Sprintf("arguments of %s must be the JSON text of an object, got %q", c.ID, c.Function.Arguments)
		}
		h.ids[c.ID] = true
		h.open = append(h.open, c.ID)
	}
	return h.server.checkReasoning(m)
}

func isObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

func (h *history) tool(m Message) string {
	switch {
	case len(h.open) == 0:
		return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
	case h.open[0] != m.ToolCallID:
		return fmt.Sprintf("a tool message for %s is due, this one is for %q", h.open[0], m.ToolCallID)
	}
	h.open = h.open[1:]
	return checkText(m)
}

// checkReasoning applies the server's rule. What is required must be what the server has given, to the letter.
func (s *Server) checkReasoning(m Message) string {
	switch {
	case s.opt.Reasoning == ReasoningForbidden && m.Reasoning != nil:
		return "reasoning_content must not be sent back"
	case s.opt.Reasoning != ReasoningRequired || len(m.ToolCalls) == 0:
		return ""
	case m.Reasoning == nil:
		return "Missing reasoning_content field in the assistant message"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if *m.Reasoning != "" && !s.reasons[*m.Reasoning] {
		return fmt.Sprintf("reasoning_content is not what was given: %q", *m.Reasoning)
	}
	return ""
}

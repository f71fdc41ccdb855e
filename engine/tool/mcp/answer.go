package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// answer is what a tool of a server gives, as it stands in the server's message.
type answer struct {
	Content    []part          `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	ResultType string          `json:"resultType"`
}

// part is one piece of content. Which fields are filled depends on its type.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"` // base64
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"` // base64
	} `json:"resource"`
}

// needsMore is the type of a result that asks for something instead of giving it.
const needsMore = "input_required"

// read makes the result of a server's answer: its structured content, else its text. Where the tool has come to its end
// and the answer cannot be read, a read has failed, and anything else is done all the same.
func read(data json.RawMessage, effect machine.Effect) (machine.Value, error) {
	var a answer
	if !strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		return nil, noAnswer(effect)
	}
	if json.Unmarshal(data, &a) != nil {
		return unreadable(effect, errors.New("the answer is not what an MCP server sends"))
	}
	if a.ResultType == needsMore {
		return nil, &tool.Error{Status: tool.Failed, Err: errors.New("the tool asks for more input, which flowctl does not give to MCP servers")}
	}
	value, err := a.value()
	switch {
	case a.IsError:
		failed := &tool.Error{Status: tool.Failed, Err: errors.New(a.text())}
		if err == nil && a.structured() {
			failed.Value = value
		}
		return nil, failed
	case err != nil:
		return unreadable(effect, err)
	}
	return value, nil
}

// noAnswer is of a server that says no result: whether the tool has run nobody knows.
func noAnswer(effect machine.Effect) error {
	err := errors.New("the answer is not what an MCP server sends, so it says nothing of a result")
	if effect == machine.EffectRead {
		return &tool.Error{Status: tool.Failed, Kind: "invalid", Err: err}
	}
	return &tool.Error{Status: tool.Unknown, Err: err}
}

func unreadable(effect machine.Effect, err error) (machine.Value, error) {
	if effect == machine.EffectRead {
		return nil, &tool.Error{Status: tool.Failed, Kind: "invalid", Err: err}
	}
	return nil, nil
}

func (a answer) structured() bool { return len(a.Structured) > 0 && string(a.Structured) != "null" }

// value gives the structured content, with every digit of its numbers, or the text.
func (a answer) value() (machine.Value, error) {
	if !a.structured() {
		return a.text(), nil
	}
	v, err := machine.DecodeValue(a.Structured)
	if err != nil {
		return nil, fmt.Errorf("the structured content of the answer cannot be read: %w", err)
	}
	return v, nil
}

// text puts the pieces of content together, one below the other.
func (a answer) text() string {
	lines := make([]string, len(a.Content))
	for i, p := range a.Content {
		lines[i] = p.line()
	}
	return strings.Join(lines, "\n")
}

// line gives a piece of content as text. What is no text leaves a mark with its type and size.
func (p part) line() string {
	switch p.Type {
	case "text":
		return p.Text
	case "image", "audio":
		return mark(p.Type, p.MIMEType, size(p.Data))
	case "resource_link":
		return mark("link", p.Name, p.URI)
	case "resource":
		r := p.Resource
		if r.Blob != "" {
			return mark(p.Type, r.URI, r.MIMEType, size(r.Blob))
		}
		return strings.TrimRight(mark(p.Type, r.URI, r.MIMEType)+"\n"+r.Text, "\n")
	case "":
		return mark("content without a type")
	}
	return mark(p.Type)
}

// mark joins what is known of a piece that is no text.
func mark(words ...string) string {
	var known []string
	for _, word := range words {
		if word != "" {
			known = append(known, word)
		}
	}
	return "[" + strings.Join(known, " ") + "]"
}

// size gives the size of what is written in base64.
func size(data string) string {
	return fmt.Sprintf("%d bytes", base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "="))))
}

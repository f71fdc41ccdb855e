package view

import (
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model"
)

// Parts is what the messages of a request are made of.
type Parts struct {
	System, Task string
	Examples     []model.Message
	Summary      string            // of what was said before Talk
	Talk         []history.Message // loaded
	Again        []history.ModelCalled
	GoOn         string

	// Flat tells calls and their results as text: for requests that offer no tools, which many endpoints refuse with calls
	// in their messages.
	Flat bool
}

// Interrupted is the result of a call that never came to one.
const Interrupted = "The call was interrupted before completion; nothing is known of a result."

// Messages makes the list of messages that is sent. It is the only place that does, and what comes out is legal whatever
// goes in: each call has its one result directly behind the message that made it, no result stands without its call, no
// message is empty, and a user speaks first and last.
func Messages(p Parts) []model.Message {
	b := builder{flat: p.Flat}
	b.say(model.System, p.System)
	b.examples(p.Examples)
	b.say(model.User, p.Task)
	b.say(model.User, p.Summary)
	b.talk(p.Talk)
	for _, a := range p.Again {
		if a.Finish != string(model.Length) { // what was cut is long, and of no use
			b.out = appendSaid(b.out, model.Message{Role: model.Assistant, Text: a.Text})
		}
		b.say(model.User, a.Wrong)
	}
	if n := len(b.out); n == 0 || b.out[n-1].Role == model.Assistant || b.out[n-1].Role == model.System {
		b.say(model.User, p.GoOn)
	}
	return userFirst(b.out, p.GoOn)
}

// userFirst lets a user speak first behind the system's message, where an assistant would.
func userFirst(messages []model.Message, text string) []model.Message {
	first := slices.IndexFunc(messages, func(msg model.Message) bool { return msg.Role != model.System })
	if first < 0 || messages[first].Role != model.Assistant {
		return messages
	}
	return slices.Insert(messages, first, model.Message{Role: model.User, Text: text})
}

// builder puts messages behind each other.
type builder struct {
	flat bool
	out  []model.Message
}

func (b *builder) say(role model.Role, text string) {
	b.out = appendSaid(b.out, model.Message{Role: role, Text: text})
}

// appendSaid leaves out a message that says nothing.
func appendSaid(out []model.Message, msg model.Message) []model.Message {
	if strings.TrimSpace(msg.Text) == "" {
		return out
	}
	return append(out, msg)
}

// talk adds what was said and done.
func (b *builder) talk(messages []history.Message) {
	results := map[string]string{}
	for _, msg := range messages {
		if _, twice := results[msg.CallID]; msg.Role == history.RoleTool && !twice {
			results[msg.CallID] = msg.Text
		}
	}
	for _, msg := range messages {
		switch {
		case msg.Role == history.RoleTool: // stands behind its call
		case msg.Role == history.RoleHuman:
			b.say(model.User, msg.Text)
		default:
			calls := make([]model.Call, len(msg.Made))
			for i, c := range msg.Made {
				calls[i] = model.Call{ID: c.ID, Name: c.Tool, Args: c.Args}
			}
			b.turn(model.Message{Role: model.Assistant, Text: msg.Text, Reasoning: msg.Reasoning, Calls: calls}, results)
			b.say(model.User, msg.Remark)
		}
	}
}

// turn adds what an assistant said, its calls, and their results.
func (b *builder) turn(msg model.Message, results map[string]string) {
	if len(msg.Calls) == 0 {
		b.out = appendSaid(b.out, msg)
		return
	}
	if b.flat {
		b.flatTurn(msg, results)
		return
	}
	b.out = append(b.out, msg)
	for _, c := range msg.Calls {
		b.out = append(b.out, model.Message{Role: model.ToolRole, CallID: c.ID, Text: resultOf(c, results)})
	}
}

func (b *builder) flatTurn(msg model.Message, results map[string]string) {
	said, told := []string{}, []string{}
	if text := strings.TrimSpace(msg.Text); text != "" {
		said = append(said, text)
	}
	for _, c := range msg.Calls {
		said = append(said, strings.TrimSpace("Called "+c.Name+" "+c.Args))
		told = append(told, "Result of "+c.Name+":\n"+resultOf(c, results))
	}
	b.out = append(b.out, model.Message{Role: model.Assistant, Text: strings.Join(said, "\n"), Reasoning: msg.Reasoning})
	b.say(model.User, strings.Join(told, "\n\n"))
}

func resultOf(c model.Call, results map[string]string) string {
	if text := results[c.ID]; strings.TrimSpace(text) != "" {
		return text
	}
	return Interrupted
}

// examples adds the exchanges of a state's examples, in which each call has its result behind it.
func (b *builder) examples(messages []model.Message) {
	results := map[string]string{}
	for _, msg := range messages {
		if msg.Role == model.ToolRole {
			results[msg.CallID] = msg.Text
		}
	}
	for _, msg := range messages {
		switch msg.Role {
		case model.ToolRole:
		case model.Assistant:
			b.turn(msg, results)
		default:
			b.out = appendSaid(b.out, msg)
		}
	}
}

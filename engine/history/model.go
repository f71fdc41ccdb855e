package history

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"flowctl/engine/model/tokens"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// ModelCalled is one answer of a model. Its key is that of its exchange; an answer for which the model was asked again has
// Wrong, and the next one of the exchange has the key KEY/again1, KEY/again2 …
type ModelCalled struct {
	Label   string  `json:"label"`            // what the handler wanted, such as extract
	Name    string  `json:"name"`             // of the model in the flow
	Model   string  `json:"model"`            // as the endpoint calls it
	By      string  `json:"by,omitempty"`     // the model in the flow that answered, where it stood in for that one
	Turn    int64   `json:"turn"`             // of the step, from 1
	Request Request `json:"request"`          // what was sent
	Cached  bool    `json:"cached,omitempty"` // the answer is an earlier one, to the same request
	Aside   bool    `json:"aside,omitempty"`  // it is no part of the conversation

	Text      string        `json:"text"` // the answer, or what was said beside calls
	Calls     []ModelCall   `json:"calls,omitempty"`
	Answer    machine.Value `json:"answer,omitempty"` // by the schema of the exchange
	Thought   string        `json:"thought,omitempty"`
	Reasoning string        `json:"reasoning,omitempty"`
	Aloud     bool          `json:"aloud,omitempty"`  // the reasoning stood in the text: it is never sent back
	Remark    string        `json:"remark,omitempty"` // what the model is told behind the results of its calls
	Finish    string        `json:"finish,omitempty"`

	ModelUsage
	Counted int64 `json:"counted,omitempty"` // tokens of the request by our own count, before any correction

	MS    int64    `json:"ms"` // duration in milliseconds, tries that failed among it
	Notes []string `json:"notes,omitempty"`

	// NoSchema says that the endpoint does not take a schema for the answer: none is sent from then on.
	NoSchema bool `json:"no_schema,omitempty"`

	// Wrong is what the model is told of an answer that will not do, before it is asked again.
	Wrong string `json:"wrong,omitempty"`
	// Problem ends the exchange without an answer: kind invalid, cut or blocked.
	Problem machine.Problem `json:"error,omitzero"`
}

// ModelUsage is what one answer used, as the endpoint counts it.
type ModelUsage struct {
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
	CachedTokens     int64    `json:"cached_tokens,omitempty"`
	ReasoningTokens  int64    `json:"reasoning_tokens,omitempty"`
	Cost             *float64 `json:"cost,omitempty"`
	Estimated        bool     `json:"estimated,omitempty"` // the endpoint does not say: they are counted here
}

// ModelCall is a tool call that a model asks for. Its id is unique in the run and made by the engine: what an endpoint
// calls it may be empty, or be there twice.
type ModelCall struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	Args string `json:"args"` // as the model wrote them
}

// Request is what was sent to a model, by reference: hashes are of blobs of the run.
type Request struct {
	System   string  `json:"system,omitempty"`   // hash of the system text
	Task     string  `json:"task,omitempty"`     // hash of the task text
	HowTo    string  `json:"how_to,omitempty"`   // hash of how to answer, for models that have calls of their own
	Examples string  `json:"examples,omitempty"` // hash of the messages of the examples, as JSON
	Tools    string  `json:"tools,omitempty"`    // hash of the tools that were offered, as JSON
	Answer   string  `json:"answer,omitempty"`   // hash of the schema of the answer
	Messages []Range `json:"messages,omitempty"`
	Summary  string  `json:"summary,omitempty"` // hash of what stands in the place of messages that have no room
	Cut      []Cut   `json:"cut,omitempty"`     // messages that were shortened
	NoSchema bool    `json:"no_schema,omitempty"`
	GoOn     string  `json:"go_on,omitempty"`    // what the user says where nobody else said something last
	Protocol string  `json:"protocol,omitempty"` // json: the model put it in text
}

// Cut is a message that was shortened in a request; hash is of its content, as JSON.
type Cut struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"`
}

// ProtocolJSON is the protocol of models that make their calls in text.
const ProtocolJSON = "json"

// Range is a range of message numbers, both ends included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Type implements Data.
func (*ModelCalled) Type() Type { return TypeModelCalled }

func (e *ModelCalled) values() []*machine.Value { return []*machine.Value{&e.Answer} }

// Final says whether the exchange ended with this answer.
func (e *ModelCalled) Final() bool { return e.Wrong == "" }

// Answerer names the model in the flow that answered.
func (e *ModelCalled) Answerer() string {
	if e.By != "" {
		return e.By
	}
	return e.Name
}

// applyModel counts what an answer used, and takes it into the conversation.
func (s *Snapshot) applyModel(ev Event, d *ModelCalled) {
	s.Turns++
	if name := d.Answerer(); d.NoSchema && !slices.Contains(s.NoSchema, name) {
		s.NoSchema = append(s.NoSchema[:len(s.NoSchema):len(s.NoSchema)], name)
	}
	if !d.Cached {
		s.spend(d.ModelUsage)
	}
	if d.Counted > 0 && !d.Cached && !d.Estimated {
		s.correct(d)
	}
	if !d.Final() || d.Aside || !d.Problem.None() {
		return
	}
	s.message(ev, RoleAssistant, "")
	s.Talk.Messages[len(s.Talk.Messages)-1].fill(ev)
}

// correct learns how far our count of tokens is off for a model.
func (s *Snapshot) correct(d *ModelCalled) {
	corrections := make(map[string]tokens.Correction, len(s.Corrections)+1)
	for name, c := range s.Corrections {
		corrections[name] = c
	}
	corrections[d.Answerer()] = corrections[d.Answerer()].Add(d.Counted, d.PromptTokens)
	s.Corrections = corrections
}

// maxResult is the size in bytes above which the result of a call is cut for the model. All of it is in its event.
const maxResult = 16 << 10

// ResultText gives the result of a call as a model reads it: never empty, and at most 16 KiB.
func ResultText(r tool.Result) string {
	var text string
	switch v := r.Value.(type) {
	case nil:
	case string:
		text = v
	default:
		text = machine.FormatValue(v)
	}
	if r.Status != tool.OK {
		said := fmt.Sprintf("The call was not successful (%s).", r.Status)
		if r.Problem.Message != "" {
			said = fmt.Sprintf("The call was not successful (%s): %s", r.Status, r.Problem.Message)
		}
		if text != "" {
			said += "\n" + text
		}
		text = said
	}
	if strings.TrimSpace(text) == "" {
		return "(no output)"
	}
	return tool.CutText(strings.Map(visible, text), maxResult)
}

// visible shows a control character as a sign, but for those that make lines and columns.
func visible(r rune) rune {
	const signs, del = '\u2400', '\u2421'
	switch {
	case r == '\n' || r == '\t':
	case r < ' ':
		return signs + r
	case r == 0x7f:
		return del
	case r >= 0x80 && r < 0xa0:
		return utf8.RuneError
	}
	return r
}

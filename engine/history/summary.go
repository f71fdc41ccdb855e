package history

// Summarised says what stands from now on in the place of messages that have no room in a state's window. It belongs to the
// exchange that made it. Its key is that of the exchange, with /summary.
type Summarised struct {
	State   string  `json:"of"`                // whose window it is
	Covers  []Range `json:"covers"`            // messages, those of the summary before it among them
	Text    string  `json:"text"`              // what stands in their place
	Refused string  `json:"refused,omitempty"` // why the model's summary was not taken, so that they are left out without one

	Name    string  `json:"name"` // of the model in the flow
	Model   string  `json:"model,omitempty"`
	Turn    int64   `json:"turn"`
	Request Request `json:"request"`
	ModelUsage
	MS int64 `json:"ms"`
}

// Warned says that something is not as it should be, though the run goes on.
type Warned struct {
	Kind    string `json:"kind"` // short_prompt: the endpoint read less than was sent
	Model   string `json:"model,omitempty"`
	Message string `json:"message"`
}

// KindShortPrompt is the kind of the warning that an endpoint has cut a prompt without a word.
const KindShortPrompt = "short_prompt"

// Type implements Data.
func (*Summarised) Type() Type { return TypeSummarised }

// Type implements Data.
func (*Warned) Type() Type { return TypeWarned }

// LabelSummary is the label of an exchange that made a summary.
const LabelSummary = "summarise"

// Called tells of the call that made the summary as of any other.
func (e *Summarised) Called() *ModelCalled {
	ref := e.Request
	ref.Summary = "" // it came of the request, and was no part of it
	return &ModelCalled{Label: LabelSummary, Name: e.Name, Model: e.Model, Turn: e.Turn, Request: ref, Aside: true,
		Text: e.Text, ModelUsage: e.ModelUsage, MS: e.MS}
}

// Summary is what stands in the place of messages of a state's window. Its text is a blob of the run.
type Summary struct {
	Covers []Range
	Hash   string
}

func (s *Snapshot) applySummary(d *Summarised) {
	s.Turns++
	if d.Request.Task != "" {
		s.spend(d.ModelUsage)
	}
	summaries := make(map[string]Summary, len(s.Summaries)+1)
	for state, old := range s.Summaries {
		summaries[state] = old
	}
	summaries[d.State] = Summary{Covers: d.Covers, Hash: d.Request.Summary}
	s.Summaries = summaries
}

// spend counts one model call.
func (s *Snapshot) spend(used ModelUsage) {
	u := &s.Spent.Usage
	u.ModelCalls++
	u.PromptTokens += used.PromptTokens
	u.CompletionTokens += used.CompletionTokens
	if used.Cost == nil {
		return
	}
	cost := *used.Cost
	if u.Cost != nil {
		cost += *u.Cost
	}
	u.Cost = &cost
}

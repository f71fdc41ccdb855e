package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/engine/model"
	"flowctl/engine/model/openai"
	"flowctl/store"
)

func (a *app) viewCommand() *cobra.Command {
	var at int64
	cmd := &cobra.Command{
		Use:   "view RUN",
		Short: "Show what a model was sent",
		Long: `Show exactly what a model was sent in a run: messages, tools and the schema of the answer. Without --at it is the
newest call; flowctl events RUN --log decision lists all of them.`,
		Example:           "  flowctl view 01JD\n  flowctl view 01JD --at 12 -o json",
		Args:              args(1, 1, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 1 {
				return usagef("list the model calls with: flowctl events "+args[0]+" --log decision", "there is no event %d", at)
			}
			return a.view(cmd.Context(), args[0], at)
		},
	}
	cmd.Flags().Int64Var(&at, "at", 0, "`SEQ` of the model_called or summarised event (default the newest)")
	return cmd
}

func (a *app) view(ctx context.Context, id string, at int64) error {
	p, row, err := a.openRun(ctx, id)
	if err != nil {
		return err
	}
	defer p.close()
	sent, err := p.eng.Sent(ctx, row.ID, at)
	if err != nil {
		return err
	}
	doc, err := p.viewed(ctx, row, sent)
	if err != nil {
		return err
	}
	if a.json() {
		a.printed = true
		a.printJSON(doc)
		return nil
	}
	doc.print(a)
	return nil
}

// viewed is what a model was sent, in the form of the endpoints that most models have. Its shape only grows.
type viewed struct {
	Run      string          `json:"run"`
	Seq      int64           `json:"seq"`
	State    string          `json:"state"`
	Visit    int64           `json:"visit"`
	Step     int64           `json:"step"`
	Label    string          `json:"label"`
	Name     string          `json:"name"`  // of the model in the flow
	Model    string          `json:"model"` // as its endpoint calls it
	Messages []viewedMessage `json:"messages"`
	Tools    []viewedTool    `json:"tools"`
	Answer   json.RawMessage `json:"answer"` // JSON Schema that the answer was to fit; null where none was sent
}

type viewedMessage struct {
	Role       model.Role   `json:"role"`
	Content    string       `json:"content"`
	Reasoning  string       `json:"reasoning_content,omitempty"`
	ToolCalls  []viewedCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type viewedCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function viewedFunction `json:"function"`
}

type viewedFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type viewedTool struct {
	Type     string             `json:"type"`
	Function viewedToolFunction `json:"function"`
}

type viewedToolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// viewed makes the document of a request.
func (p *place) viewed(ctx context.Context, row store.Run, sent engine.Sent) (viewed, error) {
	ev, called, req := sent.Event, sent.Called, sent.Request
	doc := viewed{Run: row.ID, Seq: ev.Seq, State: ev.State, Visit: ev.Visit, Step: ev.Step, Label: called.Label, Name: called.Name,
		Model: called.Model, Messages: []viewedMessage{}, Tools: []viewedTool{}}
	withReasoning, err := p.sendsReasoning(ctx, row, called.Name)
	if err != nil {
		return viewed{}, err
	}
	for _, m := range req.Messages {
		msg := viewedMessage{Role: m.Role, Content: m.Text, ToolCallID: m.CallID}
		if withReasoning {
			msg.Reasoning = m.Reasoning
		}
		for _, c := range m.Calls {
			msg.ToolCalls = append(msg.ToolCalls, viewedCall{ID: c.ID, Type: "function", Function: viewedFunction{Name: c.Name, Arguments: c.Args}})
		}
		doc.Messages = append(doc.Messages, msg)
	}
	for _, t := range req.Tools {
		doc.Tools = append(doc.Tools, viewedTool{Type: "function",
			Function: viewedToolFunction{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	if !req.NoSchema {
		doc.Answer = req.Answer
	}
	return doc, nil
}

// sendsReasoning says whether a model is sent its own reasoning back, by the flow as the run goes by it now.
func (p *place) sendsReasoning(ctx context.Context, row store.Run, name string) (bool, error) {
	m, err := p.definition(ctx, row)
	if err != nil || m == nil {
		return false, err
	}
	spec, _ := m.Models.Get(name)
	cfg, ok := spec.Config.(*openai.Config)
	return ok && cfg.Reasoning == openai.ReasoningSendBack, nil
}

// print writes the request for a person: what the model read, in its order.
func (v viewed) print(a *app) {
	out := func(text string) { a.outln(a.clean(text, a.Terminal.Out)) }
	part := func(title string) { a.outln("\n" + a.bold("── "+escape(title, ""))) }
	out(fmt.Sprintf("run %s, event %d: state %s, visit %d, step %d", v.Run, v.Seq, v.State, v.Visit, v.Step))
	out(fmt.Sprintf("%s, of model %s (%s)", v.Label, v.Name, v.Model))
	names := map[string]string{} // of the tools, by the id of the call
	for _, m := range v.Messages {
		title := string(m.Role)
		if m.Role == model.ToolRole {
			title += " · " + names[m.ToolCallID] + " · " + m.ToolCallID
		}
		part(title)
		if m.Reasoning != "" {
			out(inset("(reasoning) " + m.Reasoning))
		}
		if m.Content != "" {
			out(inset(m.Content))
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
			out(fmt.Sprintf("  → %s %s  [%s]", c.Function.Name, c.Function.Arguments, c.ID))
		}
	}
	if len(v.Tools) > 0 {
		part("tools")
	}
	for _, t := range v.Tools {
		out(t.Function.Name + ": " + strings.ReplaceAll(t.Function.Description, "\n", "\n  "))
		if t.Function.Parameters != nil {
			out("  " + string(t.Function.Parameters))
		}
	}
	if v.Answer != nil {
		part("schema of the answer")
		out(string(v.Answer))
	}
}

// inset moves a text to the right, so that nothing in it can pass for a heading.
func inset(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

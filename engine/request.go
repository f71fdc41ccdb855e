package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/engine/tool"
	"flowctl/engine/view"
	"flowctl/flows/machine"
	"flowctl/store"
)

// prompt is a request with what is stored of it: the references, and the blobs that they point to.
type prompt struct {
	request model.Request
	ref     history.Request
	blobs   []store.Blob
	room    room
	counted int64 // tokens, before any correction
}

// keep stores a text of the request as a blob and gives its hash, "" for no text.
func (p *prompt) keep(text string) string {
	if text == "" {
		return ""
	}
	hash := blobHash(text)
	p.blobs = append(p.blobs, store.Blob{Hash: hash, Data: []byte(text)})
	return hash
}

// blobHash names a text: half of its SHA-256 is enough to tell the texts of one run apart.
func blobHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// prompt makes the request of an exchange over the state's view, within the room that its model has.
func (x *exchange) prompt() (prompt, error) {
	st := x.st
	var p prompt
	parts := view.Parts{GoOn: st.s.words().headings().GoOn}
	for _, a := range x.answers {
		parts.Again = append(parts.Again, *a)
	}
	v, err := st.View()
	if err != nil {
		return p, err
	}
	if p.request.Tools, err = x.tools(rankText(v)); err != nil {
		return p, err
	}
	parts.Flat = len(p.request.Tools) == 0
	p.room = st.room(x.open)
	l := layers{room: p.room, flat: parts.Flat}
	l.answers = x.answerCost(parts, l.room)
	if err := x.fillLayers(v, &parts, &p, &l); err != nil {
		return p, err
	}
	if err := x.fillMessages(v, &parts, &p, &l); err != nil {
		return p, err
	}
	p.ref.System, p.ref.Task, p.ref.HowTo = p.keep(parts.System), p.keep(parts.Task), p.keep(p.request.HowTo)
	p.ref.GoOn = parts.GoOn
	if p.ref.Examples, err = x.keepJSON(&p, parts.Examples, len(parts.Examples)); err != nil {
		return p, err
	}
	if p.ref.Tools, err = x.keepJSON(&p, p.request.Tools, len(p.request.Tools)); err != nil {
		return p, err
	}
	p.request.Messages, p.request.Origin = st.mask().Request(view.Messages(parts)), x.origin()
	p.request.NoSchema = st.noSchema() // also with tools: those who make their calls as text are asked for them by a schema
	p.ref.NoSchema = p.request.NoSchema
	if x.task.Answer != nil && len(p.request.Tools) == 0 {
		p.request.Answer = x.task.Answer.JSON()
		p.ref.Answer = p.keep(string(p.request.Answer))
	}
	p.counted = tokens.Request(st.s.counter(st.snap.Now.Env.ModelID), x.wire(p.request), l.room.reasoning)
	return p, nil
}

// rankText is what tools are ranked against beside the task: what is known, and what the human said last.
func rankText(v view.View) string {
	var parts []string
	for _, item := range v.Vars {
		parts = append(parts, machine.FormatValue(item.Value))
	}
	for i := len(v.Messages) - 1; i >= 0; i-- {
		if v.Messages[i].Role == history.RoleHuman {
			parts = append(parts, v.Messages[i].Text)
			break
		}
	}
	return strings.Join(parts, "\n")
}

// origin says which turn asks. A summary takes a turn of its own.
func (x *exchange) origin() model.Origin {
	st := x.st
	return model.Origin{Run: st.RunID(), State: st.state.Name, Visit: st.Visit(), Turn: st.snap.Turns + 1}
}

// answerCost measures what stands behind the messages of a request: the answers that will not do, and the user's word to go
// on.
func (x *exchange) answerCost(parts view.Parts, r room) int64 {
	n := tokens.Message(r.counter, model.Message{Role: model.User, Text: parts.GoOn}, false)
	for _, m := range view.Messages(view.Parts{Task: parts.GoOn, Again: parts.Again}) {
		n += tokens.Message(r.counter, m, false)
	}
	return n
}

// fillLayers makes the system and the task layer.
func (x *exchange) fillLayers(v view.View, parts *view.Parts, p *prompt, l *layers) error {
	st := x.st
	system, err := x.system()
	if err != nil {
		return err
	}
	if parts.Examples, err = st.examples(); err != nil {
		return err
	}
	mask := st.mask()
	clean := func(text string) string { return mask.Text(st.s.eng.cfg.Secrets.Text(text)) }
	parts.System, p.request.HowTo = clean(system), x.howTo(len(p.request.Tools) > 0)
	if err := l.setSystem(x.wire(x.systemRequest(parts.System, p))); err != nil {
		return st.overBudget(err)
	}
	memory, err := st.remembered()
	if err != nil {
		return err
	}
	task := view.Task{Text: x.task.Text, Vars: v.Vars, Memory: memory, Attempts: v.Attempts}
	for _, d := range x.task.Data {
		task.Data = append(task.Data, view.Var{Name: d.Name, Value: mask.Value(d.Value)}) // before anything is cut
	}
	text, err := l.fitTask(task, st.s.words().headings(), parts.Examples, l.window().Cost(v.Messages)+l.answers)
	if err != nil {
		return st.overBudget(err)
	}
	parts.Task = clean(text)
	return nil
}

// wire gives a request as it goes out.
func (x *exchange) wire(req model.Request) model.Request {
	if x.open.InText {
		return (&model.JSONProtocol{}).Sent(req)
	}
	return req
}

// systemRequest is what of a request is never cut.
func (x *exchange) systemRequest(system string, p *prompt) model.Request {
	req := model.Request{HowTo: p.request.HowTo, Tools: p.request.Tools}
	if system != "" {
		req.Messages = []model.Message{{Role: model.System, Text: system}}
	}
	if x.task.Answer != nil && len(req.Tools) == 0 {
		req.Answer = x.task.Answer.JSON()
	}
	return req
}

// fillMessages makes the messages, and a summary in the place of those that have no room.
func (x *exchange) fillMessages(v view.View, parts *view.Parts, p *prompt, l *layers) error {
	w := l.window()
	if w.Limit < 0 {
		return x.st.overBudget(&view.BudgetError{Layer: "recent", Need: l.answers, Limit: l.answers + w.Limit})
	}
	fitted, hash, err := x.fitMessages(v.Messages, w)
	if err != nil {
		return x.st.overBudget(err)
	}
	parts.Talk, parts.Summary = fitted.Messages, fitted.Summary
	p.ref.Messages = view.Ranges(fitted.Messages)
	if fitted.Summary != "" {
		p.ref.Summary = hash
	}
	for _, c := range fitted.Cut {
		hash, err := x.keepJSON(p, c.Content, 1)
		if err != nil {
			return err
		}
		p.ref.Cut = append(p.ref.Cut, history.Cut{N: c.N, Hash: hash})
	}
	return nil
}

// keepJSON keeps a list of n things as JSON, nothing where there are none.
func (x *exchange) keepJSON(p *prompt, list any, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	data, err := machine.EncodeValue(list)
	if err != nil {
		return "", x.st.failed(&unstorableError{err})
	}
	return p.keep(string(data)), nil
}

// tools gives what the model may call: the tools that the state has at the moment, the best of them where it wants a choice,
// and the reserved one that takes the answer. Where there are none, or the task wants none, there is no reserved one either.
func (x *exchange) tools(known string) ([]model.Tool, error) {
	if !x.task.Tools {
		return nil, nil
	}
	set, err := x.st.tools()
	if err != nil {
		return nil, err
	}
	names := set.Names()
	if n := int(x.st.state.Select); n > 0 && len(names) > n {
		specs := make([]machine.ToolSpec, len(names))
		for i, name := range names {
			t, _ := set.Tool(name)
			specs[i] = t.Spec
		}
		names = tool.Best(x.task.Text+"\n"+known, specs, n)
	}
	var tools []model.Tool
	for _, name := range names {
		t, _ := set.Tool(name)
		tools = append(tools, asTool(t))
	}
	if len(tools) > 0 && x.task.Answer != nil {
		tools = append(tools, model.Tool{Name: model.FinishTool, Description: x.st.s.words().finishDoc(), Parameters: x.task.Answer.JSON()})
	}
	return tools, nil
}

// tools gives the tools that the state has at the moment: those whose guard holds.
func (st *Step) tools() (*tool.Set, error) {
	if len(st.state.ToolWhen) == 0 {
		return st.set, nil
	}
	var names []string
	for _, name := range st.state.Tools {
		if guard := st.state.ToolWhen[name]; guard != nil {
			holds, err := st.Holds(guard, nil)
			if err != nil {
				return nil, err
			}
			if !holds {
				continue
			}
		}
		names = append(names, name)
	}
	set, err := tool.NewSet(st.s.tools, names)
	if err != nil { // the step's own set was made of the same tools
		return nil, st.failed(err)
	}
	return set, nil
}

func asTool(t tool.Tool) model.Tool {
	parameters := json.RawMessage(`{"type":"object","properties":{}}`)
	if t.Spec.Parameters != nil {
		parameters = t.Spec.Parameters.JSON()
	}
	return model.Tool{Name: t.Spec.Name, Description: t.Spec.Description, Parameters: parameters}
}

// system gives the system text: the flow's instructions and the state's.
func (x *exchange) system() (string, error) {
	st := x.st
	var parts []string
	for _, text := range []machine.Text{st.s.m.Instructions, st.state.Instructions} {
		if text == nil {
			continue
		}
		rendered, err := st.Render(text)
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.TrimSpace(rendered))
	}
	return strings.Join(parts, "\n\n"), nil
}

// howTo says how to answer.
func (x *exchange) howTo(tools bool) string {
	schema := ""
	if x.task.Answer != nil {
		schema = string(x.task.Answer.JSON())
	}
	return x.st.s.words().howToAnswer(tools, schema)
}

// noSchema says whether the endpoint of the state's model has refused a schema before.
func (st *Step) noSchema() bool {
	return slices.Contains(st.snap.NoSchema, st.state.ModelName)
}

// examples gives the state's examples as messages. Their calls have ids that no call of a run has.
func (st *Step) examples() ([]model.Message, error) {
	var out []model.Message
	for i, ex := range st.state.Examples {
		user, err := st.Render(ex.User)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Message{Role: model.User, Text: user})
		made := model.Message{Role: model.Assistant}
		var results []model.Message
		for j, c := range ex.Calls {
			args := machine.Values{}
			for _, arg := range c.Args {
				v, err := st.Compute(arg.Value)
				if err != nil {
					return nil, err
				}
				args[arg.Name] = v
			}
			result, err := st.Compute(c.Result)
			if err != nil {
				return nil, err
			}
			id := fmt.Sprintf("example%s%s", digit36(i), digit36(j))
			made.Calls = append(made.Calls, model.Call{ID: id, Name: c.Tool, Args: machine.FormatValue(args)})
			results = append(results, model.Message{Role: model.ToolRole, CallID: id,
				Text: history.ResultText(tool.Result{Status: tool.OK, Value: result})})
		}
		if len(made.Calls) > 0 {
			out = append(append(out, made), results...)
		}
		answer, err := st.Compute(ex.Assistant)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Message{Role: model.Assistant, Text: machine.FormatValue(answer)})
	}
	return st.s.cleanMessages(out), nil
}

// cleanMessages takes secrets out of messages that were made of texts.
func (s *session) cleanMessages(messages []model.Message) []model.Message {
	clean := s.eng.cfg.Secrets.Text
	for i := range messages {
		messages[i].Text = clean(messages[i].Text)
		for j := range messages[i].Calls {
			messages[i].Calls[j].Args = clean(messages[i].Calls[j].Args)
		}
	}
	return messages
}

// callID makes the id of a call that a model asks for: unique in the run, and of nine letters and digits, which is what
// Mistral's endpoint demands of an id.
func callID(step, ordinal int64, n int) string {
	return fmt.Sprintf("%s%s%s", base36(step, 4), base36(ordinal, 3), base36(int64(n), 2))
}

func digit36(n int) string { return base36(int64(n), 1) }

func base36(n int64, width int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var out []byte
	for ; n > 0; n /= 36 {
		out = append([]byte{digits[n%36]}, out...)
	}
	return strings.Repeat("0", max(width-len(out), 0)) + string(out)
}

// What stands in requests beside the flow's own texts.

func (w words) headings() view.Headings {
	return view.Headings{Values: w.pick("What is known:", "已知信息："), Memory: w.pick("What is remembered:", "记忆："),
		Attempts: w.pick("What was tried before here:", "此前在这里的尝试："), Summary: w.pick("Summary of what was said before:", "此前对话的摘要："),
		GoOn: w.pick("Go on with your task.", "请继续完成任务。")}
}

func (w words) finishDoc() string {
	return w.pick("Give your final answer. Call it alone, when everything else is done.", "给出最终回答。完成其他所有工作后单独调用。")
}

// howToAnswer says how a request wants to be answered; schema is that of the answer object, "" for plain text.
func (w words) howToAnswer(tools bool, schema string) string {
	var lines []string
	if tools {
		lines = append(lines, w.pick("Say in one sentence why before you call a tool. Prefer the tools to guessing: what they can tell, never make up.",
			"调用工具之前，先用一句话说明原因。优先使用工具，不要猜测：工具能查到的内容，绝不编造。"))
	}
	switch {
	case schema == "" && tools:
		lines = append(lines, w.pick("When you are done, answer in plain text, without a call.", "完成后，用普通文本回答，不要调用工具。"))
	case schema == "":
		lines = append(lines, w.pick("Answer in plain text.", "请用普通文本回答。"))
	case tools:
		lines = append(lines, w.pick("When you are done, call the tool finish, alone, with your answer.", "完成后，单独调用工具 finish 给出回答。"))
	default:
		lines = append(lines, fmt.Sprintf(w.pick("Answer with one JSON object and nothing else, of this JSON Schema: %s",
			"请只用一个 JSON 对象回答，不要有其他内容，它必须符合以下 JSON Schema：%s"), schema))
	}
	return strings.Join(lines, "\n")
}

package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// The kinds of last.error of an exchange that came to no answer.
const (
	kindInvalid = "invalid" // what came does not fit, in spite of asking again
	kindCut     = "cut"     // the answer was longer than the token limit
	kindBlocked = "blocked" // the provider refuses to answer this
	kindOutage  = "outage"  // the endpoint is out of order
)

// reading is what a response says.
type reading struct {
	text, thought, reasoning string
	aloud                    bool // the reasoning stood in the text
	calls                    []model.Call
	answer                   machine.Value
	remark                   string // what the model is told behind the results of its calls
	wrong                    string // why it will not do, for the model
	why                      string // the same, for people
	kind                     string // of the problem, where wrong stays
}

// refuse says why an answer will not do, to the model in a sentence around it.
func (r *reading) refuse(sentence func(why string) string, why string) {
	r.wrong, r.why = sentence(why), why
}

// readResponse reads a response against what a task wants. It never guesses: what is not clear is wrong, and says how it
// would be right.
func readResponse(task Task, resp model.Response, w words) reading {
	r := reading{text: resp.Message.Text, reasoning: resp.Message.Reasoning, aloud: resp.Aloud, thought: resp.Why(), kind: kindInvalid}
	split, answer := model.SplitReasoning(resp.Message.Text)
	if r.reasoning == "" {
		r.reasoning, r.aloud = split, split != ""
	}
	switch {
	case resp.Finish == model.Length:
		r.wrong, r.why, r.kind = w.cut(), w.wasCut(), kindCut
		return r
	case resp.Problem != "":
		r.refuse(w.misread, resp.Problem)
		return r
	}
	if len(resp.Message.Calls) > 0 {
		r.text = answer
		if r.thought == resp.Message.Text {
			r.thought = answer
		}
		r.readCalls(task, resp.Message.Calls, w)
		return r
	}
	switch {
	case task.Answer != nil:
		r.readAnswer(task, resp.Message.Text, w)
	case answer == "":
		r.text, r.wrong, r.why = "", w.empty(), w.wasEmpty()
	default:
		r.text = answer
		r.check(task, answer, w)
	}
	return r
}

// check asks the handler about an answer that is right in form.
func (r *reading) check(task Task, answer machine.Value, w words) {
	if task.Check == nil {
		return
	}
	if wrong := task.Check(answer); wrong != "" {
		r.refuse(w.misfit, wrong)
	}
}

// readCalls takes the calls that can be made. The reserved tool gives the answer, if it is called alone.
func (r *reading) readCalls(task Task, calls []model.Call, w words) {
	var finish *model.Call
	var others []model.Call
	for i := range calls {
		switch {
		case task.Answer == nil || calls[i].Name != model.FinishTool:
			others = append(others, calls[i])
		case finish == nil:
			finish = &calls[i]
		}
	}
	switch {
	case len(others) > 0 && !task.Tools:
		r.wrong, r.why = w.strayCall(others[0].Name), w.wasStray(others[0].Name)
	case len(others) > 0:
		r.calls = others
		if finish != nil {
			r.remark = w.finishAlone()
		}
	default:
		// Kept also where it will not do: it is what is told to be wrong.
		r.text = finish.Args
		if name, twice := machine.RepeatedName(finish.Args); twice { // readers differ in which of the two counts
			r.refuse(w.misread, fmt.Sprintf("the arguments of %s give %q twice", finish.Name, name))
			return
		}
		r.readAnswer(task, finish.Args, w)
	}
}

// readAnswer takes the answer object.
func (r *reading) readAnswer(task Task, text string, w words) {
	raw, err := model.Object(text)
	if err != nil {
		r.refuse(w.misread, err.Error())
		if task.Tools {
			r.wrong += " " + w.useFinish()
		}
		return
	}
	value, thought, wrong := fit(task.Answer, raw)
	if wrong == "" && task.Check != nil {
		wrong = task.Check(value)
	}
	if r.thought == "" {
		r.thought = thought
	}
	if wrong != "" {
		r.refuse(w.misfit, wrong)
		return
	}
	r.answer, r.text = value, machine.FormatValue(value)
}

// fit makes an answer of what came. What small models add to it in passing, their reason above all, is taken out where the
// schema has no room for it; words of an enum may be written in another case and with blanks around them.
func fit(schema machine.Schema, raw json.RawMessage) (value machine.Value, thought, wrong string) {
	value, err := machine.DecodeValue(raw)
	if err != nil {
		return nil, "", err.Error()
	}
	object, ok := value.(machine.Values)
	if !ok {
		return nil, "", "it must be an object"
	}
	known := schema.Info().Properties
	for _, name := range machine.SortedNames(object) {
		if slices.Contains(known, name) {
			continue
		}
		if text, ok := object[name].(string); ok && slices.Contains([]string{"thought", "reason", "reasoning", "explanation"}, name) {
			thought = text
			delete(object, name)
		}
	}
	foldEnums(schema, object)
	value = schema.Coerce(object)
	if err := schema.Check(value); err != nil {
		return nil, thought, err.Error()
	}
	return value, thought, ""
}

// foldEnums writes words of enums as the schema does.
func foldEnums(schema machine.Schema, object machine.Values) {
	decoded, err := machine.DecodeValue(schema.JSON())
	if err != nil {
		return
	}
	whole, _ := decoded.(machine.Values)
	properties, _ := whole["properties"].(machine.Values)
	for name, v := range object {
		text, ok := v.(string)
		if !ok {
			continue
		}
		enum := enumOf(properties[name])
		if slices.Contains(enum, text) {
			continue
		}
		var near []string
		for _, word := range enum {
			if strings.EqualFold(strings.TrimSpace(text), strings.TrimSpace(word)) {
				near = append(near, word)
			}
		}
		if len(near) == 1 {
			object[name] = near[0]
		}
	}
}

// enumOf gives the words that a schema allows, also where it is one of several.
func enumOf(schema machine.Value) []string {
	object, _ := schema.(machine.Values)
	var words []string
	list, _ := object["enum"].([]machine.Value)
	for _, v := range list {
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}
	parts, _ := object["anyOf"].([]machine.Value)
	for _, part := range parts {
		words = append(words, enumOf(part)...)
	}
	return words
}

// What the model is told of an answer that will not do.

func (w words) cut() string {
	return w.pick("Your answer was cut off at the token limit, and nothing of it was done. Answer again, and shorter.",
		"你的回答因超过长度上限被截断，其中的内容都没有执行。请重新回答，并写得更短。")
}

func (w words) wasCut() string {
	return w.pick("it was cut off at the token limit", "回答超过了长度上限")
}

func (w words) wasEmpty() string { return w.pick("it is empty", "回答是空的") }

func (w words) misread(problem string) string {
	return fmt.Sprintf(w.pick("Your answer cannot be used: %s. Answer again.", "你的回答无法使用：%s。请重新回答。"), problem)
}

func (w words) misfit(problem string) string {
	return fmt.Sprintf(w.pick("Your answer does not fit: %s. Answer again.", "你的回答不符合要求：%s。请重新回答。"), problem)
}

func (w words) empty() string {
	return w.pick("Your answer is empty. Answer again.", "你的回答是空的。请重新回答。")
}

func (w words) strayCall(name string) string {
	return fmt.Sprintf(w.pick("You cannot call tools here, and %s was not called. Give your answer instead.",
		"此处不能调用工具，%s 没有被调用。请直接回答。"), name)
}

func (w words) wasStray(name string) string {
	return fmt.Sprintf(w.pick("%s was not called, since no tools can be called here", "此处不能调用工具，%s 没有被调用"), name)
}

func (w words) finishAlone() string {
	return fmt.Sprintf(w.pick("Your %s was not taken, since other calls stood beside it. Call finish alone.",
		"你的 %s 没有被采纳，因为同时还有其他调用。请单独调用 finish。"), model.FinishTool)
}

func (w words) useFinish() string {
	return fmt.Sprintf(w.pick("When you are done, call %s with your answer.", "完成后，请调用 %s 给出回答。"), model.FinishTool)
}

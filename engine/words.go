package engine

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// words are the engine's own sentences for the people who answer a flow, in its language: English, or Chinese with zh. What
// is said to the operator of a run (why it stopped, how to use a command) is English.
type words struct {
	zh     bool
	secret bool // of a question whose answer is not repeated
}

// words are those of the run's flow; English where it could not be read.
func (s *session) words() words { return words{zh: s.m != nil && s.m.Language == "zh"} }

// pick gives the sentence of the language.
func (w words) pick(en, zh string) string {
	if w.zh {
		return zh
	}
	return en
}

// yesNo is a yes or no that was given without words.
func (w words) yesNo(yes bool) string {
	if yes {
		return w.pick("yes", "是")
	}
	return w.pick("no", "否")
}

// call shows a call with all of its arguments: a human must see what is approved.
func (w words) call(name string, args machine.Values) string {
	if len(args) == 0 {
		return name
	}
	return name + w.pick(" (", "（") + w.args(args) + w.pick(")", "）")
}

func (w words) args(args machine.Values) string {
	list := make([]string, 0, len(args))
	for _, name := range machine.SortedNames(args) {
		list = append(list, name+" = "+shownArg(args[name]))
	}
	return strings.Join(list, w.pick(", ", "，"))
}

// ArgsText shows the arguments of a call on one line, each as name = value and none of it cut, for a question in a flow's
// language ("en" or "zh").
func ArgsText(args machine.Values, language string) string {
	return words{zh: language == "zh"}.args(args)
}

// shownArg shows all of an argument. Text that is no plain line is quoted.
func shownArg(v machine.Value) string {
	text, ok := v.(string)
	if ok && text != "" && text == strings.Join(strings.Fields(text), " ") && !strings.ContainsFunc(text, unseen) {
		return text
	}
	data, err := machine.EncodeValue(v)
	if err != nil {
		return machine.FormatValue(v)
	}
	var b strings.Builder
	for _, r := range string(data) {
		if unseen(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen says of a character that it is not seen, and may make others seem what they are not. The joiner of emoji is seen.
func unseen(r rune) bool {
	const joiner = '\u200d'
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != joiner
}

// approve asks whether a call may be made.
func (w words) approve(name string, args machine.Values) string {
	if w.zh {
		return "批准 " + w.call(name, args) + "？"
	}
	return "Approve " + w.call(name, args) + "?"
}

// doubt asks whether a call was made.
func (w words) doubt(name string, args machine.Values) string {
	if w.zh {
		return w.call(name, args) + "：已经开始，但无人知道是否完成。完成了吗？"
	}
	return w.call(name, args) + " was started, and nobody knows whether it happened. Did it?"
}

// denied says that a call was not approved.
func (w words) denied(name, reason string) string {
	text := w.pick("a human did not approve "+name, name+" 未获批准")
	if reason != "" {
		text += w.pick(": ", "：") + reason
	}
	return text
}

// unknown says that nobody knows how a call ended.
func (w words) unknown(name string) string {
	return w.pick("nobody knows whether "+name+" happened", "无人知道 "+name+" 是否完成")
}

// maxCited bounds, in runes, how much of an answer is repeated in a sentence about it.
const maxCited = 60

// cite gives an answer for a sentence about it.
func (w words) cite(answer string) string {
	if runes := []rune(answer); len(runes) > maxCited {
		answer = string(runes[:maxCited]) + "…"
	}
	switch {
	case w.secret:
		return w.pick("the answer", "这个回答")
	case strings.TrimSpace(answer) == "":
		return w.pick("an empty answer", "空白")
	case w.zh:
		return "“" + answer + "”"
	}
	return fmt.Sprintf("%q", answer)
}

// neither refuses what is neither yes nor no.
func (w words) neither(answer string) (what, hint string) {
	return w.cite(answer) + w.pick(" is neither yes nor no", "既不是肯定，也不是否定"),
		w.pick("answer yes, or no; what should change may stand behind a no", "请回答“是”或“否”，“否”后面可以写原因或要修改的内容")
}

// noChoice refuses what is none of the choices.
func (w words) noChoice(answer string, choices []history.Choice) (what, hint string) {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = c.Name
		if c.Label != "" && c.Label != c.Name {
			list[i] += w.pick(" (", "（") + c.Label + w.pick(")", "）")
		}
	}
	return w.cite(answer) + w.pick(" is no choice", "不是可选的回答"),
		w.pick("choose one of: ", "请选择：") + strings.Join(list, w.pick(", ", "、"))
}

// unfit refuses what breaks the schema of its question.
func (w words) unfit(answer string, info machine.SchemaInfo, err error) (what, hint string) {
	var bad *machine.SchemaError
	if errors.As(err, &bad) && w.secret {
		bad = bad.Unseen()
		err = bad
	}
	if bad == nil || len(bad.Faults) == 0 || bad.Faults[0].Path != "" {
		return w.pick("the answer does not fit: ", "回答不符合要求：") + w.faults(err), ""
	}
	hint = Want(err, w.pick("en", "zh"))
	switch {
	case len(info.Enum) > 0:
		hint = w.pick("it takes one of: ", "只能是：") + w.list(info.Enum)
	case hint == "" && info.Description != "":
		hint = w.pick("wanted: ", "需要：") + info.Description
	case hint == "":
		hint = w.faults(err)
	case !w.zh:
		hint = "it takes " + hint
	}
	return w.cite(answer) + w.pick(" will not do", "不能作为回答"), hint
}

func (w words) list(values []machine.Value) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = machine.FormatValue(v)
	}
	return strings.Join(list, w.pick(", ", "、"))
}

// faults lists all that is wrong with a value.
func (w words) faults(err error) string {
	var bad *machine.SchemaError
	if !w.zh || !errors.As(err, &bad) {
		return err.Error()
	}
	var list []string
	for _, f := range bad.Faults {
		text := chineseWant(f.Want)
		if text == "" {
			text = "需要 " + f.Want
		}
		if f.Path != "" {
			text = f.Path + "：" + text
		}
		list = append(list, text)
	}
	return strings.Join(list, "；")
}

// Want says what a schema wanted instead of a value that broke it, in a flow's language ("en" or "zh"), for people: in
// English to go on from "it takes", such as "at most 10"; in Chinese a sentence of its own. It is "" where they would learn
// nothing from it: of a pattern, and in Chinese of an enum.
func Want(err error, language string) string {
	var bad *machine.SchemaError
	if !errors.As(err, &bad) || len(bad.Faults) == 0 {
		return ""
	}
	want := strings.TrimPrefix(strings.TrimSuffix(bad.Faults[0].Want, " or null"), "null or ")
	switch {
	case strings.Contains(want, "matches"):
		return ""
	case language == "zh":
		return chineseWant(want)
	}
	switch want {
	case "an integer":
		return "a whole number"
	case "a boolean":
		return "yes or no"
	case "a string":
		return "text"
	}
	return want
}

// chineseWants are the Chinese words for what a schema wants.
var chineseWants = []struct {
	english *regexp.Regexp
	chinese string
}{
	{regexp.MustCompile(`^at least (\S+) characters?$`), "至少 $1 个字符"},
	{regexp.MustCompile(`^at most (\S+) characters?$`), "最多 $1 个字符"},
	{regexp.MustCompile(`^at least (\S+) items?$`), "至少 $1 项"},
	{regexp.MustCompile(`^at most (\S+) items?$`), "最多 $1 项"},
	{regexp.MustCompile(`^at least (\S+)$`), "不能小于 $1"},
	{regexp.MustCompile(`^at most (\S+)$`), "不能大于 $1"},
	{regexp.MustCompile(`^more than (\S+)$`), "必须大于 $1"},
	{regexp.MustCompile(`^less than (\S+)$`), "必须小于 $1"},
	{regexp.MustCompile(`^a multiple of (\S+)$`), "必须是 $1 的倍数"},
	{regexp.MustCompile(`^items that differ`), "各项不能相同"},
	{regexp.MustCompile(`^a value, since it is required$`), "缺少这一项"},
	{regexp.MustCompile(`^a date such as (.+)$`), "需要日期，如 $1"},
	{regexp.MustCompile(`^a time with zone such as (.+)$`), "需要带时区的时间，如 $1"},
	{regexp.MustCompile(`^a date and time with zone such as (.+)$`), "需要带时区的日期和时间，如 $1"},
	{regexp.MustCompile(`^an ISO duration such as (.+)$`), "需要 ISO 格式的时长，如 $1"},
	{regexp.MustCompile(`^an e-mail address such as (.+)$`), "需要电子邮箱，如 $1"},
	{regexp.MustCompile(`^an address such as (.+) or (.+)$`), "需要网址，如 $1 或 $2"},
	{regexp.MustCompile(`^an address such as (.+)$`), "需要网址，如 $1"},
	{regexp.MustCompile(`^an? (UUID|IPv4 address|IPv6 address) such as (.+)$`), "需要 $1，如 $2"},
	{regexp.MustCompile(`^a host name such as (.+)$`), "需要主机名，如 $1"},
	{regexp.MustCompile(`^an integer$`), "需要整数"},
	{regexp.MustCompile(`^a number$`), "需要数字"},
	{regexp.MustCompile(`^a boolean$`), "需要回答是或否"},
	{regexp.MustCompile(`^a string$`), "需要文字"},
	{regexp.MustCompile(`^a list$`), "需要列表"},
	{regexp.MustCompile(`^an object$`), "需要 JSON 对象"},
}

func chineseWant(want string) string {
	for _, form := range chineseWants {
		if at := form.english.FindStringSubmatchIndex(want); at != nil {
			return string(form.english.ExpandString(nil, form.chinese, want, at))
		}
	}
	return ""
}

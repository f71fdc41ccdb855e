package states

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"flowctl/engine"
	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// words are the engine's own sentences in the language of a flow: English, or Chinese with zh.
type words struct{ zh bool }

// maxShown bounds, in runes, how much of a value or an answer is repeated in a sentence.
const maxShown = 60

// shorten cuts a text to one line of at most limit runes.
func shorten(text string, limit int) string {
	text = oneLine(text)
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit]) + "…"
}

// oneLine puts a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// pick gives the sentence of the language.
func (w words) pick(en, zh string) string {
	if w.zh {
		return zh
	}
	return en
}

// please asks for values that are described as wanted gives them.
func (w words) please(wanted []string) string {
	if len(wanted) == 1 {
		return w.pick("Please tell me "+wanted[0]+".", spaced("请告诉我", wanted[0])+"。")
	}
	return w.pick("Please tell me:", "请告诉我：") + "\n- " + strings.Join(wanted, "\n- ")
}

// askFor asks for one value. A description that is a question is asked as it stands.
func (w words) askFor(name string, info machine.SchemaInfo) string {
	text := strings.TrimRight(strings.TrimSpace(info.Description), ".。 ")
	yesNo := info.OnlyType() == "boolean"
	switch {
	case isQuestion(text):
		return text + w.hint(info, true)
	case !yesNo:
		return w.please([]string{w.wanted(name, info)})
	case text == "":
		text = spelled(name)
	}
	if w.zh && chineseWhether.MatchString(text) {
		return text + "？请回答是或否。"
	}
	return upperFirst(text) + w.pick(": yes or no?", "：是或否？")
}

func isQuestion(text string) bool {
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

func upperFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// chineseWhether is how a Chinese description begins that asks for yes or no.
var chineseWhether = regexp.MustCompile(`^(?:是否|要不要|需不需要|需要不需要|是不是|有没有|能否|可否)(?:需要|要|有|是|使用)?`)

// topic is what a noun that asks for yes or no is about: 包间 of 要不要包间.
func (w words) topic(noun string) string {
	if topic := chineseWhether.ReplaceAllString(noun, ""); topic != "" {
		return topic
	}
	return noun
}

// wanted describes a value that is asked for: what its schema says of it, and what can be answered.
func (w words) wanted(name string, info machine.SchemaInfo) string {
	text := strings.TrimRight(strings.TrimSpace(info.Description), ".。 ")
	hint := w.hint(info, text != "")
	if text == "" {
		text = spelled(name)
		if !w.zh {
			text = "the " + text
		}
	}
	if !w.zh {
		text = lowerArticle(text)
	}
	for _, word := range info.Enum {
		if !strings.Contains(text, machine.FormatValue(word)) {
			return text + hint
		}
	}
	if len(info.Enum) > 0 {
		return text // the description names them all
	}
	return text + hint
}

// hint says in brackets what can be answered, where the description is not likely to.
func (w words) hint(info machine.SchemaInfo, described bool) string {
	hint := ""
	switch only := info.OnlyType(); {
	case len(info.Enum) > 0:
		hint = w.orList(info.Enum)
	case info.Items != nil && len(info.Items.Enum) > 0:
		hint = w.pick("one or more of ", "可多选：") + w.list(info.Items.Enum)
	case only == "boolean":
		hint = w.pick("yes or no", "是或否")
	case described:
	case only == "integer":
		hint = w.pick("a whole number", "整数")
	case only == "number":
		hint = w.pick("a number", "数字")
	case info.Format == "date":
		hint = w.pick("a date such as 2026-01-31", "日期，如 2026-01-31")
	}
	if hint == "" {
		return ""
	}
	return w.pick(" ("+hint+")", "（"+hint+"）")
}

// articles are the words with which an English description may begin and that are written small within a sentence.
var articles = []string{"The", "A", "An", "Your", "This", "Which", "What", "When", "Where", "Who", "How", "Whether", "Why"}

func lowerArticle(text string) string {
	first, rest, _ := strings.Cut(text, " ")
	for _, article := range articles {
		if first == article && rest != "" {
			return strings.ToLower(first) + " " + rest
		}
	}
	return text
}

// Where the name of a thing ends in its description.
var (
	englishEnd = regexp.MustCompile(`[,;:.(（，；：。]|\s[-–—]\s| such as | for example | e\.g\. | like | that | which | of the form `)
	chineseEnd = regexp.MustCompile(`[,;:.(（，；：。]|例如|比如|譬如|如\s*[A-Za-z0-9]`)
)

// asks are the beginnings of descriptions that name no thing.
var asks = regexp.MustCompile(`^(which|what|when|where|who|how|whether|why) `)

// maxNoun bounds the name of a thing, in runes; what is longer is no name.
const maxNoun = 40

// noun gives the short name of a value: the beginning of its description, else its own name.
func (w words) noun(name string, info machine.SchemaInfo) string {
	if noun := w.described(info); noun != "" {
		return noun
	}
	return spelled(name)
}

// described is the noun with which a description begins, "" if there is none.
func (w words) described(info machine.SchemaInfo) string {
	text := strings.TrimSpace(info.Description)
	end := englishEnd
	if w.zh {
		end = chineseEnd
	}
	if at := end.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	text = strings.TrimRight(strings.TrimSpace(text), "?？")
	clause := false
	if !w.zh {
		text = lowerArticle(text)
		for _, article := range []string{"the ", "a ", "an ", "your ", "this "} {
			text = strings.TrimPrefix(text, article)
		}
		clause = asks.MatchString(text)
	}
	if clause || utf8.RuneCountInString(text) > maxNoun {
		return ""
	}
	return text
}

// spelled makes a name readable.
func spelled(name string) string { return strings.ReplaceAll(name, "_", " ") }

// label names a value where there is room for more than a noun.
func (w words) label(name string, info machine.SchemaInfo) string {
	text := strings.TrimRight(strings.TrimSpace(info.Description), ".。?？ ")
	if w.described(info) != "" || text == "" || utf8.RuneCountInString(text) > maxShown {
		return w.noun(name, info)
	}
	if w.zh {
		return text
	}
	return lowerArticle(text)
}

func (w words) shown(values []machine.Value) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = shorten(w.value(v), maxShown)
	}
	return list
}

func (w words) list(values []machine.Value) string {
	return strings.Join(w.shown(values), w.pick(", ", "、"))
}

func (w words) orList(values []machine.Value) string {
	list := w.shown(values)
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], w.pick(", ", "、")) + w.pick(" or ", "或") + list[last]
}

// value gives a value for people.
func (w words) value(v machine.Value) string {
	switch v := v.(type) {
	case bool:
		if v {
			return w.pick("yes", "是")
		}
		return w.pick("no", "否")
	case []machine.Value:
		if len(v) == 0 {
			return w.pick("none", "无")
		}
		return w.list(v)
	}
	return machine.FormatValue(v)
}

// cite gives what a human wrote for a sentence about it; more than a word stands in quotes.
func (w words) cite(came string) string {
	came = shorten(came, maxShown)
	if !strings.ContainsFunc(came, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) && r != '-' }) {
		return came
	}
	return w.pick(`"`+came+`"`, "“"+came+"”")
}

// called is the noun for a sentence about a value; "" where its description gives none, since people do not know the name
// of a variable that was asked for in other words.
func (w words) called(name string, info machine.SchemaInfo) string {
	if strings.TrimSpace(info.Description) != "" {
		return w.described(info)
	}
	return spelled(name)
}

// isNo says that what came is not what was asked for. why, if not "", says what would be right, as engine.Want words it.
func (w words) isNo(came, noun, why string) string {
	switch {
	case why != "":
		return w.unfit(came, noun, w.pick("it takes ", "")+why)
	case noun == "":
		return spaced(w.cite(came), w.pick(" will not do.", "不合适。"))
	case w.zh:
		return spaced(w.cite(came), "不是", noun) + "。"
	}
	return w.cite(came) + " is no " + noun + "."
}

// unfit says for which reason what came is not what was asked for.
func (w words) unfit(came, noun, reason string) string {
	came = w.cite(came)
	switch {
	case w.zh && noun == "":
		return spaced(came, "不合适") + "：" + reason + "。"
	case w.zh:
		return spaced(came, "不能作为", noun) + "：" + reason + "。"
	case noun == "":
		return came + " will not do: " + reason + "."
	}
	return came + " will not do as " + noun + ": " + reason + "."
}

// number says which number would be right. alone: the answer has one, but as a part of something else.
func (w words) number(whole, alone bool) string {
	switch {
	case alone:
		return w.pick("a number that stands alone", "请单独写出数字")
	case whole:
		return w.pick("a whole number", "需要整数")
	}
	return w.pick("a number", "需要数字")
}

// items says which items a list takes.
func (w words) items(values []machine.Value) string {
	return w.pick(w.orList(values), "可选的有"+w.list(values))
}

// noDate says why what came is no date.
func (w words) noDate(came, noun string, why match.DateFault) string {
	var reason string
	switch why {
	case match.NoYear:
		reason = w.pick("the year is missing, write it such as 2026-01-31", "缺少年份，请写成 2026-01-31 这样")
	case match.TwoReadings:
		reason = w.pick("it can mean two days, write it such as 2026-01-31", "可能是两个日期，请写成 2026-01-31 这样")
	default:
		reason = w.pick("there is no such day", "没有这一天")
	}
	return w.unfit(came, noun, reason)
}

// both says that an answer says yes and no.
func (w words) both() string {
	return w.pick("I read both yes and no in your answer.", "您的回答既有肯定，也有否定。")
}

// stillMissing says that a state gives up asking.
func (w words) stillMissing(questions int, names string) string {
	if w.zh {
		return fmt.Sprintf("问了 %d 次，仍然缺少：%s", questions, names)
	}
	return fmt.Sprintf("still missing after %d questions: %s", questions, names)
}

// neither says that what came is neither yes nor no.
func (w words) neither(came string) string {
	came = w.cite(came)
	if w.zh {
		return spaced(came, "既不是肯定，也不是否定") + "。"
	}
	return came + " is neither yes nor no."
}

// notFound says that an answer holds no such value.
func (w words) notFound(noun string) string {
	switch {
	case noun == "":
		return w.noneFound()
	case w.zh:
		return spaced("我在您的回答中没有找到", noun) + "。"
	}
	return "I found no " + noun + " in your answer."
}

// noneFound says that an answer holds nothing of what was asked for.
func (w words) noneFound() string {
	return w.pick("I found none of this in your answer.", "我在您的回答中没有找到需要的内容。")
}

// oneByOne says that the questions go on one at a time.
func (w words) oneByOne() string {
	return w.pick("I cannot tell apart what you told me, so one at a time.", "我无法区分您说的内容，请一项一项地告诉我。")
}

// nothingNew says that an answer changes nothing.
func (w words) nothingNew() string {
	return w.pick("I found no new value in your answer.", "我在您的回答中没有找到新的内容。")
}

// several says that one value was asked for and more came.
func (w words) several(noun string, values []machine.Value) string {
	if w.zh {
		return spaced(noun, "有多个：") + w.orList(values) + "。请只给一个。"
	}
	if noun != "" {
		noun = " " + noun
	}
	return fmt.Sprintf("There is more than one%s: %s. Which one is it?", noun, w.orList(values))
}

// severalUnseen is several for values that are not repeated.
func (w words) severalUnseen(noun string) string {
	if w.zh {
		return spaced("您的回答中有多个", noun) + "。请只给一个。"
	}
	if noun != "" {
		noun = " " + noun
	}
	return "There is more than one" + noun + " in your answer. Which one is it?"
}

// change asks what should change; now lists what stands, as noun and value.
func (w words) change(now [][2]string) string {
	list := make([]string, len(now))
	for i, pair := range now {
		list[i] = pair[0] + w.pick(": ", "：") + shorten(pair[1], maxShown)
	}
	return w.pick("What should change? At the moment: ", "要修改什么？目前：") +
		strings.Join(list, w.pick("; ", "；")) + w.pick(".", "。")
}

// keepWords are answers that mean that nothing should change.
var keepWords = regexp.MustCompile(`(?i)^\s*(no|nope|nothing|none|no changes?|keep (it|this|everything|all)( as it is)?|` +
	`it is (ok|okay|fine|right)|leave it( as it is)?|` +
	`不|不变|不用|不用了|没有|没|无|不改|不用改|不需要|不需要修改|不修改|保持不变|就这样|都对)\s*[.!。！]*\s*$`)

// keeps says whether an answer to what should change is that nothing should.
func (words) keeps(answer string) bool { return keepWords.MatchString(answer) }

// plan shows a plan and asks for a yes. Each step is one line, so that no value can pass for a step.
func (w words) plan(goal string, steps []*plannedStep) string {
	var b strings.Builder
	b.WriteString(w.pick("The plan", "计划"))
	if goal != "" {
		b.WriteString(w.pick(": ", "：") + oneLine(goal))
	}
	for i, s := range steps {
		fmt.Fprintf(&b, "\n%d. %s", i+1, w.step(s))
	}
	b.WriteString(w.pick("\nShall I go ahead?", "\n可以执行吗？"))
	return b.String()
}

// step shows one step of a plan: what it is, and what will be called with what.
func (w words) step(s *plannedStep) string {
	text := oneLine(s.Description)
	if s.Tool != "" {
		call := s.Tool
		if len(s.Args) > 0 {
			call += w.pick(": ", "：") + engine.ArgsText(s.Args, w.language())
		}
		if text == "" {
			text = call
		} else {
			text += w.pick(" (", "（") + call + w.pick(")", "）")
		}
	}
	if s.Status == statusDone {
		text += w.pick(" - done already", "（已完成）")
	}
	return text
}

// spaced joins parts and puts a space where Chinese meets Latin letters or digits.
func spaced(parts ...string) string {
	var b strings.Builder
	last := rune(0)
	for _, part := range parts {
		first, _ := utf8.DecodeRuneInString(part)
		if part != "" && last != 0 && unicode.Is(unicode.Han, last) != unicode.Is(unicode.Han, first) && word(last) && word(first) {
			b.WriteByte(' ')
		}
		b.WriteString(part)
		if part != "" {
			last, _ = utf8.DecodeLastRuneInString(part)
		}
	}
	return b.String()
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// language is the language's name.
func (w words) language() string { return w.pick("en", "zh") }

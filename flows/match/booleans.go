package match

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// Booleans finds yes and no, in the words of a language ("en" or "zh"; in zh English words count too). Only a clause
// that says nothing else counts: "ok, go ahead" and 好的，谢谢 are yes, but "ok is the wrong word" and 对于这个订单 are
// neither, nor is a question. A clause that says both is found twice, once for each. Values are bool.
func Booleans(text, lang string) []Found {
	f := fold(text, foldCase)
	var out []Found
	for i, j := range f.clauses() {
		if r := f.runeAt(j); r != '?' {
			yes, no, _ := judge(f.runes[i:j], lang)
			clause := strings.TrimSpace(f.cut(i, j))
			if yes {
				out = append(out, Found{clause, true})
			}
			if no {
				out = append(out, Found{clause, false})
			}
		}
	}
	return out
}

// YesNo reads a whole answer to a yes-or-no question. It is yes only where nothing but yes and politeness is said: what
// else stands beside a yes may take it back, change it or ask something ("yes, but only 2", "ok, wait", 好的，别退了), and
// nobody knows then what is agreed to. A no stands whatever else is said, which is its reason, unless a yes is said too.
// ok is false for everything else.
func YesNo(text, lang string) (yes, ok bool) {
	f := fold(text, foldCase)
	saidYes, saidNo, more := false, false, false
	for i, j := range f.clauses() {
		y, n, known := judge(f.runes[i:j], lang)
		if f.runeAt(j) == '?' {
			y, n, known = false, false, false
		}
		saidYes, saidNo, more = saidYes || y, saidNo || n, more || !known
	}
	switch {
	case saidNo && !saidYes:
		return false, true
	case saidYes && !saidNo && !more:
		return true, true
	}
	return false, false
}

// SaysNothing says whether a text holds nothing but politeness and the like: "thanks", 麻烦您.
func SaysNothing(text, lang string) bool {
	f := fold(text, foldCase)
	for i, j := range f.clauses() {
		if yes, no, known := judge(f.runes[i:j], lang); yes || no || !known {
			return false
		}
	}
	return true
}

// BooleansOf finds yes and no that are said of something that is called by one of names: in the clause with the name ("no
// gift wrap", 不要包间), or behind it where that clause says nothing else ("gift wrap: yes"). Values are bool.
func BooleansOf(text, lang string, names ...string) []Found {
	f := fold(text, foldCase)
	var words []*Word
	for _, name := range names {
		if word, err := Keyword(name); err == nil {
			words = append(words, word)
		}
	}
	var out []Found
	named := -1 // where a clause with the name started that says nothing else
	for i, j := range f.clauses() {
		clause, has := without(&f, i, j, words)
		yes, no, known := judge(clause, lang)
		from := i
		if named >= 0 {
			from = named
		}
		if question := f.runeAt(j) == '?'; !question && (has || named >= 0) && known {
			if yes {
				out = append(out, Found{strings.TrimSpace(f.cut(from, j)), true})
			}
			if no {
				out = append(out, Found{strings.TrimSpace(f.cut(from, j)), false})
			}
		}
		named = -1
		if end := f.runeAt(j); has && known && !yes && !no && (end == ':' || end == ',' || end == '=' || end == '?') {
			named = from
		}
	}
	return out
}

// without gives the clause from rune i to j with the first name in it taken out.
func without(f *folded, i, j int, names []*Word) (clause []rune, has bool) {
	for _, name := range names {
		for _, at := range name.spans(f) {
			if i <= at[0] && at[1] <= j {
				return slices.Concat(f.runes[i:at[0]], []rune{' '}, f.runes[at[1]:j]), true
			}
		}
	}
	return f.runes[i:j], false
}

// clauses gives where each clause begins and ends, in runes; the sign that ends it stands behind it.
func (f *folded) clauses() iter.Seq2[int, int] {
	return func(yield func(i, j int) bool) {
		for i := 0; i < len(f.runes); {
			j := i
			for j < len(f.runes) && !endsClause(f, j) {
				j++
			}
			if !yield(i, j) {
				return
			}
			i = j + 1
		}
	}
}

func endsClause(f *folded, i int) bool {
	switch r := f.runes[i]; r {
	case '.', ',', ';', ':', '=', '!', '?', '\n', '\r', '。', '、', '…', '~', '(', ')':
		return true
	default:
		return false
	}
}

// sense is what a word says about yes and no.
type sense int

const (
	filler sense = iota // politeness and the like
	saysYes
	saysNo
	negates // no, and what is said after it is denied
	neither // the whole clause says neither
)

// judge reads a clause: word by word, the longest first. A word that is not known makes it say nothing.
func judge(clause []rune, lang string) (yes, no, known bool) {
	denied := false
	for i := 0; i < len(clause); {
		if unicode.IsSpace(clause[i]) || clause[i] == '-' {
			i++
			continue
		}
		length, s := longestWord(clause, i, lang)
		switch {
		case length == 0 || s == neither || denied && s != saysYes && s != filler:
			return false, false, false
		case s == negates:
			no, denied = true, true
		case s == saysYes:
			yes = yes || !denied
		case s == saysNo:
			no = true
		}
		i += length
	}
	return yes, no, true
}

func longestWord(clause []rune, i int, lang string) (length int, s sense) {
	f := folded{runes: clause}
	if lang == "zh" {
		length, s = longest(&f, i, chineseWords)
	}
	if n, other := longest(&f, i, englishWords); n > length {
		return n, other
	}
	return length, s
}

func longest(f *folded, i int, v vocabulary) (length int, s sense) {
	for n := min(v.longest, len(f.runes)-i); n > 0; n-- {
		if s, ok := v.words[string(f.runes[i:i+n])]; ok && f.stands(i, i+n) {
			return n, s
		}
	}
	return 0, filler
}

// vocabulary is words and phrases with their sense, folded.
type vocabulary struct {
	words   map[string]sense
	longest int // in runes
}

// wordList is words and phrases of one sense, with | between them.
type wordList struct {
	sense sense
	words string
}

func newVocabulary(lists ...wordList) vocabulary {
	v := vocabulary{words: map[string]sense{}}
	for _, list := range lists {
		for word := range strings.SplitSeq(list.words, "|") {
			f := fold(word, foldCase)
			v.words[string(f.runes)] = list.sense
			v.longest = max(v.longest, len(f.runes))
		}
	}
	return v
}

var englishWords = newVocabulary(
	wordList{saysYes, "yes|y|yeah|yep|yup|yea|aye|ok|okay|okey|k|sure|true|correct|right|exactly|agreed|agree|absolutely|definitely|" +
		"certainly|confirm|confirmed|approve|approved|go ahead|of course|no problem|no worries|fine|sounds good|looks good|" +
		"all right|alright|do it|do that|please do|good|perfect|great|" +
		"go on|carry on|proceed|go ahead and"},
	wordList{saysNo, "no|n|nope|nah|nay|false|wrong|incorrect|cancel|reject|rejected|decline|declined|stop|abort|no way|no thanks|" +
		"no thank you|without|of course not|certainly not|definitely not|absolutely not"},
	wordList{negates, "not|never|please do not|don't|dont|don’t|doesn't|doesn’t|isn't|isn’t"},
	wordList{neither, "not sure|not yet|no idea|maybe|perhaps|don't know|dont know|do not know|not really sure|right now"},
	wordList{filler, "please|thanks|thank you|thank|you|i|it|it's|that|that's|this|is|am|the|then|sir|madam|very|much|do|want|would|" +
		"like|to|so|well|oh|ah|hm|hmm|all|with|me|for|really|just|quite|now|my|a|an|can|will|go|be"},
)

var chineseWords = newVocabulary(
	wordList{saysYes, "是|是的|对|对的|好|好的|好吧|行|可以|嗯|恩|确认|确定|同意|没问题|没有问题|没错|没有错|要|需要|当然|正确|愿意|" +
		"批准|继续|成|中|有|是这样|就这样|就这么办|對|確認|確定|沒問題|沒錯|當然|繼續"},
	wordList{saysNo, "否|不是|不对|不是的|不好|不行|不可以|不要|不需要|不同意|不用|不用了|不必|不确认|取消|错|错了|不正确|" +
		"算了|拒绝|不愿意|不想|不了|不批准|停|停止|不對|不確認|錯|錯了|拒絕"},
	wordList{negates, "不|别|没|没有|沒有|別"},
	wordList{neither, "不确定|不知道|不清楚|不好意思|是不是|对不对|好不好|行不行|可不可以|要不要|有没有|是否|可否|能否|不一定|吗|嗎|么|" +
		"不確定|對不對|有沒有"},
	wordList{filler, "的|了|吧|啊|呀|哦|喔|呢|嘛|哈|哈哈|啦|我|我们|你|您|请|谢谢|谢|多谢|麻烦|就|这样|这个|那|那就|都|也|很|非常|非常好|" +
		"一切|全部|谢谢您|谢谢你|感谢|尽快|快点|辛苦|辛苦了|執行|执行|办|办吧|办理|处理|現在|现在|先|请您|請|謝謝|感謝"},
)

package match

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// NumberWords finds small whole numbers that are written as words: zero to twenty in English, 零 to 九十九 in Chinese. Such
// words mean many other things, so they are for answers to a question for a number: a word counts only where it cannot be
// part of a larger number (two hundred, 三百), a time (at five, 三点), an order (第三, 周五) or a turn of speech (the blue
// one, 一下, 我要一个包间). Values are int64, in the order of the text; English words come first.
func NumberWords(text string) []Found {
	f := fold(text)
	return append(englishNumbers(&f), chineseNumbers(&f)...)
}

var englishNumberWords = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"}

// measures are the words that stand between a number and what it counts.
const measures = `公斤|个|個|位|人|名|件|张|張|份|只|隻|本|台|条|條|间|間|晚|天|盒|瓶|箱|包|双|雙|套|杯|次|斤|块|塊|元|口|桌|` +
	`袋|支|枝|辆|輛|部|把|棵|朵|颗|米|岁|歲`

// Words beside which a number word is no number of its own.
var (
	numberish = strings.Fields("thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen half point " +
		"percent o'clock o’clock am pm")
	beforeTimes = strings.Fields("at by till until past after before since number")
	// beforeOne are the words behind which "one" is a number; elsewhere it stands for a thing: the blue one.
	beforeOne = strings.Fields("for only just it is are be need want take have make exactly")
)

func englishNumbers(f *folded) []Found {
	type word struct {
		text     string
		from, to int
		first    bool // of its clause
	}
	var words []word
	first := true
	for i := 0; i < len(f.runes); {
		if !isWordRune(f.runes[i]) {
			first = first || endsClause(f, i)
			i++
			continue
		}
		j := tokenEnd(f, i)
		for j < len(f.runes) && (f.runes[j] == '\'' || f.runes[j] == '’') && isWordRune(f.runeAt(j+1)) {
			j = tokenEnd(f, j+1)
		}
		words = append(words, word{strings.ToLower(string(f.runes[i:j])), i, j, first})
		i, first = j, false
	}
	isNumber := func(text string) bool {
		return slices.Contains(englishNumberWords, text) || slices.Contains(numberish, text) ||
			text != "" && isASCIIDigit(rune(text[0]))
	}
	var out []Found
	for k, w := range words {
		n := slices.Index(englishNumberWords, w.text)
		var before, after string
		if k > 0 && !w.first {
			before = words[k-1].text
		}
		if k+1 < len(words) && !words[k+1].first {
			after = words[k+1].text
		}
		switch {
		case n < 0, isNumber(before), isNumber(after), slices.Contains(beforeTimes, before):
		case n == 1 && before != "" && !slices.Contains(beforeOne, before):
		default:
			out = append(out, Found{f.cut(w.from, w.to), int64(n)})
		}
	}
	return out
}

const chineseDigits = "零一二三四五六七八九"

var (
	chineseNumber = regexp.MustCompile(`[零〇一二三四五六七八九十两兩]+`)
	chineseSmall  = regexp.MustCompile(`^(?:[零〇一二三四五六七八九两兩]|([一二三四五六七八九])?十([一二三四五六七八九])?)$`)

	// measured is what follows a number that counts something.
	measured = regexp.MustCompile(`^(?:` + measures + `)`)
	// plainClause is a clause that says a number and nothing else, with the number taken out.
	plainBefore = regexp.MustCompile(`^(?:我们|我們|我|一共|总共|總共|共|大概|大约|就|只|有|要|是|来|來|给|嗯|那|\s)*$`)
	plainAfter  = regexp.MustCompile(`^(?:` + measures + `)?(?:人|大人|客人|吧|啊|呀|的|谢谢|謝謝|\s)*$`)
)

func chineseNumbers(f *folded) []Found {
	var out []Found
	for i, j := range f.clauses() {
		clause := string(f.runes[i:j])
		for _, at := range chineseNumber.FindAllStringIndex(clause, -1) {
			before, number, after := clause[:at[0]], clause[at[0]:at[1]], clause[at[1]:]
			n, ok := chineseValue(number)
			plain := plainBefore.MatchString(before) && plainAfter.MatchString(after)
			// 一个包间 is "a room": only a clause that says nothing else makes 一 a number.
			if !ok || !plain && (n == 1 || !measured.MatchString(after) || orders(before)) {
				continue
			}
			from := i + len([]rune(before))
			out = append(out, Found{f.cut(from, from+len([]rune(number))), n})
		}
	}
	return out
}

// orders says whether what stands before a number makes it one of an order or of a larger number: 第三, 周五, 每两, 百一.
func orders(before string) bool {
	runes := []rune(before)
	return len(runes) > 0 && (strings.ContainsRune("第周週期拜每百千万萬亿億点點", runes[len(runes)-1]) ||
		unicode.IsDigit(runes[len(runes)-1]))
}

// chineseValue reads a number from 零 to 九十九.
func chineseValue(text string) (int64, bool) {
	at := chineseSmall.FindStringSubmatch(text)
	if at == nil {
		return 0, false
	}
	digit := func(text string, otherwise int) int64 {
		if text == "" {
			return int64(otherwise)
		}
		return int64(strings.Index(chineseDigits, text) / len("零"))
	}
	switch {
	case strings.Contains(text, "十"):
		return digit(at[1], 1)*10 + digit(at[2], 0), true
	case text == "两" || text == "兩":
		return 2, true
	case text == "〇":
		return 0, true
	}
	return digit(text, 0), true
}

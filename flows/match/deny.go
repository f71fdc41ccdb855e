package match

import (
	"regexp"
	"strings"
)

// maxBefore bounds, in runes, how far before a hit a denial is looked for.
const maxBefore = 60

// englishDenial is a word that denies what follows it, and what may stand between the two.
var englishDenial = regexp.MustCompile(`(?i)(?:^|[^a-z'’])` +
	`(?:not|no|never|without|cannot|dont|doesnt|didnt|isnt|wasnt|arent|wont|[a-z]+n['’]t)` +
	`(?:\s+(?:a|an|the|any|my|your|this|that|in|at|on|for|to|be|really|want|wanna|need|like|wish))*\s*$`)

// chineseDenial is the same for Chinese.
var chineseDenial = regexp.MustCompile(`(?:(不)是?|并非|並非|([没沒])有?|([别別])|无需|無需)` +
	`(?:要|想要?|需要?|用|必|打算|是?因为|是?因為)?\s*$`)

// denied says whether the text denies what starts at rune start, directly before it.
func denied(f *folded, start int) bool {
	from := max(start-maxBefore, 0)
	before := string(f.runes[from:start])
	if englishDenial.MatchString(before) {
		return true
	}
	at := chineseDenial.FindStringSubmatchIndex(before)
	if at == nil {
		return false
	}
	first := from + len([]rune(before[:at[0]]))
	previous, next := f.runeAt(first-1), f.runeAt(first+1)
	switch {
	case at[2] >= 0: // 要不要, 退不退: a question; 要不, 不得不, 何不: a proposal
		return previous != next && !strings.ContainsRune("要得何可莫", previous)
	case at[4] >= 0: // 有没有: a question
		return previous != next
	case at[6] >= 0: // 特别, 分别
		return !strings.ContainsRune("特分区區级級类類个個性告识識", previous)
	}
	return true
}

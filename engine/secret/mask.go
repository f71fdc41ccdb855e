package secret

import (
	"strings"
	"unicode/utf8"
)

// Mask stands in outputs for what nobody is shown.
const Mask = "***"

// MinMasked is the number of characters from which on a value is found wherever it appears in text. A shorter one stands
// in too many innocent texts.
const MinMasked = 6

// NewMask makes a redactor that replaces values by Mask, without a name: for values that are a run's own, such as a code
// that a human typed. Values shorter than MinMasked are left out.
func NewMask(values []string) *Redactor {
	r := &Redactor{marks: map[string]string{}, starts: map[uint16][]string{}, whole: Mask}
	for _, value := range values {
		for _, text := range []string{value, strings.TrimSpace(value)} {
			if utf8.RuneCountInString(text) < MinMasked {
				continue
			}
			for _, form := range forms(text) {
				r.marks[form] = Mask
			}
		}
	}
	r.index()
	return r
}

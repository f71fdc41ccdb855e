package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Counter counts the tokens of a text: 0 for an empty one, never less than 0. Bytes that are no UTF-8 count as the
// replacement characters that a request has in their place. It is safe for concurrent use, and equal texts have equal
// counts. The count of two texts that are joined is about the sum of theirs: usually a little less, rarely more by a few.
type Counter interface {
	Count(text string) int64
}

// For gives the counter of a model by its name at the endpoint, such as gpt-5-mini or openai/gpt-4o: the encoding of
// OpenAI's models, the estimate for all others and for "". It loads nothing: an encoding is loaded by the first Count that
// needs it, which takes some 50 ms once in a process, and stays.
func For(modelID string) Counter {
	if e := familyOf(modelID).encoding; e != nil {
		return e
	}
	return estimate{}
}

const (
	// exactBytes is how much of a text an encoding counts: some 120,000 tokens of prose, in a fraction of a second. The rest
	// of a longer text is estimated, so that a text of any length is counted in bounded time.
	exactBytes = 1 << 19
	// gapBytes is the longest white space with line ends in it that an encoding counts. A longer one is estimated, since the
	// library's time grows with the square of its length: minutes for a page that was stripped of its markup.
	gapBytes = 64
)

// The encodings of OpenAI's models.
var (
	o200k  = &encoding{codec: sync.OnceValue(codec.NewO200kBase)}
	cl100k = &encoding{codec: sync.OnceValue(codec.NewCl100kBase)}
)

// encoding counts by the vocabulary of a model. Names of special tokens that stand in a text are text.
type encoding struct {
	codec func() *codec.Codec // loads it when called first
}

// Count implements Counter.
func (e *encoding) Count(text string) int64 {
	if text == "" {
		return 0
	}
	text, rest := split(text, exactBytes)
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // a replacement character for each broken byte, as JSON has it
	}
	n := estimate{}.Count(rest)
	for text != "" {
		from, to := gap(text)
		n += e.exact(text[:from]) + estimate{}.Count(text[from:to])
		text = text[to:]
	}
	return n
}

// exact counts a text without long gaps.
func (e *encoding) exact(text string) int64 {
	n, err := e.codec().Count(text)
	if err != nil { // the pattern that finds words has failed on this text; a count is needed all the same
		return estimate{}.Count(text)
	}
	return int64(n)
}

// gap finds the first white space of more than gapBytes that has a line end in it; an empty one at the end if there is none.
func gap(text string) (from, to int) {
	lines := false
	for i, r := range text {
		switch {
		case !unicode.IsSpace(r):
			if lines && i-from > gapBytes {
				return from, i
			}
			from, lines = i+utf8.RuneLen(r), false
		case r == '\n' || r == '\r':
			lines = true
		}
	}
	if !lines || len(text)-from <= gapBytes {
		from = len(text)
	}
	return from, len(text)
}

// split cuts a text after at most n bytes, not inside a character.
func split(text string, n int) (begin, rest string) {
	if len(text) <= n {
		return text, ""
	}
	for i := n; i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return text[:i], text[i:]
		}
	}
	return text[:n], text[n:]
}

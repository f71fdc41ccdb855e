package store

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWords is the number of different words of a MemoryFilter.Query that are looked for; what follows them is left out.
const MaxWords = 100

// Recall picks the entries that a MemoryFilter chooses and brings them into order. Every driver offers it what it has, so
// that a filter means the same everywhere; a driver's own index only spares it entries that cannot be chosen. One goroutine
// uses it.
type Recall struct {
	filter MemoryFilter
	keys   []string // what stands between the stars of filter.Keys
	words  []string
	hits   []hit
	full   bool   // the first filter.Limit hits are the best of all that were offered before, in order
	text   []byte // of one entry, folded; reused
}

// hit is a chosen entry with the number of words that were found in it.
type hit struct {
	entry MemoryEntry
	words int
}

// compare is the order of hits: more of the words first, else by namespace and key.
func (h hit) compare(other hit) int {
	return cmp.Or(cmp.Compare(other.words, h.words), cmp.Compare(h.entry.Namespace, other.entry.Namespace),
		cmp.Compare(h.entry.Key, other.entry.Key))
}

// surplus is how many hits beyond twice the limit are kept until the worst of them are dropped.
const surplus = 64

// NewRecall makes a Recall that was offered nothing yet.
func NewRecall(f MemoryFilter) *Recall {
	return &Recall{filter: f, keys: strings.Split(f.Keys, "*"), words: words(f.Query)}
}

// Words are the words of the query as they are looked for, each once. They consist of letters, digits, marks and pictures
// only, never of quotes, blanks or other signs, and are folded like the text that they are found in: letters of the Latin,
// Greek, Cyrillic, Armenian and full-width alphabets are small.
func (r *Recall) Words() []string { return r.words }

// Prefix is what every chosen key begins with.
func (r *Recall) Prefix() string { return r.keys[0] }

// Done says whether no entry that is yet to be offered can be chosen, if they come in the order of namespace and key.
func (r *Recall) Done() bool {
	if len(r.words) > 0 {
		return false // the best may be the last
	}
	return r.filter.Query != "" || r.filter.Limit > 0 && len(r.hits) >= r.filter.Limit
}

// Offer takes the entry if the filter chooses it. What is kept of its value is a copy. With a limit, no more than about
// twice as many entries are kept, however many are offered.
func (r *Recall) Offer(e MemoryEntry) {
	if r.filter.Namespace != "" && e.Namespace != r.filter.Namespace || r.filter.Keys != "" && !r.fits(e.Key) {
		return
	}
	found := 0
	if r.filter.Query != "" {
		if found = r.find(e); found == 0 {
			return
		}
	}
	h := hit{e, found}
	limit := r.filter.Limit
	if r.full && h.compare(r.hits[limit-1]) > 0 {
		return
	}
	if h.entry.Value = nil; !r.filter.Bare {
		h.entry.Value = append([]byte{}, e.Value...) // an empty one is not nil
	}
	r.hits = append(r.hits, h)
	if limit > 0 && (len(r.hits)-surplus)/2 > limit {
		r.cut()
	}
}

// cut brings the hits into order and drops those beyond the limit.
func (r *Recall) cut() {
	slices.SortFunc(r.hits, hit.compare)
	if limit := r.filter.Limit; limit > 0 && limit <= len(r.hits) {
		clear(r.hits[limit:]) // their values are not to stay
		r.hits, r.full = r.hits[:limit], true
	}
}

// Entries gives the chosen entries: those with more of the words first, else by namespace and key, as many as the filter's
// limit allows.
func (r *Recall) Entries() []MemoryEntry {
	r.cut()
	var got []MemoryEntry
	for _, h := range r.hits {
		got = append(got, h.entry)
	}
	return got
}

// fits says whether the pattern describes the whole key.
func (r *Recall) fits(key string) bool {
	first, last := r.keys[0], r.keys[len(r.keys)-1]
	if len(r.keys) == 1 {
		return key == first
	}
	if len(key) < len(first)+len(last) || !strings.HasPrefix(key, first) || !strings.HasSuffix(key, last) {
		return false
	}
	key = key[len(first) : len(key)-len(last)]
	for _, part := range r.keys[1 : len(r.keys)-1] {
		_, after, ok := strings.Cut(key, part) // the leftmost leaves most room for the others
		if !ok {
			return false
		}
		key = after
	}
	return true
}

// find counts the words that stand in key or value.
func (r *Recall) find(e MemoryEntry) (found int) {
	r.text = appendFolded(r.text[:0], []byte(e.Key))
	r.text = append(r.text, '\n') // no word reaches over it
	r.text = appendFolded(r.text, e.Value)
	for _, w := range r.words {
		if bytes.Contains(r.text, []byte(w)) {
			found++
		}
	}
	return found
}

// words takes a query apart. Writing without spaces, such as Chinese, does not say where its words end: there every two
// neighbours count as a word, so that a sentence finds what shares words with it, and best what shares most.
func words(query string) []string {
	var got []string
	seen := make(map[string]bool)
	add := func(w []rune) {
		if word := string(w); !seen[word] && len(got) < MaxWords {
			seen[word] = true
			got = append(got, word)
		}
	}
	for _, run := range strings.FieldsFunc(query, func(r rune) bool { return !inWord(r) }) {
		for rest := []rune(run); len(rest) > 0; {
			n := 1
			for n < len(rest) && (unspaced(rest[n]) == unspaced(rest[0]) || unicode.Is(unicode.M, rest[n])) {
				n++
			}
			word := rest[:n]
			rest = rest[n:]
			for i, r := range word {
				word[i] = fold(r)
			}
			if !unspaced(word[0]) || n <= 2 {
				add(word)
				continue
			}
			for i := range n - 1 {
				add(word[i : i+2])
			}
		}
	}
	return got
}

// inWord says whether a character is part of a word: a letter, a mark on one, a digit, or a picture such as an emoji.
func inWord(r rune) bool {
	return r != utf8.RuneError && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.So)
}

// unspaced says whether the character is of a writing without spaces between words. The long-vowel sign belongs to two.
func unspaced(r rune) bool {
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

// folding are the letters beyond ASCII whose case does not matter. An index must fold at least these; SQLite's knows no
// letters that came into Unicode late, so they are left out here.
var folding = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00c0, Hi: 0x037e, Stride: 1}, // Latin, first part of Greek
		{Lo: 0x0386, Hi: 0x0527, Stride: 1}, // Greek, Cyrillic
		{Lo: 0x0531, Hi: 0x0556, Stride: 1}, // Armenian
		{Lo: 0x1e00, Hi: 0x1fff, Stride: 1}, // Latin and Greek with accents
		{Lo: 0xff21, Hi: 0xff3a, Stride: 1}, // full-width Latin
	},
}

// fold gives a letter's small form, one character for one. Letters of ASCII stay apart from all others.
func fold(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case r >= utf8.RuneSelf && unicode.Is(folding, r):
		if small := unicode.ToLower(r); small >= utf8.RuneSelf {
			return small
		}
	}
	return r
}

// appendFolded appends text with every letter folded.
func appendFolded(to, text []byte) []byte {
	for len(text) > 0 {
		if c := text[0]; c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			to, text = append(to, c), text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		to, text = utf8.AppendRune(to, fold(r)), text[size:]
	}
	return to
}

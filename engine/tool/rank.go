package tool

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"flowctl/flows/machine"
)

// The constants of BM25, as they are commonly set, and how often the words of a tool's name count.
const (
	bm25K      = 1.2
	bm25B      = 0.75
	nameWeight = 3
)

// Best gives the names of the tools that fit a text best, at most n of them, in the order of specs. Tools are ranked by BM25
// over the words of their names, descriptions and parameters; Chinese, Japanese and Korean text counts by pairs of
// characters. Of equals, the earlier counts more.
//
// BM25: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework, 2009.
func Best(text string, specs []machine.ToolSpec, n int) []string {
	docs := make([]map[string]int, len(specs))
	total := 0
	holding := map[string]int{} // in how many documents a term stands
	for i, spec := range specs {
		docs[i] = document(spec)
		for term, count := range docs[i] {
			holding[term]++
			total += count
		}
	}
	type scored struct {
		place int
		score float64
	}
	scores := make([]scored, len(specs))
	query := slices.Compact(slices.Sorted(slices.Values(terms(text))))
	for i, doc := range docs {
		length := 0
		for _, count := range doc {
			length += count
		}
		scores[i].place = i
		for _, term := range query {
			if f := float64(doc[term]); f > 0 {
				rare := math.Log(1 + (float64(len(docs)-holding[term])+0.5)/(float64(holding[term])+0.5))
				norm := bm25K * (1 - bm25B + bm25B*float64(length*len(docs))/float64(total))
				scores[i].score += rare * f * (bm25K + 1) / (f + norm)
			}
		}
	}
	slices.SortStableFunc(scores, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	scores = scores[:min(n, len(scores))]
	slices.SortFunc(scores, func(a, b scored) int { return a.place - b.place })
	names := make([]string, len(scores))
	for i, s := range scores {
		names[i] = specs[s.place].Name
	}
	return names
}

// document counts the terms of a tool.
func document(spec machine.ToolSpec) map[string]int {
	counts := map[string]int{}
	for _, term := range terms(spec.Name) {
		counts[term] += nameWeight
	}
	words := spec.Description
	if spec.Parameters != nil {
		words += " " + parameterWords(spec.Parameters.JSON())
	}
	for _, term := range terms(words) {
		counts[term]++
	}
	return counts
}

// parameterWords gives the names and descriptions in the schema of a tool's arguments.
func parameterWords(schema []byte) string {
	v, err := machine.DecodeValue(schema)
	if err != nil {
		return ""
	}
	var words []string
	var walk func(machine.Value)
	walk = func(v machine.Value) {
		object, _ := v.(machine.Values)
		if text, ok := object["description"].(string); ok {
			words = append(words, text)
		}
		properties, _ := object["properties"].(machine.Values)
		for _, name := range machine.SortedNames(properties) {
			words = append(words, name)
			walk(properties[name])
		}
		if items, ok := object["items"]; ok {
			walk(items)
		}
	}
	walk(v)
	return strings.Join(words, " ")
}

// terms gives the terms of a text: words in lower case, an identifier's parts each for itself, and pairs of characters where
// a script has no spaces between words.
func terms(text string) []string {
	var out []string
	var word, script []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, stem(strings.ToLower(string(word))))
		}
		for i := range script {
			if i+1 < len(script) {
				out = append(out, string(script[i:i+2]))
			} else if len(script) == 1 {
				out = append(out, string(script))
			}
		}
		word, script = word[:0], script[:0]
	}
	var last rune
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			if len(word) > 0 {
				flush()
			}
			script = append(script, r)
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if len(script) > 0 || unicode.IsUpper(r) && unicode.IsLower(last) {
				flush()
			}
			word = append(word, r)
		default:
			flush()
		}
		last = r
	}
	flush()
	return out
}

// stem takes the plural's s from a word, so that order finds orders.
func stem(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// Package spell finds the word that somebody probably meant. It is used for the "did you mean" of every message about an
// unknown name. It imports nothing of this project.
package spell

import (
	"sort"
	"strings"
)

// Nearest gives the known word that is closest to word, or "" when none is close. A word that differs only by case,
// hyphens or underscores always counts as close; else about one edit in three letters does. Of equally close words the
// first in alphabetical order is taken, so that the answer does not depend on the order of known.
func Nearest(word string, known []string) string {
	sorted := append([]string(nil), known...)
	sort.Strings(sorted)
	best, bestDistance := "", 0 // a single letter is close to nothing
	if n := len([]rune(word)); n > 1 {
		bestDistance = max(n/3+1, 2)
	}
	folded := fold(word)
	for _, candidate := range sorted {
		if candidate == word || candidate == "" {
			continue
		}
		if fold(candidate) == folded {
			return candidate
		}
		if d := distance(strings.ToLower(word), strings.ToLower(candidate), bestDistance); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// fold drops what writers of names disagree about: case and the sign between words.
func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b. It gives limit for
// everything that is at least that far.
func distance(a, b string, limit int) int {
	ra, rb := []rune(a), []rune(b)
	if diff := len(ra) - len(rb); diff >= limit || -diff >= limit {
		return limit
	}
	before, last, now := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		now[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return min(last[len(rb)], limit)
}

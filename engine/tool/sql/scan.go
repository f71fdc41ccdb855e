package sql

import "strings"

// tokenKind says what a token is.
type tokenKind int

const (
	word    tokenKind = iota // a keyword, a name or a number
	quoted                   // a string literal or a quoted name
	named                    // :name
	foreign                  // a parameter of another notation: ?, ?1, @name, $name
	cast                     // ::, which SQLite does not have
	sign                     // any other character
)

// token is one piece of SQL. Comments and blanks are none.
type token struct {
	kind       tokenKind
	text       string
	start, end int // byte offsets
}

// is says whether the token is the given keyword, in upper case.
func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.text, keyword) }

// scan cuts SQL into tokens as SQLite does. It never fails: what it does not know is a sign, and SQLite will complain.
func scan(text string) []token {
	var tokens []token
	for i := 0; i < len(text); {
		if n := blank(text[i:]); n > 0 {
			i += n
			continue
		}
		kind, n := next(text[i:])
		tokens = append(tokens, token{kind: kind, text: text[i : i+n], start: i, end: i + n})
		i += n
	}
	return tokens
}

// blank gives the length of a blank or a comment at the beginning of s, 0 if there is none.
func blank(s string) int {
	switch {
	case strings.IndexByte(" \t\r\n\f", s[0]) >= 0:
		return 1
	case strings.HasPrefix(s, "\uFEFF"):
		return len("\uFEFF")
	case strings.HasPrefix(s, "--"):
		return upTo(s, "\n", 2)
	case strings.HasPrefix(s, "/*"):
		return upTo(s, "*/", 2)
	}
	return 0
}

// upTo gives the length of s up to and with the first end at or after from, or all of it.
func upTo(s, end string, from int) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(s)
}

// next gives kind and length of the token at the beginning of s.
func next(s string) (tokenKind, int) {
	switch c := s[0]; {
	case c == '\'' || c == '"' || c == '`':
		return quoted, quote(s, c)
	case c == '[':
		return quoted, upTo(s, "]", 1)
	case strings.HasPrefix(s, "::"):
		return cast, 2
	case c == ':' && nameLen(s[1:]) > 0:
		return named, 1 + nameLen(s[1:])
	case c == '?':
		return foreign, 1 + nameLen(s[1:])
	case (c == '@' || c == '$') && nameLen(s[1:]) > 0:
		return foreign, 1 + nameLen(s[1:])
	case nameLen(s) > 0:
		return word, nameLen(s)
	}
	return sign, 1
}

// quote gives the length of a quoted text; a doubled quote stands for itself.
func quote(s string, q byte) int {
	for i := 1; i < len(s); i++ {
		if s[i] != q {
			continue
		}
		if i+1 < len(s) && s[i+1] == q {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

// nameLen counts the bytes at the beginning of s that may stand in a name.
func nameLen(s string) int {
	for i := range len(s) {
		c := s[i]
		inside := c >= 0x80 || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '$' && i > 0
		if !inside {
			return i
		}
	}
	return len(s)
}

// split cuts tokens into statements at their semicolons, which are left out. Those inside the body of a trigger belong to
// it. Empty statements are dropped.
func split(tokens []token) [][]token {
	var all [][]token
	var one []token
	for _, t := range tokens {
		if t.text != ";" || t.kind != sign || inTrigger(one) {
			one = append(one, t)
			continue
		}
		if len(one) > 0 {
			all = append(all, one)
		}
		one = nil
	}
	if len(one) > 0 {
		all = append(all, one)
	}
	return all
}

// inTrigger says whether a statement so far is CREATE TRIGGER whose body goes on: it ends with END after a semicolon.
func inTrigger(one []token) bool {
	n := len(one)
	if n < 2 || !one[0].is("CREATE") {
		return false
	}
	second := one[1]
	if (second.is("TEMP") || second.is("TEMPORARY")) && n > 2 {
		second = one[2]
	}
	return second.is("TRIGGER") && !(one[n-1].is("END") && one[n-2].text == ";")
}

// sourceOf gives the text of a statement without what stands before and behind it.
func sourceOf(text string, one []token) string { return text[one[0].start:one[len(one)-1].end] }

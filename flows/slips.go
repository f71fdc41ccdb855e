package flows

import (
	"regexp"
	"strings"
	"unicode"

	"flowctl/flows/machine"
)

// slip is a mistake that people make when they write YAML, found in the text itself. The YAML library says only where it
// gave up, and that is rarely where the mistake is.
type slip struct {
	line int  // 1-based
	from int  // 1-based: where the outermost { or [ around it starts, else line
	sure bool // wrong wherever it stands; another counts only where the library gave up
	f    Finding
}

// slips reads the text of a file as YAML would, roughly, and finds where its author forgot about the rules of YAML.
func (d *document) slips() []slip {
	if d.slip != nil {
		return d.slip
	}
	s := slipScanner{doc: d, lines: make([][]rune, len(d.lines))}
	for i, line := range d.lines {
		s.lines[i] = []rune(strings.TrimSuffix(line, "\r"))
	}
	if len(s.lines) > 0 && len(s.lines[0]) > 0 && s.lines[0][0] == '\uFEFF' {
		s.lines[0][0] = ' '
	}
	for s.line < len(s.lines) {
		s.token()
	}
	d.slip = append([]slip{}, s.slips...)
	return d.slip
}

// slipScanner stands at a rune of the text. Line and col are 0-based.
type slipScanner struct {
	doc       *document
	lines     [][]rune
	line, col int

	flow    []bracket // the { and [ that are open
	more    bool      // in one of them, and a comma or the bracket itself came last
	key     string    // the key whose value is read
	inValue bool      // a key was read, and its value is not over
	indent  int       // column of the key or of the dash; what stands deeper belongs to it
	slips   []slip
}

// bracket is an open { or [.
type bracket struct {
	sign      rune
	line, col int
}

func (s *slipScanner) now() []rune {
	if s.line >= len(s.lines) {
		return nil
	}
	return s.lines[s.line]
}

// at gives a rune of the present line, 0 behind its end.
func (s *slipScanner) at(col int) rune {
	if line := s.now(); col >= 0 && col < len(line) {
		return line[col]
	}
	return 0
}

func (s *slipScanner) newLine() {
	s.line, s.col = s.line+1, 0
	if len(s.flow) == 0 {
		s.inValue, s.key = false, ""
	}
}

func (s *slipScanner) add(line, col int, sure bool, f Finding) {
	one := slip{line: line + 1, from: line + 1, sure: sure, f: f.at(machine.Pos{File: s.doc.file, Line: line + 1, Col: col + 1})}
	if len(s.flow) > 0 {
		one.from = s.flow[0].line + 1
	}
	s.slips = append(s.slips, one)
}

// token passes one token.
func (s *slipScanner) token() {
	if s.col == 0 {
		s.indentation()
		s.unclosed()
	}
	for s.at(s.col) == ' ' || s.at(s.col) == '\t' {
		s.col++
	}
	r := s.at(s.col)
	if r != 0 && r != '#' {
		s.more = false
	}
	switch r {
	case 0:
		s.newLine()
	case '#':
		if s.inValue && s.swallows(s.col) {
			s.needsQuotes(s.col, s.col, "begins with #")
			return
		}
		s.newLine()
	case '"', '\'':
		s.quoted()
	case '{', '[':
		s.open(r)
	case '}', ']':
		s.close(r)
	case ',':
		s.inValue, s.more = false, true
		s.col++
	case '|', '>':
		s.block()
	case '-', '?', ':':
		s.indicator(r)
	case '&', '*', '!':
		s.word()
	default:
		s.plain()
	}
}

// open passes { or [. Two { begin no mapping in a mapping, but a text that lacks its quotes.
func (s *slipScanner) open(r rune) {
	if r == '{' && s.at(s.col+1) == '{' {
		end := s.valueEnd(s.col)
		s.add(s.line, s.col, true, bareBraces(s.key, s.text(s.col, end)))
		s.col = end
		return
	}
	s.flow = append(s.flow, bracket{r, s.line, s.col})
	s.inValue, s.key, s.more = false, "", true
	s.col++
}

// close passes } or ]. One that does not fit shows that the bracket before it is not closed.
func (s *slipScanner) close(r rune) {
	s.inValue = false
	s.col++
	for len(s.flow) > 0 {
		last := s.flow[len(s.flow)-1]
		if last.sign == '{' && r == '}' || last.sign == '[' && r == ']' {
			s.flow = s.flow[:len(s.flow)-1]
			return
		}
		s.notClosed(last)
	}
}

func (s *slipScanner) notClosed(b bracket) {
	s.add(b.line, b.col, true, problem(ruleSyntax, "the %c here is not closed", b.sign))
	s.flow = s.flow[:len(s.flow)-1]
}

// keyLine is a line that begins with a key.
var keyLine = regexp.MustCompile(`^[\w-]+:(\s|$)`)

// unclosed finds out that brackets were not closed: a line as far out as the one where the first was opened begins with a
// key, and nothing before it says that more is to come.
func (s *slipScanner) unclosed() {
	if len(s.flow) == 0 || s.more {
		return
	}
	line, first := string(s.now()), string(s.lines[s.flow[0].line])
	if leading(line, " ") > leading(first, " ") || !keyLine.MatchString(strings.TrimLeft(line, " ")) {
		return
	}
	for len(s.flow) > 0 {
		s.notClosed(s.flow[len(s.flow)-1])
	}
	s.inValue, s.key = false, ""
}

// bareBraces is the finding about a text that begins with {{ and has no quotes.
func bareBraces(key, text string) Finding {
	f := problem(ruleBareBraces, "a text that begins with {{ must be quoted, or YAML takes the braces for its own")
	f.Fix = pair(key, yamlText(text))
	return f
}

// pair writes a key with its value, or the value alone.
func pair(key, value string) string {
	if key == "" {
		return value
	}
	return key + ": " + value
}

// yamlText writes a text as YAML: in double quotes if it holds braces, as flows mostly are, or single quotes; else in single
// ones, in which nothing else has a meaning.
func yamlText(s string) string {
	switch hard := strings.ContainsAny(s, "\"\\"); {
	case strings.ContainsFunc(s, unicode.IsControl):
		var b strings.Builder
		for _, r := range s {
			if unicode.IsControl(r) {
				r = ' '
			}
			b.WriteRune(r)
		}
		return yamlText(b.String())
	case !hard && (strings.Contains(s, "{{") || strings.Contains(s, "'")):
		return `"` + s + `"`
	}
	return quote(s)
}

func (s *slipScanner) text(from, to int) string {
	return strings.TrimSpace(string(s.now()[min(from, len(s.now())):min(to, len(s.now()))]))
}

// indicator passes -, ? or : where it stands by itself.
func (s *slipScanner) indicator(r rune) {
	if next := s.at(s.col + 1); next != 0 && next != ' ' && next != '\t' && (len(s.flow) == 0 || r == '-') {
		s.plain()
		return
	}
	switch r {
	case '-':
		s.indent, s.inValue, s.key = s.col, false, ""
	case ':':
		s.inValue = true
	}
	s.col++
}

// word passes an anchor, an alias or a tag.
func (s *slipScanner) word() {
	for r := s.at(s.col); r != 0 && !isSpace(r) && (len(s.flow) == 0 || !strings.ContainsRune(",[]{}", r)); r = s.at(s.col) {
		s.col++
	}
}

// block passes a block text: a header and the lines that are indented deeper than its key.
func (s *slipScanner) block() {
	if len(s.flow) > 0 {
		s.plain()
		return
	}
	indent := s.indent
	s.newLine()
	for s.line < len(s.lines) {
		line := string(s.now())
		if strings.TrimSpace(line) != "" && leading(line, " ") <= indent {
			return
		}
		s.newLine()
	}
}

// indentation looks at what a line begins with.
func (s *slipScanner) indentation() {
	for col, r := range s.now() {
		if r == ' ' || r == '\t' {
			continue
		}
		if name := oddSpace(r); name != "" {
			s.add(s.line, col, false, problem(ruleSyntax, "%s indents this line; YAML takes spaces only", name))
		}
		return
	}
}

// oddSpace names a space that YAML takes for a letter, "" for any other rune.
func oddSpace(r rune) string {
	switch {
	case r == '\u00A0':
		return "a non-breaking space (U+00A0)"
	case r == '\u3000':
		return "a full-width space (U+3000)"
	case r >= '\u2000' && r <= '\u200D', r == '\u202F', r == '\u205F', r == '\u2060', r == '\uFEFF':
		return "an invisible sign (" + codePoint(r) + ")"
	}
	return ""
}

// keyBeforeQuote is a quoted text that ends in the key of the next one: its quote was opened by a text before it.
var keyBeforeQuote = regexp.MustCompile(`[,{]\s*[\w-]+:\s*$`)

// quoted passes a text in quotes and looks at what follows it.
func (s *slipScanner) quoted() {
	quote, line, col := s.at(s.col), s.line, s.col
	key, inValue := s.key, s.inValue
	closed := s.pastQuote(quote)
	sameLine := s.line == line
	content := ""
	if closed && sameLine {
		content = string(s.now()[col+1 : s.col-1])
	}
	after := s.col
	for closed && (s.at(after) == ' ' || s.at(after) == '\t') {
		after++
	}
	next := s.at(after)
	switch {
	case closed && next == 0, closed && next == '#' && after > s.col:
	case closed && next == ':' && !inValue:
		s.key, s.indent, s.inValue = content, col, true
		s.col = after + 1
		return
	case closed && len(s.flow) > 0 && strings.ContainsRune(",]}:", next):
	case closed && sameLine && !keyBeforeQuote.MatchString(content):
		s.endsEarly(key, col)
		return
	default:
		s.line, s.col = line, col
		s.add(line, col, true, problem(ruleSyntax, "a quote is opened here and never closed"))
		s.flow = nil // what would close them is lost in the text
		s.newLine()
		return
	}
	if closed && sameLine && quote == '"' {
		s.escapes(key, col, content)
	}
}

// pastQuote stands behind the quote that closes the one here, on whatever line that is. It gives false where there is none.
func (s *slipScanner) pastQuote(quote rune) bool {
	for s.col++; s.line < len(s.lines); s.col++ {
		switch r := s.at(s.col); {
		case r == 0:
			s.line, s.col = s.line+1, -1
		case r == '\\' && quote == '"':
			s.col++
		case r == quote && quote == '\'' && s.at(s.col+1) == quote:
			s.col++
		case r == quote:
			s.col++
			return true
		}
	}
	return false
}

// endsEarly reports a value that goes on behind its closing quote: 'n < 3' or n > 5, or 'visits('a') < 3'.
func (s *slipScanner) endsEarly(key string, col int) {
	end := s.valueEnd(col)
	raw := s.text(col, end)
	f := problem(ruleSyntax, "the quotes end before the value does; put them around all of it, with the other kind of quotes inside")
	if guardKeys[key] {
		f = problem(ruleCut, "YAML cannot read this guard: its quotes end before it does; put them around all of it, "+
			"with the other kind of quotes inside")
	}
	f.Fix = pair(key, yamlText(unquoted(raw)))
	s.add(s.line, col, true, f)
	s.col = end
}

// guardKeys are the keys whose values are expressions.
var guardKeys = map[string]bool{"when": true, "expect": true}

// unquoted takes away the quotes that were meant for a whole value. Quotes around one word belong to the value itself.
func unquoted(raw string) string {
	q := raw[:1]
	rest := raw[1:]
	if inner, all := strings.CutSuffix(rest, q); all && strings.Contains(inner, q) {
		return inner
	}
	first, tail, _ := strings.Cut(rest, q)
	if strings.ContainsAny(first, " <>=!(") {
		return first + tail
	}
	return raw
}

// escapes reports a backslash in double quotes that YAML has no meaning for, as in "\d+".
func (s *slipScanner) escapes(key string, col int, content string) {
	runes := []rune(content)
	for i := 0; i < len(runes); i++ {
		if runes[i] != '\\' || i+1 == len(runes) {
			continue
		}
		if next := runes[i+1]; !strings.ContainsRune("0abt\tnvfre \"/\\'N_LPxuU", next) {
			f := problem(ruleSyntax, `in double quotes \%c has no meaning for YAML; in single quotes a backslash is a backslash`, next)
			f.Fix = pair(key, quote(strings.ReplaceAll(content, `\\`, `\`)))
			s.add(s.line, col+1+i, true, f)
			return
		}
		i++
	}
}

// fullWidthColon and oddAfterColon are keys whose colon YAML does not see.
var (
	fullWidthColon = regexp.MustCompile(`^[\w-]+\s*：`)
	oddAfterColon  = regexp.MustCompile(`^[\w-]+:[\x{00A0}\x{3000}\x{2000}-\x{200D}\x{202F}]`)
)

// plain passes a text without quotes: a key, or a value with what it must not hold.
func (s *slipScanner) plain() {
	start := s.col
	if r := s.at(start); r == '@' || r == '`' || r == '%' && start > 0 {
		s.needsQuotes(start, start, "begins with "+string(r))
		return
	}
	for ; ; s.col++ {
		r, next := s.at(s.col), s.at(s.col+1)
		switch {
		case r == 0:
			s.unseenColon(start, s.col)
			s.newLine()
			return
		case r == '#' && s.col > start && isSpace(s.at(s.col-1)):
			if s.swallows(s.col) {
				s.needsQuotes(start, s.col, "holds ' #'")
				return
			}
			s.unseenColon(start, s.col)
			s.newLine()
			return
		case r == ':' && (next == 0 || isSpace(next)):
			if s.inValue {
				s.needsQuotes(start, s.col, "holds ': '")
				return
			}
			s.key, s.inValue = s.text(start, s.col), true
			if len(s.flow) == 0 {
				s.indent = start
			}
			s.col++
			return
		case len(s.flow) > 0 && strings.ContainsRune(",]}", r):
			s.unseenColon(start, s.col)
			return
		case len(s.flow) > 0 && r == '?':
			s.needsQuotes(start, s.col, "holds a question mark")
			return
		case len(s.flow) > 0 && (r == '[' || r == '{'):
			if r == next {
				s.needsQuotes(start, s.col, "holds "+string([]rune{r, next}))
			} else {
				s.needsQuotes(start, s.col, "holds "+string(r))
			}
			return
		}
	}
}

// swallows says whether a comment holds all the brackets that would close those that are open: it was meant as text.
func (s *slipScanner) swallows(col int) bool {
	open := len(s.flow)
	for _, r := range s.now()[col:] {
		switch r {
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
	}
	return len(s.flow) > 0 && open == 0
}

// needsQuotes reports a value without quotes that YAML cannot read.
func (s *slipScanner) needsQuotes(start, col int, why string) {
	end := s.valueEnd(start)
	raw := s.text(start, end)
	place := ""
	if len(s.flow) > 0 {
		place = "inside { } and [ ] "
	}
	f := problem(ruleSyntax, "%sa value that %s must be in quotes", place, why)
	switch {
	case why == "holds {{":
		f.Rule = ruleBareBraces
	case guardKeys[s.key]:
		col, f = start, problem(ruleCut, "YAML cannot read this guard without quotes; quote the value")
	case strings.ContainsAny(raw[:min(len(raw), 3)], "“”‘’„"):
		col, f = start, problem(ruleSyntax, "curly quotes are no quotes for YAML, and %sa value that %s must be in straight ones", place, why)
		raw = strings.Trim(raw, "“”‘’„")
	}
	f.Fix = pair(s.key, yamlText(raw))
	s.add(s.line, col, true, f)
	s.col = max(end, s.col+1)
	s.inValue = false
}

// unseenColon reports what looks like a key and is none.
func (s *slipScanner) unseenColon(start, end int) {
	if s.inValue {
		return
	}
	text := s.text(start, end)
	if m := fullWidthColon.FindString(text); m != "" {
		s.add(s.line, start+len([]rune(m))-1, false, problem(ruleSyntax,
			"a full-width colon (：) makes no key; write : and a space"))
	} else if m := oddAfterColon.FindString(text); m != "" {
		runes := []rune(m)
		s.add(s.line, start+len(runes)-1, false, problem(ruleSyntax, "%s follows the colon; YAML takes a plain space", oddSpace(runes[len(runes)-1])))
	}
}

// nextPair is what follows the comma behind a value in { }: the next key, or the end of the line.
var nextPair = regexp.MustCompile(`^,\s*("[^"]*"|'[^']*'|[\w.-]+)\s*:(\s|$)|^,\s*$`)

// valueEnd says where a value that starts in this line was probably meant to end: with the line, or inside { } and [ ] at
// the comma or bracket behind it.
func (s *slipScanner) valueEnd(start int) int {
	line := s.now()
	if len(s.flow) == 0 {
		if i := strings.Index(string(line), " # "); i >= 0 {
			if col := len([]rune(string(line)[:i])); col > start && !strings.Contains(string(line[col:]), "{{") {
				return col
			}
		}
		return len(line)
	}
	var open []rune
	for i := start; i < len(line); i++ {
		switch r := line[i]; r {
		case '(', '[', '{':
			open = append(open, r)
		case ')', ']', '}':
			if len(open) == 0 && r != ')' {
				return i
			}
			open = open[:max(len(open)-1, 0)]
		case ',':
			list := s.flow[len(s.flow)-1].sign == '['
			if len(open) == 0 && (list || nextPair.MatchString(string(line[i:]))) {
				return i
			}
		case '"', '\'':
			if i == start || !unicode.IsLetter(line[i-1]) { // no apostrophe
				i = max(closing(line, i), i)
			}
		}
	}
	return len(line)
}

// closing gives the place of the next quote of the kind that stands at i, -1 if there is none.
func closing(line []rune, i int) int {
	for j := i + 1; j < len(line); j++ {
		if line[j] == line[i] {
			return j
		}
	}
	return -1
}

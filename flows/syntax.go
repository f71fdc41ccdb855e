package flows

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
)

// syntaxErrors turns what the YAML library says into findings with a place and plain words. The library stops at the first
// mistake; those that can be seen in the text itself are all told at once.
func (d *document) syntaxErrors(source []byte, err error) []Finding {
	line, said := splitYAMLError(err)
	if pos, r := controlSign(source); strings.HasPrefix(said, "control characters") && r != 0 {
		f := problem(ruleSyntax, "a control character (%s) stands here; YAML takes printable text only, so delete it", codePoint(r))
		return untilMended([]Finding{f.at(machine.Pos{File: d.file, Line: pos.Line, Col: pos.Col})})
	}
	switch {
	case strings.HasPrefix(said, "did not find expected key"), strings.HasPrefix(said, "did not find expected '-'"):
		// The library names the start of the mapping or list that broke, which may be a page above.
		line = d.firstFailing(source, said)
	case strings.HasPrefix(said, "did not find expected"):
		line++ // the parser counts from 0, the scanner from 1
	case strings.HasPrefix(said, "unknown anchor"):
		line = d.lineOf("*" + anchorName(said))
	}
	line = min(max(line, 1), len(d.lines))
	var found []Finding
	explained := false
	slips := d.slips()
	for _, s := range slips {
		if s.sure {
			found = append(found, s.f)
			explained = explained || s.from <= line
		}
	}
	for _, s := range slips {
		if !explained && !s.sure && (s.line == line || s.line == line-1 || s.from <= line && line <= s.line) {
			found = append(found, s.f)
			explained = true
		}
	}
	if !explained {
		text := d.lines[line-1]
		found = append(found, problem(ruleSyntax, "%s", plainWords(said, text)).
			at(machine.Pos{File: d.file, Line: line, Col: columnOf(said, text)}))
	}
	return untilMended(found)
}

// untilMended says in the first finding that more may follow: what is no YAML is checked no further.
func untilMended(found []Finding) []Finding {
	found = SortFindings(found)
	found[0].Message += " (the rest of the file is checked when this is mended)"
	return found
}

// controlSign finds the first rune that YAML does not take, 0 if there is none.
func controlSign(source []byte) (machine.Pos, rune) {
	line, col := 1, 1
	for _, r := range string(source) {
		switch {
		case r == '\n':
			line, col = line+1, 0
		case r < ' ' && r != '\t' && r != '\r', r > '~' && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
			return machine.Pos{Line: line, Col: col}, or(r, -1)
		}
		col++
	}
	return machine.Pos{}, 0
}

// codePoint names a rune that cannot be shown.
func codePoint(r rune) string { return fmt.Sprintf("U+%04X", max(r, 0)) }

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

func splitYAMLError(err error) (int, string) {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(said)
	if m == nil {
		return 0, said
	}
	line, _ := strconv.Atoi(m[1])
	return line, strings.TrimPrefix(said, m[0])
}

// firstFailing finds the first line with which the text fails in the given way. A text that ends early never fails so,
// and one that holds the bad line always does.
func (d *document) firstFailing(source []byte, said string) int {
	low, high := 1, len(d.lines)
	for low < high {
		mid := (low + high) / 2
		text := strings.Join(d.lines[:mid], "\n") + "\n"
		if err := scanYAML([]byte(text)); err != nil && strings.HasSuffix(err.Error(), said) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

func (d *document) lineOf(part string) int {
	for i, line := range d.lines {
		if strings.Contains(line, part) {
			return i + 1
		}
	}
	return 1
}

func anchorName(said string) string {
	_, rest, _ := strings.Cut(said, "'")
	name, _, _ := strings.Cut(rest, "'")
	return name
}

func plainWords(said, line string) string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case strings.Contains(indent, "\t"):
		return "a tab indents this line; YAML takes spaces only"
	case strings.HasPrefix(said, "mapping values are not allowed"):
		return "this line is indented deeper than the one above, which has a value already; mend the indentation"
	case strings.HasPrefix(said, "did not find expected key"):
		return "this line does not fit the ones above: mend its indentation, or quote the value before it"
	case strings.HasPrefix(said, "did not find expected '-'"):
		return "this line does not fit the list above it: start it with '- ' in the same column"
	case strings.HasPrefix(said, "did not find expected ',' or"):
		return "a { or [ is not closed, or a value in it holds brackets, commas or quotes and must be quoted"
	case strings.HasPrefix(said, "could not find expected ':'"):
		return "this line is neither a key with a colon nor part of the value above"
	case strings.HasPrefix(said, "found unexpected end of stream"):
		return "a quote is opened here and never closed"
	case strings.HasPrefix(said, "found character that cannot start any token"):
		return "a value cannot start with this character; quote it"
	case strings.HasPrefix(said, "unknown anchor"):
		return fmt.Sprintf("*%s names an anchor that stands nowhere above", anchorName(said))
	case strings.Contains(said, "depth"):
		return "lists and mappings are nested too deep"
	case strings.HasPrefix(said, "did not find expected comment or line break"):
		return "| and > begin a text of several lines, which starts in the next line; quote a value that begins with one of them"
	case strings.HasPrefix(said, "did not find expected node content"):
		return "a key or a value is missing in this line, beside a colon or a comma"
	}
	return "this is not YAML: " + said
}

// emptyPlace is where nothing stands before a colon or between two commas.
var emptyPlace = regexp.MustCompile(`[,{\[]\s*[:,]`)

// columnOf guesses the column from the text, as the library names only the line.
func columnOf(said, line string) int {
	at := len(line) - len(strings.TrimLeft(line, " "))
	switch {
	case strings.HasPrefix(said, "did not find expected node content"):
		if m := emptyPlace.FindStringIndex(line); m != nil {
			at = m[1] - 1
		}
	case strings.HasPrefix(said, "unknown anchor"):
		at = strings.Index(line, "*"+anchorName(said))
	case strings.HasPrefix(said, "did not find expected ',' or"):
		if i := strings.IndexAny(line, "{["); i >= 0 {
			at = i
		}
	case strings.HasPrefix(said, "found character that cannot start any token"):
		if i := strings.IndexAny(line, "\t@`%"); i >= 0 {
			at = i
		}
	}
	return utf8.RuneCountInString(line[:max(at, 0)]) + 1
}

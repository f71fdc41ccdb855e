package flows

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
)

// syntaxError turns what the YAML library says into a finding with a place and plain words.
func (d *document) syntaxError(source []byte, err error) Finding {
	line, said := splitYAMLError(err)
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
	text := d.lines[line-1]
	f := problem(ruleSyntax, "%s", plainWords(said, text))
	if col, guard := cutGuard(text); guard != "" {
		f := problem(ruleCut, "YAML cannot read this guard without quotes; quote the value")
		f.Fix = "when: " + quote(guard)
		return f.at(machine.Pos{File: d.file, Line: line, Col: col})
	}
	return f.at(machine.Pos{File: d.file, Line: line, Col: columnOf(said, text)})
}

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

func splitYAMLError(err error) (int, string) {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(said)
	if m == nil {
		return 1, said
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

// unquotedGuard finds a `when` and the text behind it, up to the next key of the mapping.
var unquotedGuard = regexp.MustCompile(`\bwhen: +(.*?)(?:, *(?:to|set|say|tool|id|args|description|expect): .*|[ ,}\]]*)$`)

// cutGuard gives a guard that YAML cannot read as it stands, and the column where it starts. One that is wholly in quotes,
// or a block, is no such thing.
func cutGuard(line string) (int, string) {
	m := unquotedGuard.FindStringSubmatchIndex(line)
	if m == nil {
		return 0, ""
	}
	guard := line[m[2]:m[3]]
	if guard == "" || strings.ContainsAny(guard[:1], "|>") || !strings.ContainsAny(guard, "\",[]{}'!&*%@`") {
		return 0, ""
	}
	if q := guard[0]; (q == '\'' || q == '"') && strings.IndexByte(guard[1:], q) == len(guard)-2 {
		return 0, ""
	}
	return utf8.RuneCountInString(line[:m[2]]) + 1, guard
}

func plainWords(said, line string) string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case strings.Contains(indent, "\t"):
		return "a tab indents this line; YAML takes spaces only"
	case strings.HasPrefix(said, "mapping values are not allowed"):
		return "a colon stands where none can; quote the value if it holds ': ', or mend the indentation"
	case strings.HasPrefix(said, "did not find expected key"):
		return "this line does not fit the ones above: mend its indentation, or quote the value before it"
	case strings.HasPrefix(said, "did not find expected '-'"):
		return "this line does not fit the list above it: start it with '- ' in the same column"
	case strings.HasPrefix(said, "did not find expected ',' or") && strings.Contains(line, "?"):
		return "a value with a question mark must be in quotes inside { } and [ ]: '…?'"
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
	case strings.HasPrefix(said, "control characters"):
		return "the file holds a control character; YAML takes printable text only"
	}
	return "this is not YAML: " + said
}

// columnOf guesses the column from the text, as the library names only the line.
func columnOf(said, line string) int {
	at := len(line) - len(strings.TrimLeft(line, " "))
	switch {
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

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"flowctl/flows/machine"
)

// outln writes a line of output.
func (a *app) outln(text string) { _, _ = fmt.Fprintln(a.Stdout, text) } // a failed write is kept in a.Stdout

// errln writes a line of progress, a hint or an error. Nobody can be told when that fails.
func (a *app) errln(text string) { _, _ = fmt.Fprintln(a.Stderr, text) }

// printJSON writes one JSON document, for programs: exactly as it is, with < > & left alone.
func (a *app) printJSON(doc any) {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		a.errln("flowctl: the document cannot be written: " + err.Error())
	}
}

// hostile says whether a terminal could take r for more than a letter: control characters, and the signs that turn the
// direction of writing, which make text look like another text.
func hostile(r rune) bool {
	switch {
	case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029:
		return true
	}
	return r == utf8.RuneError
}

// clean makes text that a model, a tool or a person wrote harmless on a terminal; line breaks and tabs stay. Elsewhere the
// text is given as it is.
func (a *app) clean(text string, terminal bool) string {
	if !terminal {
		return text
	}
	return escape(text, "\n\t")
}

// oneLine makes a text fit for one line of a table or a list.
func oneLine(text string) string {
	return escape(strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ "), "")
}

// escape writes hostile characters as escapes, apart from those in keep.
func escape(text, keep string) string {
	if strings.IndexFunc(text, hostile) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == utf8.RuneError, !hostile(r), strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// shorten cuts a one-line text to at most so many columns of a terminal.
func shorten(text string, columns int) string {
	if lipgloss.Width(text) <= columns {
		return text
	}
	var b strings.Builder
	width := 0
	for _, r := range text {
		if width += lipgloss.Width(string(r)); width > columns-1 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// readable gives a value as a person reads it: text as it stands, lists and objects as indented JSON.
func readable(v machine.Value) string {
	switch v.(type) {
	case []machine.Value, machine.Values:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if enc.Encode(v) == nil {
			return strings.TrimRight(b.String(), "\n")
		}
	}
	return machine.FormatValue(v)
}

// colours says whether text on a stream may have style.
func (a *app) colours(terminal bool) bool {
	no, _ := a.Getenv("NO_COLOR")
	term, _ := a.Getenv("TERM")
	return terminal && no == "" && term != "dumb"
}

// bold styles a text of the output where that is wanted.
func (a *app) bold(text string) string {
	if !a.colours(a.Terminal.Out) {
		return text
	}
	return lipgloss.NewStyle().Bold(true).Render(text)
}

// faint styles a text of progress where that is wanted.
func (a *app) faint(text string) string {
	if !a.colours(a.Terminal.Err) {
		return text
	}
	return lipgloss.NewStyle().Faint(true).Render(text)
}

// table lays out rows under a head. Cells must be one line each.
func (a *app) table(head []string, rows [][]string) {
	t := table.New().Border(lipgloss.HiddenBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).
		BorderRight(false).BorderColumn(false).BorderHeader(false).Wrap(false).
		StyleFunc(func(int, int) lipgloss.Style { return lipgloss.NewStyle().PaddingRight(2) }).
		Rows(rows...)
	if head != nil {
		t.Headers(head...)
	}
	for i, line := range strings.Split(t.String(), "\n") {
		line = strings.TrimRight(line, " ")
		if i == 0 && head != nil {
			line = a.bold(line)
		}
		a.outln(line)
	}
}

// command is a line that can be pasted into a shell.
func (a *app) command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return a.local("flowctl " + strings.Join(quoted, " "))
}

// local makes commands in a hint work here: they need the database that this call was given.
func (a *app) local(hint string) string {
	if !a.dbGiven {
		return hint
	}
	return strings.ReplaceAll(hint, "flowctl ", "flowctl --db "+shellQuote(a.flags.DB)+" ")
}

// shellQuote writes a word so that a POSIX shell reads it as it is.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package mcp

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// splitter cuts what a program prints into lines. A line that is longer than limit bytes is handed out in pieces of that
// size. It is written to by one goroutine.
type splitter struct {
	limit int
	marks bool               // there is a mark where a line was cut: what a cut leaves of a secret is known by that
	line  func([]byte) error // keeps nothing of what it is given; its error ends the writing
	rest  []byte             // of a line that is not complete
	cut   bool               // the line began in the piece before
}

// cutMark stands at both ends of a cut.
const cutMark = "…"

// Write hands out the lines that are complete now.
func (s *splitter) Write(data []byte) (int, error) {
	written := len(data)
	for len(data) > 0 {
		line, behind, complete := bytes.Cut(data, []byte{'\n'})
		cut := false
		if room := s.limit - len(s.rest); len(line) > room {
			line, behind, complete, cut = data[:room], data[room:], true, true
		}
		s.rest, data = append(s.rest, line...), behind
		if complete {
			if err := s.hand(cut); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

// flush hands out what is left of a last line without an end.
func (s *splitter) flush() error { return s.hand(false) }

// hand hands out a line, or a piece of one that goes on.
func (s *splitter) hand(goesOn bool) error {
	line := bytes.TrimSpace(s.rest)
	began := s.cut
	s.rest, s.cut = s.rest[:0], goesOn
	if len(line) == 0 {
		return nil
	}
	if began && s.marks {
		line = append([]byte(cutMark), line...)
	}
	if goesOn && s.marks {
		line = append(line[:len(line):len(line)], cutMark...)
	}
	return s.line(line)
}

// shorten gives the beginning of a line for a message.
func shorten(line string) string {
	const longest = 300 // bytes
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if len(line) <= longest {
		return line
	}
	end := longest
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}

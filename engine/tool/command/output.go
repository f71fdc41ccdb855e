package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxText is the size in bytes above which a text that a command prints is cut.
	maxText = 1 << 20

	// minSecret is the number of bytes that a value of the environment has at least to be masked. A shorter one would be
	// found in innocent text.
	minSecret = 8
)

// secrets are the texts that a command must not print, with what stands for them; longer ones first.
type secrets []masked

type masked struct {
	text []byte
	mark string
}

// add takes note of a text that comes from an environment variable.
func (s *secrets) add(text, name string) {
	if len(text) < minSecret {
		return
	}
	*s = append(*s, masked{text: []byte(text), mark: "[secret:" + name + "]"})
	slices.SortStableFunc(*s, func(a, b masked) int { return len(b.text) - len(a.text) })
}

// longest gives the size of the longest secret in bytes.
func (s secrets) longest() int {
	if len(s) == 0 {
		return 0
	}
	return len(s[0].text)
}

// at gives the secret that data begins with.
func (s secrets) at(data []byte) (masked, bool) {
	for _, one := range s {
		if bytes.HasPrefix(data, one.text) {
			return one, true
		}
	}
	return masked{}, false
}

// mask replaces the secrets that begin in the first limit bytes of data, and drops what stands behind these bytes.
func (s secrets) mask(data []byte, limit int) []byte {
	limit = min(limit, len(data))
	if len(s) == 0 {
		return data[:limit]
	}
	out := make([]byte, 0, limit)
	for i := 0; i < limit; {
		if one, ok := s.at(data[i:]); ok {
			out = append(out, one.mark...)
			i += len(one.text)
			continue
		}
		out = append(out, data[i])
		i++
	}
	return out
}

// capture keeps the first bytes that a command prints and counts the rest, so that the command is never held up. It is
// written to by one goroutine, and read when that one has ended.
type capture struct {
	keep  int // bytes
	kept  []byte
	total int64 // bytes that were printed
}

// newCapture makes a capture that keeps enough to find a secret also where the text is cut.
func newCapture(s secrets) *capture { return &capture{keep: maxText + s.longest()} }

func (c *capture) Write(data []byte) (int, error) {
	c.total += int64(len(data))
	if room := c.keep - len(c.kept); room > 0 {
		c.kept = append(c.kept, data[:min(room, len(data))]...)
	}
	return len(data), nil
}

// text gives what was printed, without secrets, as valid UTF-8, and with a mark where it was cut.
func (c *capture) text(s secrets) string {
	data := s.mask(c.kept, maxText)
	cut := c.total > maxText
	if cut {
		data = wholeRunes(data)
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	if len(text) > maxText {
		text, cut = string(wholeRunes([]byte(text[:maxText]))), true
	}
	if cut {
		text += fmt.Sprintf("… [cut: %d of %d bytes]", len(text), c.total)
	}
	return text
}

// wholeRunes drops a character that was cut in two from the end.
func wholeRunes(data []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(data); r != utf8.RuneError || size != 1 {
			break
		}
		data = data[:len(data)-1]
	}
	return data
}

// lastLine gives the last line of a text that says something, shortened: most programs say there why they failed.
func lastLine(text string) string {
	const longest = 300 // bytes
	text = strings.TrimSpace(text)
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > longest {
		line = string(wholeRunes([]byte(line[:longest]))) + "…"
	}
	return line
}

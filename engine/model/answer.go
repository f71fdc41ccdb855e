package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"flowctl/flows/machine"
)

// Object reads the one JSON object of an answer, as it was written. Reasoning blocks are no part of the answer, nor is
// what stands around the object: prose and the fences of code blocks. What cannot be told for sure is an error: no
// object, two that differ, one that is broken, one inside a list, or a name that stands twice in an object. The error's
// words are meant for the model, which is asked again.
func Object(text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the answer is empty; one JSON object is wanted")
	}
	s := scanner{text: text}
	s.scan()
	switch {
	case s.problem != nil:
		return nil, s.problem
	case s.found == nil:
		return nil, errors.New("the answer holds no JSON object; one JSON object is wanted, and nothing else")
	case s.open != unclosed{} && strings.Trim(text[s.end:], " \t\r\n`") != "":
		// The answer may end in reasoning that was never closed, but an object in the midst of it is a thought.
		return nil, errors.New("the reasoning in the answer is not closed, and goes on behind the JSON object")
	}
	return s.found, nil
}

// scanner looks for the objects of a text from its start to its end. Objects are taken whole, so what stands in their
// strings is never looked at: fences, braces and the marks of reasoning are text there.
type scanner struct {
	text    string
	at      int // offset in bytes
	depth   int // braces of prose that are open
	found   json.RawMessage
	end     int // offset behind the last object
	problem error
	open    unclosed
}

func (s *scanner) scan() {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '{':
			s.object()
		case c == '[' || c == '<':
			s.bracket()
		case c == '}' && s.depth > 0:
			s.depth--
			s.at++
		default:
			s.at++
		}
	}
}

// object takes the object that begins here.
func (s *scanner) object() {
	if !opensObject(s.text[s.at+1:]) { // a brace of prose, such as {name}
		s.depth++
		s.at++
		return
	}
	raw, err := decodeAt(s.text[s.at:])
	if err != nil {
		s.fail(fmt.Errorf("the JSON object of the answer is broken: %w", err))
		s.skip()
		return
	}
	s.take(raw)
	s.at += len(raw)
	s.end = s.at
}

// opensObject says whether what follows a brace makes it the start of a JSON object.
func opensObject(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest == "" || rest[0] == '"' || rest[0] == '}'
}

func (s *scanner) take(raw json.RawMessage) {
	switch {
	case s.problem != nil:
	case s.depth > 0:
		s.fail(errors.New("the JSON object of the answer stands inside other braces that are no JSON"))
	case s.found != nil && !sameValue(s.found, raw):
		s.fail(errors.New("the answer holds two different JSON objects; exactly one is wanted"))
	default:
		if name, twice := machine.RepeatedName(string(raw)); twice {
			s.fail(fmt.Errorf("the JSON object of the answer gives %q twice", name))
			return
		}
		if s.found == nil {
			s.found = raw
		}
	}
}

// fail keeps the first problem.
func (s *scanner) fail(err error) {
	if s.problem == nil {
		s.problem = err
	}
}

// skip leaves a broken object: nobody knows where it ends, and only the end of the reasoning that it may be part of can
// make the rest readable.
func (s *scanner) skip() {
	if i, _ := nextClose(s.text[s.at:]); i >= 0 {
		s.at += i
		return
	}
	s.at = len(s.text)
}

// bracket steps over a mark of reasoning or a list.
func (s *scanner) bracket() {
	rest := s.text[s.at:]
	if n := s.open.block(rest); n > 0 {
		s.at += n
		return
	}
	if n := closesReasoning(rest); n > 0 {
		// Some endpoints leave out the opening mark: all that came so far was reasoning.
		*s = scanner{text: s.text, at: s.at + n, open: s.open}
		return
	}
	if rest[0] == '[' && strings.HasPrefix(strings.TrimLeft(rest[1:], " \t\r\n"), "{") {
		s.fail(errors.New("the JSON object of the answer stands in a list; one JSON object is wanted, outside of a list"))
	}
	s.at++
}

// marks are what models put around their reasoning, in lower case.
var marks = [len(unclosed{})]struct{ open, end string }{
	{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"}, {"[think]", "[/think]"},
}

// unclosed remembers which kinds of blocks have no end in the rest of a text, so that nobody looks for it again.
type unclosed [5]bool

// block gives the length of the reasoning block that text begins with, 0 if it begins with none. A block that is never
// closed is only its mark: what follows may be the answer. Blocks may stand in each other; where that does not come out
// even, a mark was only talked about, and the first end is the end.
func (u *unclosed) block(text string) int {
	for i, m := range marks {
		if !hasPrefixFold(text, m.open) {
			continue
		}
		first := -1
		if !u[i] {
			first = indexFold(text, m.end)
		}
		if first < 0 {
			u[i] = true
			return len(m.open)
		}
		if n := evenBlock(text, m.open, m.end); n > 0 {
			return n
		}
		return first + len(m.end)
	}
	return 0
}

// evenBlock gives the length up to the end that matches the mark at the start of text, 0 if none does.
func evenBlock(text, open, end string) int {
	depth, at := 0, 0
	for {
		next := indexFold(text[at:], end)
		if next < 0 {
			return 0
		}
		for i := indexFold(text[at:at+next], open); i >= 0; i = indexFold(text[at:at+next], open) {
			depth++
			at += i + len(open)
			next -= i + len(open)
		}
		depth--
		at += next + len(end)
		if depth == 0 {
			return at
		}
	}
}

func closesReasoning(text string) int {
	for _, m := range marks {
		if hasPrefixFold(text, m.end) {
			return len(m.end)
		}
	}
	return 0
}

// nextClose finds the next end of any kind of reasoning: its offset and its length, or -1.
func nextClose(text string) (int, int) {
	at, length := -1, 0
	for _, m := range marks {
		if i := indexFold(text, m.end); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(m.end)
		}
	}
	return at, length
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// indexFold finds an ASCII text in any case. The first character of part has no case.
func indexFold(text, part string) int {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], part[0])
		if i < 0 {
			return -1
		}
		if at += i; hasPrefixFold(text[at:], part) {
			return at
		}
		at++
	}
}

// SplitReasoning takes the reasoning from the front of an answer in plain text, and gives both without the blanks around
// them. Reasoning that is never closed leaves no answer. Marks further on in the text are part of it, except where an
// end without beginning stands on a line of its own: all before it is reasoning.
func SplitReasoning(text string) (reasoning, answer string) {
	rest := strings.TrimSpace(text)
	var blocks []string
	var unended unclosed
	for {
		n := unended.block(rest)
		if n == 0 {
			break
		}
		open := strings.IndexAny(rest, ">]") + 1
		if n == open { // never closed
			return join(append(blocks, rest[open:])), ""
		}
		blocks = append(blocks, rest[open:strings.LastIndexAny(rest[:n], "<[")])
		rest = strings.TrimSpace(rest[n:])
	}
	if len(blocks) == 0 {
		if before, after, ok := cutAtClose(rest); ok {
			return strings.TrimSpace(before), strings.TrimSpace(after)
		}
	}
	return join(blocks), rest
}

func join(blocks []string) string {
	for i := range blocks {
		blocks[i] = strings.TrimSpace(blocks[i])
	}
	return strings.TrimSpace(strings.Join(blocks, "\n\n"))
}

// cutAtClose cuts at the first end of reasoning if that stands on a line of its own.
func cutAtClose(text string) (before, after string, ok bool) {
	at, n := nextClose(text)
	if at < 0 {
		return "", "", false
	}
	before, after = text[:at], text[at+n:]
	line, _, _ := strings.Cut(after, "\n")
	head := before[strings.LastIndexByte(before, '\n')+1:]
	return before, after, strings.TrimSpace(head) == "" && strings.TrimSpace(line) == ""
}

// decodeAt reads the JSON value at the start of text; what stands behind it does not matter.
func decodeAt(text string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := json.NewDecoder(strings.NewReader(text)).Decode(&raw)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = errors.New("it ends too early")
	}
	return raw, err
}

// sameValue says whether two texts are the same JSON.
func sameValue(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := machine.DecodeValue(a)
	y, errY := machine.DecodeValue(b)
	return errX == nil && errY == nil && machine.EqualValues(x, y)
}

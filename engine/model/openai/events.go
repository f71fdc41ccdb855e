package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// events reads the server-sent events of an endpoint and gives the library one line of data for each, the only form that
// it reads without loss: comments and other fields go, data on several lines becomes one, and an error that the endpoint
// sends in the stream is returned by Read.
type events struct {
	in     *bufio.Reader
	closer io.Closer

	event   string // name of the event being read
	pending []byte // its data so far, as long as that is no JSON
	out     bytes.Buffer
	err     error
}

func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 && e.err == nil {
		e.err = e.line()
	}
	if e.out.Len() > 0 {
		return e.out.Read(p)
	}
	return 0, e.err
}

func (e *events) Close() error { return e.closer.Close() }

// line reads one line. The last one counts too if the endpoint ends it with the connection; what a cut has left of a line
// does not.
func (e *events) line() error {
	line, err := e.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	line = bytes.TrimRight(line, "\r\n")
	name, value, ok := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	var failed error
	switch field := string(name); {
	case len(line) == 0:
		failed = e.flush()
		e.event = ""
	case ok && field == "data":
		failed = e.data(value)
	case ok && field == "event":
		e.event = string(value)
	case ok && (field == "" || field == "id" || field == "retry"):
	default: // an error that some endpoints write into a stream as it is
		failed = e.data(line)
	}
	if failed == nil && err != nil {
		failed = e.flush()
	}
	if failed != nil {
		return failed
	}
	return err
}

// data takes one line of data. It is given on as soon as it is whole, since some endpoints leave out the empty line.
func (e *events) data(value []byte) error {
	if len(e.pending) > 0 {
		value = append(append(e.pending, '\n'), value...)
	}
	text := strings.TrimSpace(string(value))
	if text != "[DONE]" && !json.Valid(value) {
		e.pending = value
		return nil
	}
	e.pending = nil
	return e.give(text)
}

// flush gives on what is no JSON, for the reader to complain about.
func (e *events) flush() error {
	if text := strings.TrimSpace(string(e.pending)); text != "" {
		e.pending = nil
		return e.give(strings.ReplaceAll(text, "\n", " "))
	}
	return nil
}

func (e *events) give(text string) error {
	if p, ok := errorIn([]byte(text), e.event == "error"); ok {
		return p.failure()
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) == nil {
		text = compact.String()
	}
	if rest, ok := strings.CutPrefix(text, `{"error":`); ok {
		text = `{ "error":` + rest // the library takes a line that starts so for an error, also where it is null
	}
	e.out.WriteString("data: " + text + "\n\n")
	return nil
}

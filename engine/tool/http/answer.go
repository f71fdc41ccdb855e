package http

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
)

const (
	// maxBody is the size in bytes above which an answer is cut.
	maxBody = 1 << 20

	// maxDepth is how deep lists and objects of an answer may be nested; above it stays the limit for any result.
	maxDepth = 400
)

// content is the body of an answer.
type content struct {
	value machine.Value
	flaw  string // why the value is not what the server meant, "" where it is
	kind  string // of the problem that the flaw is to a read
}

// readBody reads the body of an answer. An error is one of the connection.
func readBody(resp *http.Response) (content, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil || len(data) == 0 {
		return content{}, err
	}
	cut := len(data) > maxBody
	if cut {
		data = data[:maxBody]
		for range utf8.UTFMax - 1 {
			if r, size := utf8.DecodeLastRune(data); r != utf8.RuneError || size > 1 {
				break
			}
			data = data[:len(data)-1]
		}
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	kind := resp.Header.Get("Content-Type")
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return content{flaw: "the answer is no text in UTF-8" + named(kind), kind: "invalid"}, nil
	case cut:
		text += fmt.Sprintf("… [cut after %d bytes]", maxBody)
		return content{value: text, flaw: "the answer is larger than 1 MiB; ask for less", kind: "cut"}, nil
	case !isJSON(kind):
		return content{value: text}, nil
	}
	v, err := machine.DecodeValue([]byte(text))
	switch {
	case err != nil:
		return content{value: text, flaw: "the answer cannot be read as JSON: " + err.Error(), kind: "invalid"}, nil
	case deeper(v, maxDepth):
		return content{value: text, flaw: fmt.Sprintf("the answer is nested more than %d deep", maxDepth), kind: "invalid"}, nil
	}
	return content{value: v}, nil
}

func named(contentType string) string {
	if name, _, err := mime.ParseMediaType(contentType); err == nil {
		return " (" + name + ")"
	}
	return ""
}

// isJSON says whether a content type is JSON or made of it, such as application/problem+json.
func isJSON(contentType string) bool {
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && (name == "application/json" || name == "text/json" || strings.HasSuffix(name, "+json"))
}

// deeper says whether lists and objects are nested deeper than that.
func deeper(v machine.Value, depth int) bool {
	if depth < 0 {
		return true
	}
	switch x := v.(type) {
	case []machine.Value:
		for _, item := range x {
			if deeper(item, depth-1) {
				return true
			}
		}
	case machine.Values:
		for _, item := range x {
			if deeper(item, depth-1) {
				return true
			}
		}
	}
	return false
}

// headersOf gives headers by lower-case name, the first value of each. Cookies are left out: they are keys to a session
// that no later call takes up.
func headersOf(h http.Header) machine.Values {
	out := make(machine.Values, len(h))
	for name, values := range h {
		if name != "Set-Cookie" && name != "Set-Cookie2" && len(values) > 0 {
			out[strings.ToLower(name)] = values[0]
		}
	}
	return out
}

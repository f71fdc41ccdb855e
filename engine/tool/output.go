package tool

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"flowctl/flows/machine"
)

const (
	// MaxOutput is the size in bytes, as JSON, above which a result is cut. Tools have lower limits of their own.
	MaxOutput = 2 << 20

	maxMessage = 4000 // bytes of a problem's message
	maxDepth   = 500  // of nested lists and objects in a result
)

// output makes a value of what a tool gave: JSON, valid UTF-8, of bounded size.
func output(v any) (machine.Value, error) {
	if deeper(v, maxDepth) {
		return nil, fmt.Errorf("its lists and objects are nested more than %d deep", maxDepth)
	}
	value, err := machine.Normalize(v)
	if err != nil {
		return nil, err
	}
	return capped(value)
}

// deeper finds values that contain themselves before they are walked without end.
func deeper(v any, depth int) bool {
	if depth < 0 {
		return true
	}
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			if deeper(item, depth-1) {
				return true
			}
		}
	case map[string]any:
		for _, item := range x {
			if deeper(item, depth-1) {
				return true
			}
		}
	}
	return false
}

// capped cuts a result that is too large. An object keeps its shape when its texts are what is large (the output of a
// command); any other value is cut as JSON text, which a model can still read and a typed variable refuses.
func capped(v machine.Value) (machine.Value, error) {
	data, err := machine.EncodeValue(v)
	if err != nil {
		return nil, errors.New("it cannot be written as JSON")
	}
	if len(data) <= MaxOutput {
		return v, nil
	}
	switch x := v.(type) {
	case string:
		return CutText(x, MaxOutput), nil
	case machine.Values:
		out := make(machine.Values, len(x))
		for name, item := range x {
			if text, ok := item.(string); ok {
				item = CutText(text, MaxOutput/(2*len(x)))
			}
			out[name] = item
		}
		if less, err := machine.EncodeValue(out); err == nil && len(less) <= MaxOutput {
			return out, nil
		}
	}
	return CutText(string(data), MaxOutput), nil
}

// CutText cuts a text to at most limit bytes, at the boundary of a rune, and a marker that says so.
func CutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… [cut: %d of %d bytes]", s[:end], end, len(s))
}

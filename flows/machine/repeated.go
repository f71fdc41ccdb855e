package machine

import (
	"encoding/json"
	"strings"
)

// RepeatedName finds a name that an object, or one inside it, gives twice. In text that is no JSON it is looked for up to
// where that shows.
func RepeatedName(text string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil in a list
		value bool            // a name was read: its value comes next
	}
	var open []level
	for {
		token, err := dec.Token()
		if err != nil {
			return "", false
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].names != nil {
			if top := &open[n-1]; top.value {
				top.value = false
			} else {
				name, _ := token.(string)
				if top.names[name] {
					return name, true
				}
				top.names[name], top.value = true, true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

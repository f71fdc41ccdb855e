package schema

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"flowctl/flows/machine"
)

// at gives the value at a path of object names and list indexes.
func at(v machine.Value, path []string) (machine.Value, bool) {
	for _, token := range path {
		switch x := v.(type) {
		case machine.Values:
			next, ok := x[token]
			if !ok {
				return nil, false
			}
			v = next
		case []machine.Value:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

var (
	tokenEscapes   = strings.NewReplacer("~", "~0", "/", "~1")
	tokenUnescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// pointerOf writes a path as a JSON pointer.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(tokenEscapes.Replace(token))
	}
	return b.String()
}

// unescapeToken reads one part of the pointer in a $ref, which is also part of an address.
func unescapeToken(token string) string {
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return tokenUnescapes.Replace(token)
}

// placeOf writes where in a value something is, for people: items[2].name.
func placeOf(v machine.Value, path []string) string {
	var b strings.Builder
	for _, token := range path {
		if list, ok := v.([]machine.Value); ok {
			b.WriteString("[" + token + "]")
			v, _ = at(list, []string{token})
			continue
		}
		switch {
		case !plainName(token):
			b.WriteString("[" + strconv.Quote(token) + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
		v, _ = at(v, []string{token})
	}
	return b.String()
}

// plainName says whether a property's name can stand in a dotted path.
func plainName(name string) bool {
	return name != "" && !strings.ContainsAny(name, ".[]\" \t\r\n")
}

// inOrder gives the keys of object in the order in which they stand in data, whose path leads to it.
func inOrder(object machine.Values, data []byte, path []string) []string {
	names := keysAt(data, path)
	seen := make(map[string]bool, len(names))
	out := make([]string, 0, len(object))
	for _, name := range names {
		if _, ok := object[name]; ok && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, name := range machine.SortedNames(object) { // names whose bytes were not UTF-8 have changed
		if !seen[name] {
			out = append(out, name)
		}
	}
	return out
}

// keysAt reads the keys of the object at a path of data, as written.
func keysAt(data []byte, path []string) []string {
	for _, token := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) == nil {
			data = object[token]
			continue
		}
		var list []json.RawMessage
		i, err := strconv.Atoi(token)
		if json.Unmarshal(data, &list) != nil || err != nil || i < 0 || i >= len(list) {
			return nil
		}
		data = list[i]
	}
	members, _ := membersOf(data)
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return names
}

// member is one entry of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf reads the top of a JSON object in its written order; false when data is no object.
func membersOf(data []byte) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	var members []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} // a decoder gives nothing else for a key
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		members = append(members, m)
	}
	return members, true
}

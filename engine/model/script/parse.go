package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"flowctl/engine/model"
)

// Problem is one thing that is wrong with a script.
type Problem struct {
	File      string
	Line, Col int // 1-based
	Message   string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
}

// Parse reads a script. file is its name in messages. Its error joins all that is wrong, one *Problem a line, by place.
func Parse(file string, source []byte) (*Script, error) {
	p := parser{file: file, out: &Script{file: file}}
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var root, more yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF), err == nil && len(root.Content) == 0:
		p.add(&yaml.Node{Line: 1, Column: 1}, "the script is empty; it starts with answers:")
	case err != nil:
		p.syntax(err)
	default:
		p.whole(root.Content[0])
		switch err := dec.Decode(&more); {
		case err == nil:
			p.add(&more, "a second document starts here (---); a script is one")
		case !errors.Is(err, io.EOF):
			p.syntax(err)
		}
	}
	if len(p.problems) == 0 {
		return p.out, nil
	}
	sort.SliceStable(p.problems, func(i, j int) bool {
		a, b := p.problems[i], p.problems[j]
		return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col
	})
	all := make([]error, len(p.problems))
	for i, problem := range p.problems {
		all[i] = problem
	}
	return nil, errors.Join(all...)
}

type parser struct {
	file     string
	out      *Script
	problems []*Problem
}

func (p *parser) add(n *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, &Problem{File: p.file, Line: max(n.Line, 1), Col: max(n.Column, 1), Message: fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

// syntax places what the YAML library says.
func (p *parser) syntax(err error) {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine.FindStringSubmatch(said); m != nil {
		line, _ = strconv.Atoi(m[1])
		said = strings.TrimPrefix(said, m[0])
	}
	p.add(&yaml.Node{Line: line}, "this is no YAML: %s", said)
}

// field is a key of a mapping and what reads its value.
type field struct {
	name string
	read func(*yaml.Node)
}

// mapping reads a mapping with known keys, each at most once and with a value. It says which keys there were.
func (p *parser) mapping(n *yaml.Node, what string, fields []field) []string {
	if n.Kind != yaml.MappingNode {
		p.add(n, "%s must be a mapping", what)
		return nil
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(fields, func(f field) bool { return key.Kind == yaml.ScalarNode && f.name == key.Value })
		switch {
		case at < 0:
			p.add(key, "%s has no key %q; it has %s", what, key.Value, names(fields))
		case slices.Contains(seen, key.Value):
			p.add(key, "%s gives %s twice", what, key.Value)
		case value.Kind == yaml.AliasNode:
			p.add(value, "a script must not use aliases: write the value out")
		default:
			fields[at].read(value)
		}
		seen = append(seen, key.Value)
	}
	return seen
}

func names(fields []field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return strings.Join(out, ", ")
}

func (p *parser) whole(n *yaml.Node) {
	seen := p.mapping(n, "the script", []field{{"answers", func(list *yaml.Node) {
		if list.Kind != yaml.SequenceNode {
			p.add(list, "answers must be a list")
			return
		}
		for _, item := range list.Content {
			p.answer(item)
		}
	}}})
	if n.Kind == yaml.MappingNode && !slices.Contains(seen, "answers") {
		p.add(n, "the script needs answers, a list")
	}
}

// answer reads one entry and gives it its turn.
func (p *parser) answer(n *yaml.Node) {
	a := &answer{line: n.Line, col: n.Column}
	seen := p.mapping(n, "an answer", []field{
		{"state", func(v *yaml.Node) { a.state = p.text(v, "state") }},
		{"visit", func(v *yaml.Node) { a.visit = p.number(v, "visit") }},
		{"turn", func(v *yaml.Node) { a.turn = p.number(v, "turn") }},
		{"text", func(v *yaml.Node) { a.text = p.text(v, "text") }},
		{"calls", func(v *yaml.Node) { a.calls = p.calls(v) }},
		{"answer", func(v *yaml.Node) { a.text = p.json(v) }},
		{"error", func(v *yaml.Node) { a.failure = p.failure(v) }},
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	if !slices.Contains(seen, "state") {
		p.add(n, "an answer needs state, the name of the state that asks")
	}
	var says []string
	for _, name := range []string{"text", "calls", "answer", "error"} {
		if slices.Contains(seen, name) {
			says = append(says, name)
		}
	}
	if both := slices.Equal(says, []string{"text", "calls"}); len(says) != 1 && !both {
		p.add(n, "an answer needs one of text, calls (also with text), answer, error")
	}
	if a.turn == 0 {
		a.turn = p.nextTurn(a)
	}
	p.out.answers = append(p.out.answers, a)
}

// nextTurn is the turn after the answer before, of the same state and visit. An error is answered again.
func (p *parser) nextTurn(a *answer) int64 {
	for i := len(p.out.answers) - 1; i >= 0; i-- {
		before := p.out.answers[i]
		if before.state != a.state || before.visit != a.visit {
			continue
		}
		if before.failure != nil {
			return before.turn
		}
		return before.turn + 1
	}
	return 1
}

func (p *parser) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp" {
		p.add(n, "%s must be a text; put it in quotes", what)
		return ""
	}
	if n.Value == "" {
		p.add(n, "%s must not be empty", what)
	}
	return n.Value
}

func (p *parser) number(n *yaml.Node, what string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < 1 || strconv.FormatInt(v, 10) != n.Value {
		p.add(n, "%s must be a whole number from 1", what)
		return 1
	}
	return v
}

// calls reads a list of calls. Arguments that are written as a text are given as they are, as a model may.
func (p *parser) calls(n *yaml.Node) []model.Call {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.add(n, "calls must be a list of {tool, args}")
		return nil
	}
	var out []model.Call
	for i, item := range n.Content {
		c := model.Call{ID: fmt.Sprintf("call_%d", i+1)}
		seen := p.mapping(item, "a call", []field{
			{"tool", func(v *yaml.Node) { c.Name = p.text(v, "tool") }},
			{"args", func(v *yaml.Node) {
				if c.Args = v.Value; v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
					c.Args = p.json(v)
				}
			}},
		})
		if item.Kind == yaml.MappingNode && !slices.Contains(seen, "tool") {
			p.add(item, "a call needs tool, the name of the tool")
		}
		out = append(out, c)
	}
	return out
}

// failure reads an error: its class, or a mapping with that.
func (p *parser) failure(n *yaml.Node) *failure {
	f := &failure{}
	if n.Kind == yaml.ScalarNode {
		f.class = p.class(n)
	} else {
		seen := p.mapping(n, "an error", []field{
			{"class", func(v *yaml.Node) { f.class = p.class(v) }},
			{"message", func(v *yaml.Node) { f.message = p.text(v, "message") }},
			{"status", func(v *yaml.Node) { f.status = int(p.number(v, "status")) }},
			{"retry_after", func(v *yaml.Node) {
				d, err := time.ParseDuration(v.Value)
				if err != nil || d < 0 {
					p.add(v, "retry_after must be a duration, such as 2s")
				}
				f.retryAfter = d
			}},
		})
		if n.Kind == yaml.MappingNode && !slices.Contains(seen, "class") {
			p.add(n, "an error needs class, one of %s", classes())
		}
	}
	if f.message == "" {
		f.message = fmt.Sprintf("the script gives an error of class %s", f.class)
	}
	return f
}

func (p *parser) class(n *yaml.Node) model.Class {
	c := model.Class(n.Value)
	if n.Kind != yaml.ScalarNode || !slices.Contains(model.Classes(), c) {
		p.add(n, "the class of an error must be one of %s", classes())
	}
	return c
}

func classes() string {
	var out []string
	for _, c := range model.Classes() {
		out = append(out, string(c))
	}
	return strings.Join(out, ", ")
}

// json writes a value as compact JSON, in the written order and with every digit.
func (p *parser) json(n *yaml.Node) string {
	var b strings.Builder
	p.writeJSON(&b, n)
	return b.String()
}

func (p *parser) writeJSON(b *strings.Builder, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		p.writeObject(b, n)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			p.writeJSON(b, item)
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		p.writeScalar(b, n)
	default:
		p.add(n, "a script must not use aliases: write the value out")
		b.WriteString("null")
	}
}

func (p *parser) writeObject(b *strings.Builder, n *yaml.Node) {
	var seen []string
	b.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || key.ShortTag() == "!!null":
			p.add(key, "a key must be a text; put it in quotes")
		case slices.Contains(seen, key.Value):
			p.add(key, "%s stands here twice", key.Value)
		}
		seen = append(seen, key.Value)
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(key.Value) + ":")
		p.writeJSON(b, n.Content[i+1])
	}
	b.WriteByte('}')
}

func (p *parser) writeScalar(b *strings.Builder, n *yaml.Node) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		b.WriteString(quoted(n.Value))
	case "!!null":
		b.WriteString("null")
	default: // what YAML takes for a number or a truth value must be one of JSON too
		ok := json.Valid([]byte(n.Value)) && (tag == "!!bool" || tag == "!!int" || tag == "!!float")
		if !ok {
			p.add(n, "%s is no value of JSON; put it in quotes if it is a text", n.Value)
		}
		b.WriteString(n.Value)
	}
}

func quoted(text string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(buf.String(), "\n")
}

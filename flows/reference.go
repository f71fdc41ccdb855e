package flows

import (
	"fmt"
	"strings"
)

// Reference gives the reference of the flow file as Markdown: a table for the file, for a state, and for every handler,
// tool kind and model provider of the catalog. Equal catalogs have equal text.
func Reference(cat Catalog) string {
	root := fileShape(cat)
	var b strings.Builder
	section := func(title, doc string, s *shape) {
		fmt.Fprintf(&b, "### %s\n\n", title)
		if doc != "" {
			fmt.Fprintf(&b, "%s\n\n", doc)
		}
		table(&b, s)
	}
	find := func(name string) *shape {
		f, _ := findField(root.fields, name)
		return f.shape.elem
	}
	state, tool, model := find("states"), find("tools"), find("models")
	section("The flow file", "", root)
	section("A state (`states.<name>`)", "", state)
	for _, c := range state.pick.cases {
		doc := c.doc
		if outcomes := cat.Handlers[c.name]().Outcomes; outcomes != "" {
			doc += " Outcomes: " + outcomes + "."
		}
		section("Handler `"+c.name+"`", doc, c.shape)
	}
	section("A tool (`tools.<name>`), besides exactly one kind", "", tool)
	for _, c := range tool.pick.cases {
		section("Tool kind `"+c.name+"`", c.doc, c.shape)
		if more := cat.ToolKinds[c.name].More; more != "" {
			fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(more))
		}
	}
	for _, c := range model.pick.cases {
		section("Model provider `"+c.name+"`", c.doc, c.shape)
	}
	b.WriteString(languageReference())
	return strings.TrimSpace(b.String()) + "\n"
}

func table(b *strings.Builder, s *shape) {
	var rows []string
	rowsOf(&rows, "", s)
	if len(rows) == 0 {
		b.WriteString("It has no keys.\n\n")
		return
	}
	b.WriteString("| key | value | |\n|---|---|---|\n")
	for _, row := range rows {
		b.WriteString(row)
	}
	b.WriteByte('\n')
}

// rowsOf writes one row per key, those of inner mappings with their path. What has a table of its own is left to it.
func rowsOf(rows *[]string, prefix string, s *shape) {
	for _, f := range s.fields {
		if f.name == "" {
			continue
		}
		key := prefix + f.name
		doc := f.doc
		if f.flags.required {
			doc = strings.TrimSpace(doc + " (required)")
		}
		*rows = append(*rows, fmt.Sprintf("| `%s` | %s | %s |\n", key, cell(describe(f.shape, f.flags)), cell(doc)))
		inner, step := f.shape, "."
		for inner.elem != nil {
			if inner.kind == shapeMap {
				step += "<name>."
			} else if !inner.single {
				step = "[]" + step
			}
			inner = inner.elem
		}
		if inner.kind == shapeStruct && inner.pick == nil {
			rowsOf(rows, key+step, inner)
		}
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// describe says in words what may stand at a place.
func describe(s *shape, fl flags) string {
	switch s.kind {
	case shapeBool:
		return "true or false"
	case shapeInt:
		if fl.upto > 0 {
			return fmt.Sprintf("whole number from 0 to %d", fl.upto)
		}
		return "whole number"
	case shapeFloat:
		return "number"
	case shapeDuration:
		return "time, such as 90s or 15m"
	case shapeText:
		return "text with {{ expression }}"
	case shapeExpr:
		if fl.result {
			return "expression over result"
		}
		return "expression"
	case shapeTree:
		return "value with {{ expression }}"
	case shapeKeyword:
		return "word or phrase"
	case shapePattern:
		return "regular expression"
	case shapeVar:
		if fl.write {
			return "name of a variable"
		}
		return "name of an input or variable"
	case shapeTool:
		return "name of a tool"
	case shapeState:
		return "name of a state"
	case shapeName:
		return "name"
	case shapeSchema:
		return "JSON Schema"
	case shapeValue:
		return "any value"
	case shapeList:
		if s.single {
			return describe(s.elem, fl) + ", or a list of it"
		}
		return "list: " + describe(s.elem, fl)
	case shapeMap:
		return "by name: " + describe(s.elem, fl)
	case shapeStruct:
		if f, ok := s.scalar(); ok {
			return describe(f.shape, f.flags) + ", or a mapping"
		}
		return "mapping"
	}
	if len(s.enum) > 0 {
		return strings.Join(s.enum, " | ")
	}
	return "text"
}

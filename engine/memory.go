package engine

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"flowctl/engine/tool"
	"flowctl/engine/view"
	"flowctl/flows/machine"
	"flowctl/store"
)

// namespace gives the run's part of the long-term memory, "" where there is none: the flow has no memory, or something that
// the namespace is made of has no value yet. Without that rule, all for whom a variable is not known would share a memory.
func (st *Step) namespace() (string, error) {
	text := st.s.m.Memory
	if text == nil {
		return "", nil
	}
	var parts []machine.TextPart
	if template, ok := text.(machine.Template); ok {
		parts = template.Parts()
	}
	if len(parts) <= 1 {
		name, err := st.Render(text)
		return orNothing(name), err
	}
	if st.halt != nil {
		return "", st.halt
	}
	var name strings.Builder
	for _, part := range parts {
		if part.Expr == nil {
			name.WriteString(part.Fixed)
			continue
		}
		v, err := part.Expr.Eval(st.facts())
		if err != nil {
			return "", st.expressionFailed(err)
		}
		inserted := orNothing(machine.FormatValue(v))
		if inserted == "" {
			return "", nil
		}
		name.WriteString(namespacePart(inserted))
	}
	return orNothing(name.String()), nil
}

// orNothing gives a text as it is, "" where there is nothing to see in it.
func orNothing(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// namespacePart makes a value fit for its place in a namespace: a slash in it is no border between parts, or a value with
// one could be made to name the memory of somebody else.
func namespacePart(value string) string {
	var b strings.Builder
	for _, r := range value {
		if r == '/' || r == '%' || unicode.IsControl(r) {
			b.WriteString(url.PathEscape(string(r)))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// memory gives what makes a call's view of the run's long-term memory; nil calls have none.
func (st *Step) memory() (func() *tool.Memory, error) {
	stored, ok := st.s.eng.cfg.Store.(store.Memory)
	namespace, err := st.namespace()
	if err != nil || !ok || st.s.m.Memory == nil {
		return func() *tool.Memory { return nil }, err
	}
	return func() *tool.Memory { return &tool.Memory{Namespace: namespace, Store: stored} }, nil
}

// written gives what a call has written to the long-term memory and is stored with its result, without secrets.
func (b *batch) written(c *batchCall, r tool.Result) []store.MemoryWrite {
	writes := slices.Clone(c.memory.Written(r))
	secrets := b.st.s.eng.cfg.Secrets
	for i, w := range writes {
		writes[i].Key = secrets.Text(w.Key)
		if w.Value != nil {
			writes[i].Value = secrets.JSON(w.Value)
		}
	}
	return writes
}

// maxShown bounds the entries of one pattern that a model is shown.
const maxShown = 50

// remembered gives what the state shows of the long-term memory: first the entries that it names, then the best hits.
func (st *Step) remembered() ([]view.Var, error) {
	show := st.state.View.Memory
	memory, ok := st.s.eng.cfg.Store.(store.Memory)
	if show == nil || !ok {
		return nil, nil
	}
	namespace, err := st.namespace()
	if err != nil || namespace == "" {
		return nil, err
	}
	var filters []store.MemoryFilter
	for _, pattern := range show.Keys {
		filters = append(filters, store.MemoryFilter{Namespace: namespace, Keys: pattern, Limit: maxShown})
	}
	if show.Search != nil {
		query, err := st.Render(show.Search)
		if err != nil {
			return nil, err
		}
		filters = append(filters, store.MemoryFilter{Namespace: namespace, Query: query, Limit: int(show.Top)})
	}
	var out []view.Var
	for _, f := range filters {
		entries, err := memory.Memories(st.ctx, f)
		if st.ctx.Err() != nil {
			if dead := st.check(); dead != nil {
				return nil, dead
			}
		}
		if err != nil {
			return nil, st.failed(err)
		}
		for _, entry := range entries {
			if slices.ContainsFunc(out, func(v view.Var) bool { return v.Name == entry.Key }) {
				continue
			}
			v, err := machine.DecodeValue(entry.Value)
			if err != nil {
				st.s.eng.cfg.Log.Warn().Err(err).Str("key", entry.Key).Msg("an entry of the long-term memory cannot be read and is left aside")
				continue
			}
			out = append(out, view.Var{Name: entry.Key, Value: v})
		}
	}
	return out, nil
}

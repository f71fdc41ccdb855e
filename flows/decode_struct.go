package flows

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"flowctl/flows/schema"
	"flowctl/flows/spell"
)

// structure decodes a mapping with fixed keys, or the bare scalar or list that stands for one.
func (d *decoder) structure(at spot, s *shape, fl flags, dst reflect.Value) {
	outer := d.owner
	defer func() { d.owner = outer }()
	d.owner = dst
	if !isMapping(at.Node) {
		d.shorthand(at, s, fl, dst)
		return
	}
	fields, chosen := s.keys(at.Node)
	config := d.config(s, chosen, dst)
	for i := 0; i+1 < len(at.Node.Content); i += 2 {
		key, value := at.Node.Content[i], at.Node.Content[i+1]
		f, ok := findField(fields, key.Value)
		if !ok {
			if !s.pick.hides(chosen, key.Value) {
				d.unknownKey(at, key, s, fields)
			}
			continue
		}
		target := dst
		if f.in != nil {
			if f.in != chosen {
				continue // another kind of tool beside the first: its rule says so
			}
			target = config
		}
		d.owner, d.entry = target, ""
		place := spot{File: at.File, Node: value, Path: join(at.Path, key.Value)}
		d.value(place, f.shape, f.flags.inside(fl), target.FieldByIndex(f.index))
	}
	d.required(at, fields, s.pick)
	d.checkVariant(at, s.pick, chosen)
}

// placeOf gives a struct that wants it the place where it stands.
func placeOf(dst reflect.Value, at spot) {
	if dst.Kind() != reflect.Struct {
		return
	}
	for i := range dst.NumField() {
		if f := dst.Field(i); f.Type() == typeOf[spot]() && f.CanSet() {
			f.Set(reflect.ValueOf(at))
		}
	}
}

// config makes the config struct of the chosen case and gives what it points to.
func (d *decoder) config(s *shape, chosen *variantCase, dst reflect.Value) reflect.Value {
	if chosen == nil {
		return reflect.Value{}
	}
	made := reflect.ValueOf(chosen.make())
	dst.FieldByIndex(s.pick.name).SetString(chosen.name)
	dst.FieldByIndex(s.pick.config).Set(made)
	return made.Elem()
}

func (d *decoder) shorthand(at spot, s *shape, fl flags, dst reflect.Value) {
	f, ok := s.scalar()
	if ok && (isLeaf(at.Node) || f.shape.kind == shapeList) {
		d.value(at, f.shape, f.flags.inside(fl), dst.FieldByIndex(f.index))
		return
	}
	fields, _ := s.keys(at.Node)
	names := fieldNames(fields)
	want := "a mapping"
	if len(names) > 0 {
		want += " with " + strings.Join(names, ", ")
	}
	if ok {
		want = "one word or " + want
	}
	d.mismatch(at, want)
}

func (d *decoder) required(at spot, fields []field, pick *variant) {
	for _, f := range fields {
		if !f.flags.required {
			continue
		}
		if _, value := lookup(at.Node, f.name); value == nil && !d.meant(at, f.name) {
			rule := ruleMissingKey
			if at.Path == "" && f.name == "version" {
				rule = ruleVersion
			}
			d.add(at, problem(rule, "%s needs %s%s", last(at.Path), f.name, about(f.doc)))
		}
	}
	if pick == nil || pick.under == "" {
		return
	}
	// A handler that needs keys below `with` says so also where `with` itself is missing.
	chosen := pick.chosen(at.Node)
	if _, with := lookup(at.Node, pick.under); with == nil && chosen != nil {
		for _, f := range chosen.shape.fields {
			if f.flags.required {
				d.add(at, problem(ruleMissingKey, "%s needs %s.%s%s", last(at.Path), pick.under, f.name, about(f.doc)))
			}
		}
	}
}

// meant says whether a key of this mapping was taken for a misspelt name.
func (d *decoder) meant(at spot, name string) bool {
	return slices.ContainsFunc(d.found, func(f Finding) bool {
		return f.Rule == ruleUnknownKey && strings.TrimSuffix(f.Suggestion, ":") == name && f.Path == join(at.Path, f.Got)
	})
}

// about puts a field's doc line into a message. It starts small there, unless it starts with an abbreviation.
func about(doc string) string {
	runes := []rune(doc)
	if len(runes) > 1 && !unicode.IsUpper(runes[1]) {
		runes[0] = unicode.ToLower(runes[0])
	}
	if len(runes) == 0 {
		return ""
	}
	return " (" + string(runes) + ")"
}

// checkVariant checks the choice of a handler, a provider or a kind of tool.
func (d *decoder) checkVariant(at spot, v *variant, chosen *variantCase) {
	if v == nil {
		return
	}
	if v.by == "" {
		var named []string
		for _, c := range v.cases {
			if _, value := lookup(at.Node, c.name); value != nil {
				named = append(named, c.name)
			}
		}
		if len(named) != 1 && !slices.ContainsFunc(v.names(), func(name string) bool { return d.meant(at, name) }) {
			message := fmt.Sprintf("%s needs one of %s", last(at.Path), strings.Join(v.names(), ", "))
			if len(named) > 1 {
				message = fmt.Sprintf("%s has %s; a %s has exactly one kind", last(at.Path), strings.Join(named, " and "), v.what)
			}
			d.add(at, problem(ruleToolKind, "%s", message))
		}
		return
	}
	_, value := lookup(at.Node, v.by)
	if value == nil || chosen != nil || !isLeaf(value) || isNull(value) {
		return // missing or no text: said already
	}
	f := problem(v.rule, "there is no %s %s", v.what, quote(brief(value.Value)))
	f.Got, f.Suggestion = value.Value, spell.Nearest(value.Value, v.names())
	if f.Suggestion == "" {
		f.Message += "; there are " + strings.Join(v.names(), ", ")
	}
	d.add(spot{File: at.File, Node: value, Path: join(at.Path, v.by)}, f)
}

// aliases are the words that other tools use for our keys, and what they are called here.
var aliases = map[string][]string{
	"type": {"handler", "provider"}, "kind": {"handler"}, "uses": {"handler"}, "action": {"handler", "tool"},
	"next": {"transitions", "to"}, "on": {"transitions"}, "edges": {"transitions"}, "routes": {"transitions"},
	"outcomes": {"transitions"}, "events": {"transitions"}, "transition": {"transitions"},
	"prompt": {"goal", "question", "instructions"}, "task": {"goal"}, "system": {"instructions"},
	"if": {"when"}, "cond": {"when"}, "condition": {"when"}, "guard": {"when"},
	"output": {"into", "assistant", "result"}, "result": {"into", "output"}, "save": {"into"}, "store": {"into"}, "as": {"into"},
	"goto": {"to"}, "then": {"to"}, "target": {"to"}, "go": {"to"}, "message": {"say", "question"}, "reply": {"say"},
	"print": {"say"}, "text": {"question", "say", "output"},
	"few_shot": {"examples"}, "example": {"examples"}, "human": {"user"}, "ai": {"assistant"}, "tool_calls": {"calls"},
	"answer": {"assistant"}, "response": {"assistant", "result"}, "assign": {"set"}, "update": {"set"},
	"input": {"from", "inputs", "args", "user"}, "source": {"from"}, "arguments": {"args"}, "params": {"parameters", "args"},
	"inputs": {"args"}, "input_schema": {"parameters"}, "schema": {"parameters"}, "context": {"view", "vars"},
	"variables": {"vars"}, "state": {"states", "vars"}, "nodes": {"states"}, "steps": {"states"},
	"initial": {"start"}, "entry": {"start"}, "begin": {"start"}, "desc": {"description"}, "title": {"name"},
	"id": {"name"}, "config": {"with"}, "options": {"with", "choices"}, "functions": {"tools"},
	"max_turns": {"turns"}, "max_steps": {"steps"}, "max_visits": {"visits"}, "db": {"database"}, "sql": {"query"},
	"confirmation": {"confirm"}, "confirm": {"approval"}, "side_effects": {"effect"}, "key": {"api_key_env"},
	"api_key": {"api_key_env"}, "url": {"base_url"}, "file": {"path"}, "model_name": {"model"}, "lang": {"language"},
	"retries": {"retry"}, "max_retries": {"retry"}, "lock": {"resource"}, "locks": {"resource"}, "batched": {"batch"},
	"name": {"id", "tool"}, "list": {"of"}, "choose": {"select"}, "rank": {"select"}, "k": {"top"}, "top_k": {"top"}, "limit": {"top"},
	"query": {"search"}, "patterns": {"keys"}, "scope": {"namespace"}, "remember": {"memory"}, "recall": {"memory"},
	"tokens": {"budget"}, "max_tokens": {"budget"}, "servers": {"mcp"}, "mcp_servers": {"mcp"}, "mcpservers": {"mcp"},
}

func (d *decoder) unknownKey(at spot, key *node, s *shape, fields []field) {
	var free []string // keys that are known here and not yet written
	for _, f := range fields {
		if _, value := lookup(at.Node, f.name); value == nil {
			free = append(free, f.name)
		}
	}
	f := problem(ruleUnknownKey, "%s has no key %s", last(at.Path), quote(brief(key.Value)))
	f.Got = key.Value
	for _, alias := range aliases[strings.ToLower(key.Value)] {
		if slices.Contains(free, alias) {
			f.Suggestion = alias
			break
		}
	}
	if f.Suggestion == "" {
		f.Suggestion = spell.Nearest(key.Value, free)
	}
	if name, _, cut := strings.Cut(key.Value, "："); cut {
		f.Message += ": a full-width colon (：) makes no key, write : and a space"
		if name = strings.TrimSpace(name); slices.Contains(free, name) {
			f.Suggestion = name + ":"
		}
	}
	if i := strings.IndexFunc(key.Value, func(r rune) bool { return oddSpace(r) != "" }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(key.Value[i:])
		f.Message = fmt.Sprintf("%s stands in the key %s, and YAML takes it for a letter", oddSpace(r), quote(brief(key.Value)))
	}
	switch {
	case f.Suggestion != "":
	case s.pick != nil && s.pick.under != "" && belowVariant(s.pick, at.Node, key.Value):
		f.Message += "; it belongs below " + s.pick.under
	default:
		if names := fieldNames(fields); len(names) > 0 {
			f.Message += "; it has " + strings.Join(names, ", ")
		}
	}
	d.add(spot{File: at.File, Node: key, Path: join(at.Path, key.Value)}, f)
}

// hides says that nobody can tell whether a key is right, since the case that decides it is not known.
func (v *variant) hides(chosen *variantCase, key string) bool {
	return v != nil && v.by != "" && chosen == nil && (v.under == "" || v.under == key)
}

// belowVariant says whether a key would be right one level deeper.
func belowVariant(v *variant, n *node, key string) bool {
	chosen := v.chosen(n)
	if chosen == nil {
		return false
	}
	_, ok := findField(chosen.shape.fields, key)
	return ok
}

// schema decodes a JSON Schema, or the short form of tool parameters.
func (d *decoder) schema(at spot, fl flags, dst reflect.Value) {
	if !isMapping(at.Node) {
		d.mismatch(at, "a schema, such as {type: string}")
		return
	}
	written := at
	if fl.variable {
		written.Node = d.withoutSecret(at)
	}
	if d.words(written); isBroken(written.Node) {
		return
	}
	var buf bytes.Buffer
	nodeJSON(&buf, written.Node)
	data, prefix := buf.Bytes(), ""
	if fl.short {
		full, short, err := schema.Short(data)
		if err != nil {
			d.add(at, problem(ruleBadSchema, "%v", err))
			return
		}
		if data = full; short {
			prefix = "/properties"
		}
	}
	flaws := schema.Lint(data)
	for _, flaw := range flaws {
		place := pointed(at, strings.TrimPrefix(flaw.Path, prefix), flaw.Key)
		f := problem(ruleBadSchema, "%s", flaw.Message)
		f.Suggestion = flaw.Suggestion
		if flaw.Key && strings.HasSuffix(flaw.Path, "/secret") {
			f.Message += "; secret: true stands at the top of an input or variable"
		}
		d.add(place, f)
	}
	if len(flaws) > 0 {
		return
	}
	compiled, err := schema.Compile(data)
	if err != nil {
		d.add(at, problem(ruleBadSchema, "%v", err))
		return
	}
	dst.Set(reflect.ValueOf(compiled))
}

// withoutSecret gives the schema of a variable without the key `secret`, which is the flow's and no keyword of JSON Schema.
func (d *decoder) withoutSecret(at spot) *node {
	key, value := lookup(at.Node, "secret")
	if value == nil {
		return at.Node
	}
	if !isLeaf(value) || value.Tag != tagBool {
		d.mismatch(spot{File: at.File, Node: value, Path: join(at.Path, "secret")}, "true or false")
	}
	rest := *at.Node
	rest.Content = slices.Clone(at.Node.Content)
	i := slices.Index(rest.Content, key)
	rest.Content = slices.Delete(rest.Content, i, i+2)
	return &rest
}

// pointed follows a JSON pointer as far as it goes; with key it stops at the last name itself.
func pointed(at spot, pointer string, key bool) spot {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if index, err := strconv.Atoi(token); err == nil && isList(at.Node) && index < len(at.Node.Content) {
			at.Node, at.Path = at.Node.Content[index], fmt.Sprintf("%s[%d]", at.Path, index)
			continue
		}
		k, v := lookup(at.Node, token)
		if v == nil {
			break
		}
		at.Path = join(at.Path, token)
		if at.Node = v; key && i == len(tokens)-1 {
			at.Node = k
		}
	}
	return at
}

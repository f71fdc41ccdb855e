package flows

import "regexp"

// braced is a name in braces that are no {{ }}: {name}, ${name}, { name }} and the like.
var braced = regexp.MustCompile(`[$#%]?\{+%?\s*(([a-z][a-z0-9_]*)[a-z0-9_.]*)\s*%?\}+`)

// braceTypos warns of names that a text would show as they stand, though their author meant the value.
func (s *exprScope) braceTypos(t *text, at spot) []Finding {
	var found []Finding
	for _, part := range t.parts {
		for _, m := range braced.FindAllStringSubmatchIndex(part.fixed, -1) {
			name := part.fixed[m[2]:m[3]]
			if !s.sees(part.fixed[m[4]:m[5]], name) {
				continue
			}
			f := advice(ruleBraceTypo, "%s stands in the text as it is; the value is inserted by {{ }}", part.fixed[m[0]:m[1]])
			f.Path, f.Got, f.Fix = at.Path, part.fixed[m[0]:m[1]], "{{ "+name+" }}"
			found = append(found, f.at(s.pos(at, part.start+m[0])))
		}
	}
	return found
}

// sees says whether a name, or the base that it begins with, has a value here.
func (s *exprScope) sees(base, name string) bool {
	var known *exprType
	switch schema, isVar := s.Vars[base]; {
	case isVar && name != base:
		t := typeOfSchema(schema)
		return t == nil || t.kind == "" || t.kind == "object"
	case isVar:
		return true
	case base == "args" && s.HasArgs, base == "result" && s.HasResult, base == "run", base == "last" && !s.ArgsOnly:
		return name != base
	case s.HasArgs && s.ArgsOnly:
		known = typeOfSchema(s.Args)
	}
	return known != nil && known.fields[base] != nil
}

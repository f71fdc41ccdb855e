package flows

import (
	"slices"

	"flowctl/flows/machine"
)

// secretDoc is the line about the key `secret` of an input or variable.
const secretDoc = "Whether its value, such as a typed code, is kept out of all that a model or a human is shown; for type: string"

// secret says whether an input or variable is declared secret, and looks whether it can be.
func (c *compiler) secret(section, name string, s machine.Schema) bool {
	path := join(section, name)
	_, value := lookup(child(c.root.Node, path), "secret")
	if value == nil || nodeValue(value) != true {
		return false
	}
	info := s.Info()
	if info.OnlyType() != "string" {
		c.add(c.under(join(path, "secret")), problem(ruleBadSchema,
			"only text can be secret; write type: string beside it, or leave secret out"))
	}
	for _, key := range []string{"default", "const", "enum", "examples"} {
		k, given := lookup(child(c.root.Node, path), key)
		if given == nil || nodeValue(given) == nil || nodeValue(given) == "" {
			continue
		}
		c.add(spot{File: c.root.File, Node: k, Path: join(path, key)}, problem(ruleBadSchema,
			"%s is secret, and %s writes its value into the flow, where everybody reads it; remove %s", name, key, key))
	}
	return true
}

// secretPlaces says where a secret can stand, for messages.
const secretPlaces = "a secret stands in the arguments of a call, in guards and expect, and in set of another secret"

// whySecret says why no secret variable may be named in a text or tree, "" where it may.
func (c *compiler) whySecret(p pending) string {
	switch {
	case p.shape.kind == shapeExpr && !p.flags.prompt, p.flags.secret:
		return ""
	case p.flags.write && p.entry != "":
		if v, ok := c.m.Vars.Get(p.entry); !ok || v.Secret {
			return ""
		}
		return p.entry + " is not, so it would be shown there; set a variable that is declared with secret: true"
	case p.flags.prompt:
		return "a model would be shown it here; " + secretPlaces
	}
	return "it would be kept or shown in clear here; " + secretPlaces
}

// settleSecret looks whether a secret variable may be named by a field.
func (c *compiler) settleSecret(p pending, v machine.Variable, name string) {
	switch {
	case !v.Secret, p.flags.secret, p.flags.write && !p.dst.IsValid(): // the last is a line of set
	case p.flags.write:
		c.add(p.at, problem(ruleSecretShown, "%s is secret, and what is written here is known to others; fill a secret with ask, collect, call or set", name))
	default:
		c.add(p.at, problem(ruleSecretShown, "%s is secret, and would be shown here; %s", name, secretPlaces))
	}
}

// shown leaves secret variables out of a list.
func (c *compiler) shown(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return c.scope.Secret[name] })
}

package http

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"flowctl/flows/machine"
)

// address is the url of a tool. It is immutable.
type address struct {
	origin string     // scheme://host[:port]
	host   string     // for messages
	pieces []urlPiece // of the path and the query
}

// urlPiece is a piece of a path or a query: text as it stands, or an expression whose value is escaped for its place.
type urlPiece struct {
	fixed string
	expr  machine.Expr
	query bool // the place of the expression
}

// stand is what stands for every expression while an address is checked. After a % it makes no escape.
const stand = "g"

// readAddress checks the url of a tool and takes it apart.
func readAddress(parts []machine.TextPart) (*address, error) {
	if len(parts) == 0 || parts[0].Expr != nil {
		return nil, errors.New("scheme and host must be fixed text, as in https://shop.example/orders/{{ args.order_id }}")
	}
	first := parts[0].Fixed
	scheme, rest, _ := strings.Cut(first, "://")
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || scheme == first {
		return nil, errors.New("the url must start with https:// or http:// as fixed text")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 && len(parts) > 1 {
		return nil, errors.New("scheme and host must be fixed text: put a / between the host and the first {{ expression }}")
	}
	whole := ""
	for _, part := range parts {
		if part.Expr != nil {
			whole += stand
			continue
		}
		if strings.ContainsAny(part.Fixed, " #") {
			return nil, errors.New("the url cannot hold a space (write %20) or a # (what stands behind it is never sent)")
		}
		whole += part.Fixed
	}
	u, err := url.Parse(whole)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, fmt.Errorf("the url cannot be read: %w", err)
	}
	port, bad := strconv.Atoi(u.Port())
	switch {
	case u.User != nil:
		return nil, errors.New("a name or password does not stand in the url; write it as a header, such as Authorization: " +
			`'Bearer {{ env("SHOP_KEY") }}'`)
	case u.Hostname() == "":
		return nil, errors.New("the url has no host")
	case u.Port() != "" && (bad != nil || port < 1 || port > 65535):
		return nil, fmt.Errorf("the url has the port %s; ports go from 1 to 65535", u.Port())
	}
	a := &address{origin: (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), host: u.Host}
	if end >= 0 {
		parts = append([]machine.TextPart{{Fixed: rest[end:]}}, parts[1:]...)
		return a, a.place(parts)
	}
	return a, nil
}

// place finds out in what place of the url each expression stands.
func (a *address) place(parts []machine.TextPart) error {
	query, named := false, false // whether the query has begun, and whether its present parameter has its name
	for _, part := range parts {
		if part.Expr != nil {
			if query && !named {
				return errors.New("an expression in the query of the url must stand behind name=, since a value cannot be the name " +
					"of a parameter")
			}
			a.pieces = append(a.pieces, urlPiece{expr: part.Expr, query: query})
			continue
		}
		text := part.Fixed
		if _, behind, ok := strings.Cut(text, "?"); ok && !query {
			query, text = true, behind
		}
		if query {
			if i := strings.LastIndexByte(text, '&'); i >= 0 {
				named, text = false, text[i:]
			}
			named = named || strings.Contains(text, "=")
		}
		a.pieces = append(a.pieces, urlPiece{fixed: escapeFixed(part.Fixed)})
	}
	return nil
}

// escapeFixed escapes what cannot stand in a url as it is, such as letters beyond ASCII. Without that Go would escape the
// whole path anew, and forget which of its slashes belong to values.
func escapeFixed(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// render gives the url for one call. What it says of values that do not fit is for people.
func (a *address) render(facts machine.Facts) (*url.URL, error) {
	var b strings.Builder
	inserted := map[int]string{} // the segments of the path with a value in them, by the expression
	slashes := 0
	for _, piece := range a.pieces {
		if piece.expr == nil {
			b.WriteString(piece.fixed)
			slashes += strings.Count(piece.fixed, "/") // more than those of the path, once the query has begun
			continue
		}
		v, err := piece.expr.Eval(facts)
		if err != nil {
			return nil, err
		}
		text := machine.FormatValue(v)
		if piece.query {
			b.WriteString(url.QueryEscape(text))
			continue
		}
		b.WriteString(url.PathEscape(text))
		inserted[slashes] = piece.expr.Source()
	}
	path, query, _ := strings.Cut(b.String(), "?")
	for i, segment := range strings.Split(path, "/") {
		if source, ok := inserted[i]; ok {
			if err := checkSegment(segment, source); err != nil {
				return nil, err
			}
		}
	}
	if path == "" {
		path = "/"
	}
	u, err := url.Parse(a.origin + path)
	if err != nil || u.Host != a.host || u.EscapedPath() != path {
		return nil, errors.New("the url cannot be read with these arguments in it")
	}
	u.RawQuery = query
	return u, nil
}

// checkSegment refuses a segment of a path that would lead somewhere else than the url says. A value cannot bring a slash
// of its own, but some servers read an escaped one as if it were.
func checkSegment(segment, source string) error {
	text, err := url.PathUnescape(segment)
	if err != nil {
		return fmt.Errorf("%s does not fit into the path of the url", source)
	}
	if text == "" {
		return fmt.Errorf("%s is empty, and the path of the url needs it", source)
	}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name == "." || name == ".." {
			return fmt.Errorf("%s makes %q in the path of the url, which would lead somewhere else", source, name)
		}
	}
	return nil
}

package sql

import (
	"slices"
	"strings"
)

// outlined is a SELECT with its tokens marked by where they stand. What stands before the main SELECT has no mark.
type outlined struct {
	tokens []token
	top    []bool // the token stands outside of all parentheses
	own    []bool // the token belongs to no query in parentheses, however deep it stands
}

// outline marks the tokens of a statement whose verb is SELECT.
func outline(tokens []token) outlined {
	o := outlined{tokens: tokens, top: make([]bool, len(tokens)), own: make([]bool, len(tokens))}
	depth, begun := 0, false
	hides := 0 // the depth of the query in parentheses that the token is in; 0 if it is in none
	for i, t := range tokens {
		switch {
		case t.text == "(":
			depth++
			if hides == 0 && opensQuery(tokens, i) {
				hides = depth
			}
			continue
		case t.text == ")":
			if depth == hides {
				hides = 0
			}
			depth--
			continue
		}
		begun = begun || depth == 0 && t.is("SELECT")
		o.top[i] = begun && depth == 0
		o.own[i] = begun && hides == 0
	}
	return o
}

// opensQuery says whether the parenthesis at i begins a query with tables of its own. An aggregate in one that has none, as
// in (SELECT sum(cents)), works over the rows of the query around it.
func opensQuery(tokens []token, i int) bool {
	if i+1 >= len(tokens) || !tokens[i+1].is("SELECT") && !tokens[i+1].is("WITH") {
		return false
	}
	depth := 0
	for _, t := range tokens[i:skipGroup(tokens, i)] {
		switch {
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		case depth == 1 && t.is("FROM"):
			return true
		}
	}
	return false
}

// find gives the index of the first keyword outside of parentheses at or behind from, -1 if there is none.
func (o outlined) find(from int, keywords ...string) int {
	for i := max(from, 0); i < len(o.tokens); i++ {
		if o.top[i] && o.tokens[i].kind == word && slices.Contains(keywords, strings.ToUpper(o.tokens[i].text)) {
			return i
		}
	}
	return -1
}

// parameter gives the index of the only :name of the statement, if it stands as WHERE … IN (:name); else -1.
func (o outlined) parameter() int {
	at := -1
	for i, t := range o.tokens {
		if t.kind == named && at >= 0 {
			return -1
		}
		if t.kind == named {
			at = i
		}
	}
	where := o.find(0, "WHERE")
	if at < 0 || where < 0 || at-2 <= where || at+1 >= len(o.tokens) || o.tokens[at-1].text != "(" || o.tokens[at+1].text != ")" ||
		!o.top[at-2] || !o.tokens[at-2].is("IN") {
		return -1
	}
	if behind := o.find(where, "GROUP", "ORDER", "HAVING", "LIMIT", "WINDOW"); behind >= 0 && behind < at {
		return -1
	}
	return at
}

// column is a column as a query names it.
type column struct {
	table string // "" where it is not said
	name  string
}

func (c column) String() string {
	if c.table == "" {
		return c.name
	}
	return c.table + "." + c.name
}

// is says whether two names can be of one column.
func (c column) is(other column) bool {
	return strings.EqualFold(c.name, other.name) && (c.table == "" || other.table == "" || strings.EqualFold(c.table, other.table))
}

// columnOf reads tokens that are a column and nothing else.
func columnOf(tokens []token) (column, bool) {
	for i, t := range tokens {
		if (i%2 == 0) != isName(t) || i%2 == 1 && t.text != "." {
			return column{}, false
		}
	}
	switch len(tokens) {
	case 1:
		return column{name: nameOf(tokens[0])}, true
	case 3, 5: // a schema may stand before the table
		return column{table: nameOf(tokens[len(tokens)-3]), name: nameOf(tokens[len(tokens)-1])}, true
	}
	return column{}, false
}

// isName says whether a token can be the name of a column: a word that is no number, or a quoted name.
func isName(t token) bool {
	return t.kind == word && (t.text[0] < '0' || t.text[0] > '9') || t.kind == quoted && t.text[0] != '\''
}

func nameOf(t token) string {
	if t.kind == quoted && len(t.text) > 1 {
		q := string(t.text[len(t.text)-1])
		return strings.ReplaceAll(t.text[1:len(t.text)-1], q+q, q)
	}
	return t.text
}

// columnBefore reads the column before the IN at index in. It must stand by itself, behind WHERE or AND.
func (o outlined) columnBefore(in int) (column, bool) {
	start := in
	for start > 0 && (isName(o.tokens[start-1]) || o.tokens[start-1].text == ".") && !o.tokens[start-1].is("WHERE") && !o.tokens[start-1].is("AND") {
		start--
	}
	if start == 0 || !o.tokens[start-1].is("WHERE") && !o.tokens[start-1].is("AND") {
		return column{}, false
	}
	return columnOf(o.tokens[start:in])
}

// aggregates are functions that make one row of many, unless GROUP BY says of which.
var aggregates = []string{"AVG", "COUNT", "GROUP_CONCAT", "STRING_AGG", "MAX", "MIN", "SUM", "TOTAL", "MEDIAN", "PERCENTILE",
	"PERCENTILE_CONT", "PERCENTILE_DISC", "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT", "JSONB_GROUP_ARRAY", "JSONB_GROUP_OBJECT",
	"GEOPOLY_GROUP_BBOX"}

// together finds what would work over the rows of all calls, or let rows in that belong to none. "" if nothing would.
func (o outlined) together(name string) string {
	if i := o.find(0, "LIMIT", "UNION", "INTERSECT", "EXCEPT", "WINDOW"); i >= 0 {
		return strings.ToUpper(o.tokens[i].text)
	}
	if o.window() {
		return "OVER"
	}
	if i := o.find(o.find(0, "WHERE"), "OR"); i >= 0 {
		return "OR"
	}
	group := o.find(0, "GROUP")
	if group < 0 {
		if used := o.aggregate(); used != "" {
			return used + "() without GROUP BY " + name
		}
		if o.find(0, "HAVING") >= 0 {
			return "HAVING without GROUP BY " + name
		}
		return ""
	}
	end := o.find(group, "HAVING", "ORDER")
	if end < 0 {
		end = len(o.tokens)
	}
	for _, item := range o.items(group+2, end) {
		if len(item) == 1 && isName(item[0]) && strings.EqualFold(nameOf(item[0]), name) {
			return ""
		}
	}
	return "a GROUP BY without " + name
}

// window says whether the query itself uses a window function, at whatever depth: OVER stands behind its arguments.
func (o outlined) window() bool {
	for i, t := range o.tokens {
		if o.own[i] && t.is("OVER") && i > 0 && o.tokens[i-1].text == ")" {
			return true
		}
	}
	return false
}

// aggregate gives the first aggregate function that the query itself uses, at whatever depth; "" if it uses none.
func (o outlined) aggregate() string {
	for i, t := range o.tokens {
		if o.own[i] && isName(t) && slices.Contains(aggregates, strings.ToUpper(nameOf(t))) && o.aggregates(i+1) {
			return strings.ToLower(nameOf(t))
		}
	}
	return ""
}

// aggregates says whether the group in parentheses that begins at i belongs to an aggregate function and not to max or min of
// several values, which make one of a row.
func (o outlined) aggregates(i int) bool {
	end := skipGroup(o.tokens, i)
	if end == i {
		return false
	}
	several, depth := false, 0
	for _, t := range o.tokens[i:end] {
		switch t.text {
		case "(":
			depth++
		case ")":
			depth--
		case ",":
			several = several || depth == 1
		}
	}
	name := strings.ToUpper(nameOf(o.tokens[i-1]))
	return !several || name != "MAX" && name != "MIN"
}

// items cuts the tokens of a range at the commas outside of parentheses.
func (o outlined) items(from, to int) [][]token {
	var all [][]token
	start := from
	for i := from; i < to; i++ {
		if o.top[i] && o.tokens[i].text == "," {
			all = append(all, o.tokens[start:i])
			start = i + 1
		}
	}
	return append(all, o.tokens[min(start, to):to])
}

// selects says whether the query gives a column under a name. What * gives is known when it runs.
func (o outlined) selects(c column, name string) bool {
	from, to := o.find(0, "SELECT")+1, o.find(0, "FROM")
	if to < 0 {
		return false
	}
	if o.tokens[from].is("DISTINCT") || o.tokens[from].is("ALL") {
		from++
	}
	all := false
	for _, item := range o.items(from, to) {
		n := len(item)
		if n == 0 {
			continue
		}
		last := item[n-1]
		if last.text == "*" {
			all = true
			continue
		}
		if !isName(last) || !strings.EqualFold(nameOf(last), name) {
			continue
		}
		expr := item
		switch {
		case n > 2 && item[n-2].is("AS"):
			expr = item[:n-2]
		case n > 1 && item[n-2].text != ".":
			expr = item[:n-1]
		}
		given, ok := columnOf(expr)
		return ok && given.is(c)
	}
	return all && strings.EqualFold(c.name, name)
}

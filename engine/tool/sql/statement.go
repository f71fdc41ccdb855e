package sql

import (
	"fmt"
	"slices"
	"strings"
)

// statement is what the package must know about one SQL statement.
type statement struct {
	text    string   // without a semicolon and comments around it
	verb    string   // the keyword that says what it does, behind WITH and its tables
	changes bool     // it may change data
	rows    bool     // it gives rows
	names   []string // of its :names, sorted, each once
	given   []span   // the columns of RETURNING, in text
}

// span is a piece of a text by its byte offsets.
type span struct{ start, end int }

var (
	reads   = []string{"SELECT", "VALUES", "EXPLAIN"}
	changes = []string{"INSERT", "REPLACE", "UPDATE", "DELETE"}
	defines = []string{"CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE"}
)

// refused says why some statements cannot be a tool.
var refused = map[string]string{
	"BEGIN": transaction, "COMMIT": transaction, "END": transaction, "ROLLBACK": transaction, "SAVEPOINT": transaction, "RELEASE": transaction,
	"ATTACH": "a tool works on its own database only", "DETACH": "a tool works on its own database only",
	"PRAGMA": "it would change the connection for other tools; most of what a pragma tells is in a table such as pragma_table_info('orders')",
	"VACUUM": "it cannot run in a transaction",
}

const transaction = "each call is a transaction of its own"

// read takes a query apart. The strings are what is wrong with it, for people.
func read(query string) (statement, []string) {
	all := split(scan(query))
	switch {
	case len(all) == 0:
		return statement{}, []string{"expected an SQL statement, found none"}
	case len(all) > 1:
		return statement{}, []string{fmt.Sprintf("expected one SQL statement, found %d; use a tool for each", len(all))}
	}
	tokens := all[0]
	s := statement{text: sourceOf(query, tokens), verb: verb(tokens)}
	problems := s.readVerb(tokens[0].text)
	for _, t := range tokens {
		switch t.kind {
		case named:
			s.names = append(s.names, t.text[1:])
		case foreign:
			problems = append(problems, fmt.Sprintf("the parameter %s must be written as :name", t.text))
		case cast:
			problems = append(problems, "SQLite does not know ::, write CAST(value AS TYPE)")
		}
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	if s.dml() {
		s.given = returning(tokens)
		s.rows = len(s.given) > 0
	}
	return s, problems
}

// returning gives the columns behind RETURNING, counted from the first token.
func returning(tokens []token) []span {
	var columns []span
	inside, depth := false, 0
	for i, t := range tokens {
		switch {
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		case depth > 0:
		case t.is("RETURNING") && tokens[max(i-1, 0)].text != ".":
			inside = true
			continue
		case inside && t.text == ",":
			columns = append(columns, span{})
			continue
		}
		if !inside {
			continue
		}
		if len(columns) == 0 {
			columns = append(columns, span{})
		}
		last := &columns[len(columns)-1]
		if last.end == 0 {
			last.start = t.start - tokens[0].start
		}
		last.end = t.end - tokens[0].start
	}
	return columns
}

// readVerb sorts the statement by its verb; first is the word that it begins with.
func (s *statement) readVerb(first string) []string {
	switch {
	case slices.Contains(reads, s.verb):
		s.rows = true
	case slices.Contains(changes, s.verb), slices.Contains(defines, s.verb):
		s.changes = true
	case refused[s.verb] != "":
		return []string{fmt.Sprintf("%s cannot be a tool: %s", s.verb, refused[s.verb])}
	default:
		return []string{fmt.Sprintf("expected a statement such as SELECT, INSERT, UPDATE or DELETE, found one that begins with %.60q", first)}
	}
	return nil
}

// dml says whether SQLite counts the rows that the statement changes.
func (s statement) dml() bool { return slices.Contains(changes, s.verb) }

// verb gives the keyword that says what a statement does, in upper case; "" if none is found.
func verb(tokens []token) string {
	if !tokens[0].is("WITH") {
		return keyword(tokens, 0)
	}
	i := 1
	if i+1 < len(tokens) && tokens[i].is("RECURSIVE") && !tokens[i+1].is("AS") && tokens[i+1].text != "(" {
		i++
	}
	for { // name [(columns)] AS [[NOT] MATERIALIZED] (query)
		i = skipGroup(tokens, i+1)
		if i >= len(tokens) || !tokens[i].is("AS") {
			return ""
		}
		i++
		for i < len(tokens) && (tokens[i].is("NOT") || tokens[i].is("MATERIALIZED")) {
			i++
		}
		i = skipGroup(tokens, i)
		if i >= len(tokens) || tokens[i].text != "," {
			return keyword(tokens, i)
		}
		i++
	}
}

func keyword(tokens []token, i int) string {
	if i < len(tokens) && tokens[i].kind == word {
		return strings.ToUpper(tokens[i].text)
	}
	return ""
}

// skipGroup gives the index behind the group in parentheses that begins at i, or i if none does.
func skipGroup(tokens []token, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch {
		case tokens[i].text == "(":
			depth++
		case tokens[i].text == ")":
			depth--
		}
		if depth == 0 {
			if tokens[i].text == ")" {
				return i + 1
			}
			return i
		}
	}
	return i
}

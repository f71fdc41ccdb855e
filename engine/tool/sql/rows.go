package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// maxRows is how many rows a call gives at most.
const maxRows = 1000

// queryer is a connection or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// fetch runs a statement that gives rows, on conn, through db: conn itself or its transaction.
func (q query) fetch(ctx context.Context, conn *sql.Conn, db queryer, args []any) (machine.Value, error) {
	columns, err := describe(conn, q.stmt.text)
	if err != nil {
		return nil, err
	}
	text, err := q.rewrite(columns)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells what went wrong
	var list []machine.Value
	for rows.Next() {
		if q.one && len(list) == 1 {
			continue // a change may give more; the first row counts
		}
		if len(list) == maxRows {
			return nil, q.tooMany()
		}
		cells, err := cellsOf(rows, len(columns))
		if err != nil {
			return nil, err
		}
		row, err := rowOf(cells, columns)
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return q.give(list)
}

// give makes the result of a call of its rows.
func (q query) give(rows []machine.Value) (machine.Value, error) {
	switch {
	case !q.one && rows == nil:
		return []machine.Value{}, nil
	case !q.one:
		return rows, nil
	case len(rows) == 0:
		return nil, errNoRow
	}
	return rows[0], nil
}

func (q query) tooMany() error {
	advice := "narrow the query, or add LIMIT"
	switch {
	case q.stmt.changes:
		advice = "nothing was changed; narrow the WHERE, or remove RETURNING"
	case q.list.name != "":
		advice = "narrow the query"
	}
	return tool.Failf("", "there are more than %d rows; %s", maxRows, advice)
}

// describe asks SQLite for the columns of a statement without running it.
func describe(conn *sql.Conn, text string) ([]sqlite.ColumnInfo, error) {
	var columns []sqlite.ColumnInfo
	err := conn.Raw(func(driver any) error {
		d, ok := driver.(interface {
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return errors.New("the driver cannot describe a statement")
		}
		var err error
		columns, err = d.ColumnInfo(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Name] {
			return nil, tool.Failf("", "two columns are named %s; give one of them another name with AS", c.Name)
		}
		seen[c.Name] = true
	}
	return columns, nil
}

// rewrite gives a statement with the same rows that the driver handles well.
//
// The driver parses the text of a column that was declared as a date or time, and what stands in the database is lost; a
// column with a plus in front has no declared type. And it interrupts a statement only until the first row, so the rows
// of a query are all worked out before that, no more of them than are wanted. A change does all its work before its first
// row anyway.
func (q query) rewrite(columns []sqlite.ColumnInfo) (string, error) {
	switch {
	case q.stmt.changes:
		return q.rewriteReturning(columns)
	case q.stmt.verb == "EXPLAIN":
		return q.stmt.text, nil
	}
	limit := maxRows + 1
	if q.one {
		limit = 1
	}
	return reading(q.stmt.text, len(columns), limit), nil
}

// reading gives a statement that reads at most limit rows of a query with n columns, c0, c1 …, and the columns more, which
// may be made of them.
func reading(query string, n, limit int, more ...string) string {
	inner, outer := make([]string, n), make([]string, n)
	for i := range n {
		inner[i] = fmt.Sprintf("c%d", i)
		outer[i] = "+" + inner[i]
	}
	return fmt.Sprintf("WITH flowctl_rows(%s) AS MATERIALIZED (SELECT * FROM (%s) LIMIT %d) SELECT %s FROM flowctl_rows",
		strings.Join(inner, ", "), query, limit, strings.Join(append(outer, more...), ", "))
}

func (q query) rewriteReturning(columns []sqlite.ColumnInfo) (string, error) {
	if !slices.ContainsFunc(columns, isTime) {
		return q.stmt.text, nil
	}
	text, given := q.stmt.text, q.stmt.given
	if len(given) == 1 && text[given[0].start:given[0].end] == "*" {
		all := make([]string, len(columns))
		for i, c := range columns {
			all[i] = `+"` + strings.ReplaceAll(c.OriginName, `"`, `""`) + `"`
		}
		return text[:given[0].start] + strings.Join(all, ", ") + text[given[0].end:], nil
	}
	if len(given) != len(columns) {
		return "", tool.Failf("", "RETURNING gives dates or times beside *; name the columns one by one")
	}
	for i := len(given) - 1; i >= 0; i-- {
		if isTime(columns[i]) {
			text = text[:given[i].start] + "+" + text[given[i].start:]
		}
	}
	return text, nil
}

func isTime(c sqlite.ColumnInfo) bool {
	return slices.Contains([]string{"DATE", "DATETIME", "TIMESTAMP"}, strings.ToUpper(c.DeclType))
}

// cellsOf gives the n values of the present row.
func cellsOf(rows *sql.Rows, n int) ([]any, error) {
	cells, places := make([]any, n), make([]any, n)
	for i := range cells {
		places[i] = &cells[i]
	}
	return cells, rows.Scan(places...)
}

func rowOf(cells []any, columns []sqlite.ColumnInfo) (machine.Value, error) {
	row := make(machine.Values, len(columns))
	for i, c := range columns {
		if _, ok := cells[i].([]byte); ok {
			return nil, tool.Failf("", "the column %s holds bytes (a BLOB), which a result cannot; select hex(%s) AS %s, or leave it out",
				c.Name, c.Name, c.Name)
		}
		v, err := machine.Normalize(cells[i])
		if err != nil {
			return nil, tool.Failf("", "the column %s: %w", c.Name, err)
		}
		row[c.Name] = v
	}
	return row, nil
}

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

// errTooMany says that the rows of a request are more than are read at once. Its calls are made one by one then.
var errTooMany = errors.New("more rows than one request gives")

// batch makes several calls with one statement, in which the parameter is the list of their values.
//
// SQLite says which rows are whose: each row comes with a number in which bit i is set when the row's column equals the value
// of call i. The comparison is the one that IN made (a number equals its text in a column of numbers, COLLATE NOCASE counts),
// so a call gets what it would get alone.
func (q query) batch(ctx context.Context, calls []tool.Call) ([]tool.BatchResult, error) {
	db, err := q.pool.get(q.path)
	if err != nil {
		return nil, err
	}
	results, err := q.lookTogether(ctx, db.read, calls)
	if errors.Is(err, errTooMany) {
		results, err = q.oneByOne(ctx, calls), nil
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return results, q.explain(err)
}

// oneByOne makes the calls each for itself.
func (q query) oneByOne(ctx context.Context, calls []tool.Call) []tool.BatchResult {
	results := make([]tool.BatchResult, len(calls))
	for i, call := range calls {
		results[i].Value, results[i].Err = q.run(ctx, call)
	}
	return results
}

func (q query) lookTogether(ctx context.Context, db *sql.DB, calls []tool.Call) ([]tool.BatchResult, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	names, args := make([]string, len(calls)), make([]any, len(calls))
	for i, call := range calls {
		v, err := bindable(q.list.name, call.Args[q.list.name])
		if err != nil {
			return nil, err
		}
		names[i] = fmt.Sprintf(":v%d", i)
		args[i] = sql.Named(names[i][1:], v)
	}
	inner := q.stmt.text[:q.list.at.start] + strings.Join(names, ", ") + q.stmt.text[q.list.at.end:]
	columns, err := describe(conn, inner)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(columns, func(c sqlite.ColumnInfo) bool { return strings.EqualFold(c.Name, q.list.name) })
	if at < 0 {
		return nil, tool.Failf("", "the query gives no column %s, by which its rows are shared out", q.list.name)
	}
	limit := len(calls)*maxRows + 1
	rows, err := conn.QueryContext(ctx, reading(inner, len(columns), limit, whose(at, names)), args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells what went wrong
	shares := make([]share, len(calls))
	for n := 1; rows.Next(); n++ {
		if n == limit {
			return nil, errTooMany
		}
		if err := q.deal(rows, columns, shares); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	results := make([]tool.BatchResult, len(calls))
	for i, s := range shares {
		results[i].Err = s.err
		if s.err == nil {
			results[i].Value, results[i].Err = q.give(s.rows)
		}
	}
	return results, nil
}

// whose is the column that says to which calls a row belongs.
func whose(column int, names []string) string {
	bits := make([]string, len(names))
	for i, name := range names {
		bits[i] = fmt.Sprintf("((c%d IS %s) << %d)", column, name, i)
	}
	return strings.Join(bits, " | ")
}

// share is what one call of a request gets.
type share struct {
	rows []machine.Value
	err  error
}

// deal gives one row to the calls that it belongs to.
func (q query) deal(rows *sql.Rows, columns []sqlite.ColumnInfo, shares []share) error {
	cells, err := cellsOf(rows, len(columns)+1)
	if err != nil {
		return err
	}
	owners, _ := cells[len(columns)].(int64)
	if owners == 0 {
		return tool.Failf("", "a row came whose %s is none of the values asked for; the query must select the column that IN compares",
			q.list.name)
	}
	row, bad := rowOf(cells[:len(columns)], columns)
	for i := range shares {
		s := &shares[i]
		switch {
		case owners&(1<<i) == 0, s.err != nil, q.one && len(s.rows) == 1:
		case len(s.rows) == maxRows:
			s.err = q.tooMany()
		case bad != nil:
			s.err = bad
		default:
			s.rows = append(s.rows, row)
		}
	}
	return nil
}

// list is the place of the one parameter of a query whose calls can be made in one go.
type list struct {
	name string
	at   span // of the :name, in the statement's text
}

// wants says what a query must look like.
const wants = "with batch: true the query must be one SELECT that uses its only parameter as a list and selects the same column under " +
	"the parameter's name, such as SELECT id AS order_id, status FROM orders WHERE id IN (:order_id)"

// listOf finds the parameter that stands for the values of all calls. The text is why the calls cannot be made in one go, ""
// if they can.
func listOf(stmt statement) (list, string) {
	if stmt.verb != "SELECT" || len(stmt.names) != 1 {
		return list{}, wants
	}
	l := list{name: stmt.names[0]}
	all := outline(scan(stmt.text))
	i := all.parameter()
	if i < 0 {
		return list{}, wants
	}
	l.at = span{all.tokens[i].start, all.tokens[i].end}
	compared, ok := all.columnBefore(i - 2) // the IN
	if !ok {
		return list{}, wants
	}
	switch word := all.together(l.name); {
	case word != "":
		return list{}, fmt.Sprintf("with batch: true one statement serves several calls, and %s would mix their rows; remove it, or "+
			"remove batch", word)
	case !all.selects(compared, l.name):
		return list{}, fmt.Sprintf("with batch: true the query must select the column that IN compares under the parameter's name: write "+
			"SELECT %s AS %s", compared, l.name)
	}
	return l, ""
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
)

// conn is one physical connection outside any pool, with the statements that it has prepared. One goroutine uses it at
// a time. Its calls cannot be cancelled: a write that has begun is carried through.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt // by their SQL
	named []driver.NamedValue    // reused for the arguments of every call
}

// connect opens a connection. All settings of it are in the DSN.
func connect(ctx context.Context, dsn string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: make(map[string]driver.Stmt)}, nil
}

// close ends the connection. An open transaction is rolled back.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.named = c.named[:0]
	for i, a := range args {
		c.named = append(c.named, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.named
}

// exec runs a statement and gives the number of rows that it changed. Arguments are int64, float64, string, []byte or
// nil; nothing is kept of them.
func (c *conn) exec(query string, args ...driver.Value) (changed int64, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls each with every row of a result. The row is reused, the values in it belong to the callee.
func (c *conn) query(query string, each func(row []any) error, args ...driver.Value) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil { // after a failed Next, Close repeats its error
			err = e
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	row := make([]any, len(values))
	for {
		if err := rows.Next(values); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		for i, v := range values {
			row[i] = v
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// number gives the first column of the first row, an integer; ok is false if there is no row.
func (c *conn) number(query string, args ...driver.Value) (n int64, ok bool, err error) {
	err = c.query(query, func(row []any) error {
		if n, ok = row[0].(int64); !ok {
			return fmt.Errorf("a number was expected, there is %v", row[0])
		}
		return nil
	}, args...)
	return n, ok && err == nil, err
}

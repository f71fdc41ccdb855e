package sql

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// The values of Config.Rows.
const (
	rowsAll = "all"
	rowsOne = "one"
)

// Kind makes SQL tools. It keeps the connections of each database until Close, and is safe for concurrent use.
type Kind struct {
	pool pool
}

var (
	_ tool.Kind     = (*Kind)(nil)
	_ tool.Preparer = (*Kind)(nil)
)

// New makes the kind. Nothing is opened before the first call of a tool.
func New() *Kind { return &Kind{} }

// Spec says how `sql: {…}` is decoded.
func (k *Kind) Spec() machine.ToolKind {
	return machine.ToolKind{
		Doc:    "one SQL statement on a SQLite database of the flow",
		More:   more,
		Config: func() machine.ToolConfig { return &Config{} },
	}
}

// more says what batch does.
const more = "With `batch: true` the calls that a model makes of the tool in one turn are one statement, at most 50 of them. The " +
	"query is a SELECT whose only parameter is used as a list, and which selects the same column under the parameter's name:\n\n" +
	"```yaml\nlookup_order:\n  description: Look up one order by its number.\n  batch: true\n  parameters: {order_id: {type: string}}\n" +
	"  sql: {database: shop, query: 'SELECT id AS order_id, status FROM orders WHERE id IN (:order_id)', rows: one}\n```\n\n" +
	"Each call gets the rows whose `order_id` is its own, as if it had been made alone; with `rows: one` the first of them, and none " +
	"fails. What works over all rows (LIMIT, UNION, window functions, an aggregate or a GROUP BY without that column) and an OR beside IN are errors.\n"

// Config is the kind's part of a declaration.
type Config struct {
	Database string `yaml:"database" flow:"required" doc:"name of a database under databases"`
	Query    string `yaml:"query" flow:"required" doc:"one SQL statement; :name stands for the parameter of that name"`
	Rows     string `yaml:"rows" flow:"enum:all|one" doc:"all: a list of rows; one: the first row, and none fails; all if left out"`
}

// Uses checks the statement against the flow and says what it gives.
func (c *Config) Uses(scope machine.ToolScope) machine.ToolUses {
	var uses machine.ToolUses
	problem := func(path, suggestion, format string, args ...any) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...), Suggestion: suggestion})
	}
	c.checkDatabase(scope.Machine, problem)
	stmt, wrong := read(c.Query)
	for _, msg := range wrong {
		problem("query", "", "%s", msg)
	}
	if len(wrong) > 0 {
		return uses
	}
	c.checkNames(stmt, scope.Parameters, problem)
	if c.Rows != "" && c.Rows != rowsAll && c.Rows != rowsOne {
		problem("rows", spell.Nearest(c.Rows, []string{rowsAll, rowsOne}), "rows is %s or %s, not %q", rowsAll, rowsOne, c.Rows)
	}
	if c.Rows != "" && !stmt.rows {
		problem("rows", "", "this %s gives no rows but {affected: N}; remove rows, or add RETURNING", stmt.verb)
	}
	uses.Effect = machine.EffectRead
	if stmt.changes {
		uses.Effect = machine.EffectWrite
	}
	if scope.Effect == machine.EffectRead && stmt.changes {
		problem("query", "", "this %s changes data, so the tool's effect cannot be read; write effect: write", stmt.verb)
	}
	if scope.Batch && !stmt.changes && (scope.Effect == "" || scope.Effect == machine.EffectRead) {
		uses.Batch = true // or it is said here why not
		if _, unfit := listOf(stmt); unfit != "" {
			problem("query", "", "%s", unfit)
		}
	}
	uses.Result = resultOf(stmt, c.Rows == rowsOne)
	return uses
}

// problemFunc reports one problem.
type problemFunc func(path, suggestion, format string, args ...any)

func (c *Config) checkDatabase(m *machine.Machine, problem problemFunc) {
	var names []string
	if m != nil {
		names = m.Databases.Names()
	}
	switch {
	case slices.Contains(names, c.Database):
	case len(names) == 0:
		problem("database", "", "the flow declares no databases; add databases: {%s: {path: %s.db}}", c.Database, c.Database)
	default:
		problem("database", spell.Nearest(c.Database, names), "there is no database %q; there are %s", c.Database, strings.Join(names, ", "))
	}
}

// checkNames holds the :names of the statement and the tool's parameters against each other.
func (c *Config) checkNames(stmt statement, parameters machine.Schema, problem problemFunc) {
	var declared []string
	if parameters != nil {
		declared = parameters.Info().Properties
	}
	for _, name := range stmt.names {
		if !slices.Contains(declared, name) {
			problem("query", spell.Nearest(name, declared), ":%s is not among the tool's parameters", name)
		}
	}
	for _, name := range declared {
		if !slices.Contains(stmt.names, name) {
			problem("query", "", "the parameter %s is not used in the query; write :%s where its value belongs, or remove it", name, name)
		}
	}
}

func resultOf(stmt statement, one bool) []byte {
	switch {
	case !stmt.rows:
		return []byte(`{"type":"object","properties":{"affected":{"type":"integer"}},"required":["affected"],"additionalProperties":false}`)
	case one:
		return []byte(`{"type":"object"}`)
	}
	return []byte(`{"type":"array","items":{"type":"object"}}`)
}

// New makes the tool of one declaration.
func (k *Kind) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	config, ok := spec.Config.(*Config)
	if !ok {
		return tool.Tool{}, fmt.Errorf("the tool %s is not of the kind sql", spec.Name)
	}
	var db machine.Database
	if env.Machine != nil {
		db, ok = env.Machine.Databases.Get(config.Database)
	}
	if !ok || env.Machine == nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: the flow declares no database %s", spec.Name, config.Database)
	}
	stmt, wrong := read(config.Query)
	if len(wrong) > 0 {
		return tool.Tool{}, fmt.Errorf("the tool %s: %s", spec.Name, strings.Join(wrong, "; "))
	}
	q := query{
		pool: &k.pool, name: spec.Name, path: db.Path, stmt: stmt, one: config.Rows == rowsOne,
		reads: spec.Effect == machine.EffectRead || !stmt.changes,
	}
	if !spec.Batch || !q.reads {
		return tool.Tool{Spec: spec, Run: q.run}, nil
	}
	var unfit string
	if q.list, unfit = listOf(stmt); unfit != "" {
		return tool.Tool{}, fmt.Errorf("the tool %s: %s", spec.Name, unfit)
	}
	return tool.Tool{Spec: spec, Run: q.run, Batch: q.batch}, nil
}

// Close closes all connections. Calls that come later are unavailable.
func (k *Kind) Close() error { return k.pool.close() }

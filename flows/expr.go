package flows

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
	"gopkg.in/yaml.v3"

	"flowctl/flows/machine"
)

// Rules of this part.
const (
	ruleExprSyntax  = "expr-syntax"
	ruleExprType    = "expr-type"
	ruleUnknownName = "unknown-name"
	ruleEnumWord    = "enum-word"
	ruleForbidden   = "expr-forbidden"
	ruleTextSyntax  = "text-syntax"
	ruleEnvPlace    = "env-not-allowed"
)

const (
	maxExprNodes  = 200  // parts of one expression, as the parser counts them
	maxExprSource = 4000 // bytes of one expression
)

// spot is where in a flow file something stands.
type spot struct {
	File string
	Node *yaml.Node // nil: the place is not known
	Path string     // such as states.details.with.fields[0]
}

// wantType is what an expression must give.
type wantType int

const (
	wantAny wantType = iota
	wantBool
	wantList
)

// exprScope is what expressions in one kind of place may name. It is not changed by compiling.
type exprScope struct {
	Vars      map[string]machine.Schema // inputs and variables; a nil schema is any
	States    []string                  // for visits("…")
	Outcomes  []string                  // that last.outcome may be here; empty: not known
	HasResult bool
	Result    machine.Schema // nil is any
	HasArgs   bool
	Args      machine.Schema    // nil is any
	ArgsOnly  bool              // args and run are all there is: no variables, no last, no visits; without HasArgs, no run either
	Env       func(name string) // env("NAME") is allowed, and this is told the name; nil: it is not
	Secret    map[string]bool   // variables whose values stand in no error
	NoSecret  string            // why none of them may be named here; "": they may
	Lines     []string          // the file, for exact positions inside quoted and block texts; nil: only those that need none
}

// expression is a compiled expression. It is immutable and safe for concurrent use.
//
// Each source is compiled twice. The first program is typed by the schemas and is thrown away once its types have been
// checked. The second knows names only, and runs: a typed program would fail on null and confuse int with int64.
type expression struct {
	source  string
	pos     machine.Pos
	want    wantType
	program *vm.Program
	facts   []factRef       // what the program loads
	direct  bool            // it loads variables only: Facts.Values is its environment
	visits  []string        // states whose visits it counts
	reads   []string        // inputs and variables
	secret  map[string]bool // of those in reads
	gives   *exprType       // what is known of its values; nil: nothing
}

// compileExpr checks and compiles one expression. The expression is nil when a finding is an error.
func (s *exprScope) compileExpr(src string, at spot, want wantType) (machine.Expr, []Finding) {
	if inner, ok := insideBraces(src); ok {
		f := problem(ruleExprSyntax, "an expression stands here, without {{ }}")
		f.Path, f.Fix = at.Path, inner
		return nil, []Finding{f.at(s.pos(at, 0))}
	}
	e, found := s.compile(src, 0, at, want)
	if e == nil {
		return nil, found
	}
	return e, found
}

// insideBraces gives what stands in a text that is one {{ expression }}.
func insideBraces(src string) (string, bool) {
	inner, opens := strings.CutPrefix(strings.TrimSpace(src), "{{")
	inner, closes := strings.CutSuffix(inner, "}}")
	return strings.TrimSpace(inner), opens && closes
}

// compile does it for raw, which starts at a byte offset of the scalar at a spot.
func (s *exprScope) compile(raw string, offset int, at spot, want wantType) (_ *expression, found []Finding) {
	offset += len(raw) - len(strings.TrimLeft(raw, " \t\r\n"))
	src := strings.TrimSpace(raw)
	c := &exprCheck{scope: s, src: src, at: at, offset: offset}
	defer func() {
		// The parser is somebody else's: a source that makes it panic is refused like any other bad source.
		if r := recover(); r != nil {
			c.add(0, problem(ruleExprSyntax, "the expression cannot be read"))
			found = c.found
		}
	}()
	switch {
	case src == "":
		c.add(0, problem(ruleExprSyntax, "the expression is empty"))
		return nil, c.found
	case len(src) > maxExprSource:
		c.add(0, problem(ruleForbidden, "the expression is longer than %d bytes; split it, or let a tool decide", maxExprSource))
		return nil, c.found
	}
	c.check(want)
	if hasErrors(c.found) {
		return nil, c.found
	}
	program, err := s.runnable(src)
	if err != nil {
		c.library(err, ruleExprType)
		return nil, c.found
	}
	e := &expression{source: src, pos: s.pos(at, offset), want: want, program: program, visits: c.visits, gives: c.gives}
	e.load(program.Node(), s)
	return e, c.found
}

// parse reads the source without the types of its names. The config serves typeCheck as well.
func (s *exprScope) parse(src string) (*parser.Tree, *conf.Config, error) {
	config := conf.CreateNew()
	for _, option := range append(s.options(s.names()), typedFunctions()...) {
		option(config)
	}
	for name := range config.Disabled {
		delete(config.Builtins, name)
	}
	tree, err := parser.ParseWithConfig(src, config)
	if err == nil {
		ast.Walk(&tree.Node, nullPatch{})
	}
	return tree, config, err
}

// typeCheck checks the tree against the types of the names that it uses.
func typeCheck(tree *parser.Tree, config *conf.Config, used map[string]*exprType) error {
	env := types.Map{}
	for name, t := range used {
		env[name] = t.exprType()
	}
	config.WithEnv(env)
	_, err := checker.Check(tree, config)
	return err
}

// runnable makes the program that runs.
func (s *exprScope) runnable(src string) (*vm.Program, error) {
	env := s.names()
	for _, ref := range factRefs {
		env[ref.name] = types.Any
	}
	options := append(s.options(env), untypedFunctions()...)
	return expr.Compile(src, append(options, expr.Patch(runPatch{}), expr.Optimize(false))...)
}

// options are those that every compilation shares.
func (s *exprScope) options(env types.Map) []expr.Option {
	options := []expr.Option{expr.Env(env), expr.MaxNodes(maxExprNodes)}
	for name := range disabledFunctions {
		options = append(options, expr.DisableBuiltin(name))
	}
	return options
}

// names are all names that may stand in an expression of this scope, each of any type.
func (s *exprScope) names() types.Map {
	env := types.Map{"last": types.Any, "run": types.Any}
	for name := range s.Vars {
		env[name] = types.Any
	}
	if s.HasResult {
		env["result"] = types.Any
	}
	if s.HasArgs {
		env["args"] = types.Any
	}
	return env
}

// Source is the expression as written, without spaces around it.
func (e *expression) Source() string { return e.source }

// Reads gives the inputs and variables that it names, sorted. The slice must not be changed.
func (e *expression) Reads() []string { return e.reads }

// load finds out what the finished program needs.
func (e *expression) load(node ast.Node, s *exprScope) {
	w := identifiers{}
	ast.Walk(&node, w)
	e.direct = true
	for _, name := range machine.SortedNames(w) {
		ref, known := findFact(name)
		if _, isVar := s.Vars[name]; isVar {
			ref, known = factRef{name: name, fact: factVar}, true
			e.reads = append(e.reads, name)
			if s.Secret[name] {
				if e.secret == nil {
					e.secret = map[string]bool{}
				}
				e.secret[name] = true
			}
		}
		if known {
			e.facts = append(e.facts, ref)
			e.direct = e.direct && ref.fact == factVar
		}
	}
}

type identifiers map[string]bool

func (w identifiers) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok {
		w[n.Value] = true
	}
}

// Eval gives the value of the expression over facts. An error is a *machine.ExprError.
func (e *expression) Eval(f machine.Facts) (machine.Value, error) {
	out, err := vm.Run(e.program, e.environment(&f))
	if err != nil {
		return nil, e.fail(&f, runReason(err))
	}
	switch e.want {
	case wantBool:
		if hit, ok := out.(bool); ok {
			return hit, nil
		}
		return nil, e.fail(&f, fault("it must be true or false, and gives "+saying(out)))
	case wantList:
		v, err := machine.Normalize(out)
		if list, ok := v.([]machine.Value); ok && err == nil {
			return list, nil
		}
		return nil, e.fail(&f, fault("it must give a list, and gives "+saying(out)))
	}
	v, err := machine.Normalize(out)
	if err != nil {
		return nil, e.fail(&f, err)
	}
	return v, nil
}

// environment is what the program sees as variables.
func (e *expression) environment(f *machine.Facts) map[string]any {
	if e.direct {
		return f.Values
	}
	env := make(map[string]any, len(e.facts))
	for _, ref := range e.facts {
		env[ref.name] = ref.of(f)
	}
	return env
}

// maxShownValue bounds one value in an error, in runes.
const maxShownValue = 100

var errHidden = errors.New("it fails, and why is not said, since that may hold a secret")

// fail makes the error of one evaluation.
func (e *expression) fail(f *machine.Facts, err error) error {
	var shown []string
	for _, ref := range e.facts {
		switch {
		case ref.fact == factEnv || ref.fact == factVisits:
		case e.secret[ref.name], f.Hidden && (ref.fact == factResult || ref.fact == factArgs):
			shown = append(shown, ref.name+" = (secret)")
			err = errHidden // which may repeat the value
		default:
			shown = append(shown, ref.name+" = "+brieflyJSON(ref.of(f)))
		}
	}
	for _, state := range e.visits {
		shown = append(shown, fmt.Sprintf("visits(%q) = %d", state, f.Visits[state]))
	}
	slices.Sort(shown)
	return &machine.ExprError{Pos: e.pos, Source: e.source, Values: strings.Join(slices.Compact(shown), ", "), Err: err}
}

func brieflyJSON(v machine.Value) string {
	data, err := machine.EncodeValue(v)
	if err != nil {
		return "?"
	}
	runes := []rune(string(data))
	if len(runes) > maxShownValue {
		return string(runes[:maxShownValue]) + "…"
	}
	return string(data)
}

// fault is a failure in words for people, made by our own functions.
type fault string

func (f fault) Error() string { return string(f) }

// runReason gives the reason of a failed run in words for people.
func runReason(err error) error {
	var own fault
	if errors.As(err, &own) {
		return own
	}
	var at *file.Error
	if errors.As(err, &at) {
		return fault(plainReason(at.Message))
	}
	return fault(plainReason(err.Error()))
}

// goType matches the names that Go has for the types of values.
const goType = `(<nil>|nil|unknown|(?:\[\]|map\[\w+(?: \{\})?\])*(?:interface \{\}|any|string|bool|u?int\d*|float\d*))`

// reasons turn what the library says about values into words for people.
var reasons = []struct {
	says *regexp.Regexp
	tell func(m []string) string
}{
	{regexp.MustCompile(`^interface conversion: interface \{\} is ` + goType + `, not ` + goType),
		func(m []string) string { return "expected " + typeWord(m[2]) + ", got " + typeWord(m[1]) }},
	{regexp.MustCompile(`^invalid operation: ` + goType + ` (<=?|>=?) ` + goType),
		func(m []string) string {
			return fmt.Sprintf("%s cannot be compared with %s by %s", typeWord(m[1]), typeWord(m[3]), m[2])
		}},
	{regexp.MustCompile(`^invalid operation: (\S+) \(mismatched types ` + goType + ` and ` + goType + `\)`),
		func(m []string) string { return mismatch(m[1], m[2], m[3]) }},
	{regexp.MustCompile(`^invalid operation: (\S+) \(mismatched type ` + goType + `\)`),
		func(m []string) string { return m[1] + " cannot be used on " + typeWord(m[2]) }},
	{regexp.MustCompile(`^cannot fetch (.+) from ` + goType),
		func(m []string) string { return typeWord(m[2]) + " has no property " + m[1] }},
	{regexp.MustCompile(`^operator "in" not defined on ` + goType),
		func(m []string) string { return "in needs a list or an object on its right, got " + typeWord(m[1]) }},
	{regexp.MustCompile(`^invalid argument for (\w+) \(type ` + goType + `\)`),
		func(m []string) string { return m[1] + " cannot take " + typeWord(m[2]) }},
	{regexp.MustCompile(`^cannot use ` + goType + ` as argument \(type ` + goType + `\) to call (\w+)`),
		func(m []string) string {
			return fmt.Sprintf("%s takes %s here, got %s", m[3], typeWord(m[2]), typeWord(m[1]))
		}},
	{regexp.MustCompile(`^cannot use ` + goType + ` to get an element from ` + goType),
		func(m []string) string {
			return fmt.Sprintf("%s cannot name an element of %s", typeWord(m[1]), typeWord(m[2]))
		}},
	{regexp.MustCompile(`^cannot use ` + goType + ` as type ` + goType + ` in (map key|array)`),
		func(m []string) string {
			return fmt.Sprintf("%s is never in something that holds %s", typeWord(m[1]), typeWord(m[2]))
		}},
	{regexp.MustCompile(`^builtin (\w+) takes only array \(got ` + goType + `\)`),
		func(m []string) string { return m[1] + " needs a list, got " + typeWord(m[2]) }},
	{regexp.MustCompile(`^predicate should return boolean \(got ` + goType + `\)`),
		func(m []string) string {
			return "the condition for the items must be true or false, got " + typeWord(m[1])
		}},
	{regexp.MustCompile(`^non-bool expression \(type ` + goType + `\) used as condition`),
		func(m []string) string { return "the condition before ? must be true or false, got " + typeWord(m[1]) }},
	{regexp.MustCompile(`^type ` + goType + ` has no (?:field|method) (\w+)`),
		func(m []string) string { return typeWord(m[1]) + " has no property " + m[2] }},
	{regexp.MustCompile(`^(?:too many|not enough) arguments to call (\w+)`),
		func(m []string) string { return m[0] }},
	{regexp.MustCompile(`^error parsing regexp: (.*)`),
		func(m []string) string { return "the pattern is no regular expression (RE2): " + m[1] }},
	{regexp.MustCompile(`^memory budget exceeded`),
		func([]string) string { return "what it makes is too large" }},
	{regexp.MustCompile(`^unknown field (\w+)`),
		func(m []string) string { return "there is no property " + m[1] }},
}

func mismatch(operator, left, right string) string {
	if operator == "==" || operator == "!=" {
		return fmt.Sprintf("%s is never equal to %s", typeWord(left), typeWord(right))
	}
	return fmt.Sprintf("%s cannot stand between %s and %s", operator, typeWord(left), typeWord(right))
}

// plainReason rewrites a message of the library. What it does not know it only strips of Go's names.
func plainReason(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	for _, r := range reasons {
		if m := r.says.FindStringSubmatch(message); m != nil {
			return r.tell(m)
		}
	}
	if strings.Contains(message, "reflect") || strings.Contains(message, "runtime error") {
		return "it cannot be computed from these values"
	}
	return goWords.ReplaceAllStringFunc(message, func(m string) string { return strings.TrimPrefix(typeWord(m), "a ") })
}

var goWords = regexp.MustCompile(
	`<nil>|(?:\[\]|map\[\w+(?: \{\})?\])+(?:interface \{\}|any|string)|interface \{\}|float64|int64`)

// typeWord says in a person's words what a Go type of a value is.
func typeWord(name string) string {
	switch {
	case name == "<nil>" || name == "nil":
		return "null"
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.HasPrefix(name, "map["):
		return "an object"
	case name == "string":
		return "a string"
	case name == "bool":
		return "a boolean"
	case strings.HasPrefix(name, "int") && name != "interface {}", strings.HasPrefix(name, "uint"):
		return "an integer"
	case strings.HasPrefix(name, "float"):
		return "a number"
	}
	return "a value"
}

// saying names the type of a value in a person's words.
func saying(v any) string {
	n, err := machine.Normalize(v)
	if err != nil {
		return "a value that is not JSON"
	}
	switch kind := machine.KindOf(n); kind {
	case "array":
		return "a list"
	case "integer", "object":
		return "an " + kind
	case "null":
		return kind
	default:
		return "a " + kind
	}
}

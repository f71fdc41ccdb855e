package flows

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm/runtime"

	"flowctl/flows/machine"
)

// function is one of our own functions. It replaces the library's where that loses digits, depends on the order of a map,
// speaks of Go's types, or can grow without bound.
type function struct {
	call  func(args ...any) (any, error)
	types []any // its signatures, for the check of types
}

// ownFunctions are those that a source may call, beside the library's.
var ownFunctions = map[string]*function{
	"keys":      {keysOf, []any{new(func(map[string]any) []any)}},
	"values":    {valuesOf, []any{new(func(map[string]any) []any)}},
	"toPairs":   {pairsOf, []any{new(func(map[string]any) []any)}},
	"fromPairs": {fromPairs, []any{new(func([]any) map[string]any)}},

	"toJSON":   {toJSON, []any{new(func(any) string)}},
	"fromJSON": {fromJSON, []any{new(func(string) any)}},
	"string":   {toText, []any{new(func(any) string)}},
	"int":      {toInteger, []any{new(func(float64) int), new(func(string) int)}},
	"float":    {toNumber, []any{new(func(float64) float64), new(func(string) float64)}},

	"round": {rounded(math.Round), []any{new(func(float64) int)}},
	"floor": {rounded(math.Floor), []any{new(func(float64) int)}},
	"ceil":  {rounded(math.Ceil), []any{new(func(float64) int)}},
	"abs":   {absolute, []any{new(func(int) int), new(func(float64) float64)}},

	"repeat": {repeated, []any{new(func(string, int) string)}},
	"replace": {replaced, []any{
		new(func(string, string, string) string), new(func(string, string, string, int) string)}},
	"join": {joined, []any{
		new(func([]any) string), new(func([]any, string) string), new(func([]string) string), new(func([]string, string) string)}},
	"indexOf":     {position(strings.Index), []any{new(func(string, string) int)}},
	"lastIndexOf": {position(strings.LastIndex), []any{new(func(string, string) int)}},
}

// The names under which runPatch calls what stands behind operators. A space keeps them out of every source.
const (
	callAdd      = "checked add"
	callSubtract = "checked subtract"
	callMultiply = "checked multiply"
	callNegate   = "checked negate"
	callSum      = "checked sum"
	callEqual    = "deep equal"
	callItem     = "item of"
	callSlice    = "slice of"
	callList     = "list of"
	callGroups   = "groups of"
	callVisits   = "visits of"
	callEnv      = "env of"
)

var innerFunctions = map[string]func(args ...any) (any, error){
	callAdd: add, callSubtract: subtract, callMultiply: multiply, callNegate: negate, callSum: sum, callEqual: equal,
	callItem: itemAt, callSlice: sliceOf, callList: listOf, callGroups: groupsOf, callVisits: visitsOf, callEnv: envOf,
}

// typedFunctions are for the check of types, untypedFunctions for running: with types the library would compare their
// results as int, which ours are not.
func typedFunctions() []expr.Option {
	options := []expr.Option{
		expr.Function("visits", visitsOf, new(func(string) int)),
		expr.Function("env", envOf, new(func(string) string)),
	}
	for name, f := range ownFunctions {
		options = append(options, expr.Function(name, f.call, f.types...))
	}
	return options
}

func untypedFunctions() []expr.Option {
	var options []expr.Option
	for name, f := range ownFunctions {
		options = append(options, expr.Function(name, f.call))
	}
	for name, call := range innerFunctions {
		options = append(options, expr.Function(name, call))
	}
	return options
}

func faultf(format string, args ...any) error { return fault(fmt.Sprintf(format, args...)) }

var errOverflow = fault(fmt.Sprintf("the result is beyond the whole numbers (%d to %d)",
	int64(math.MinInt64), int64(math.MaxInt64)))

// maxTextMade bounds a text that an expression makes, in bytes.
const maxTextMade = 16 << 20

var errTooLong = fault("the text that it makes is longer than 16 MiB")

// number reads an operand: exact when it is whole.
func number(v any) (whole int64, fraction float64, isWhole, ok bool) {
	switch x := v.(type) {
	case int64:
		return x, float64(x), true, true
	case int:
		return int64(x), float64(x), true, true
	case float64:
		return 0, x, false, true
	}
	return 0, 0, false, false
}

// arithmetic does one operator: exactly for two whole numbers, as floats where one is a fraction.
func arithmetic(sign string, a, b any, exact func(x, y int64) (int64, bool), rough func(x, y float64) float64) (any, error) {
	x, fx, wholeX, okX := number(a)
	y, fy, wholeY, okY := number(b)
	if !okX || !okY {
		return nil, faultf("%s needs two numbers, got %s and %s", sign, saying(a), saying(b))
	}
	if wholeX && wholeY {
		result, ok := exact(x, y)
		if !ok {
			return nil, errOverflow
		}
		return result, nil
	}
	result := rough(fx, fy)
	if math.IsInf(result, 0) || math.IsNaN(result) {
		return nil, fault("the result is too large to be a number")
	}
	return result, nil
}

func add(args ...any) (any, error) {
	x, textX := args[0].(string)
	y, textY := args[1].(string)
	switch {
	case textX && textY && len(x)+len(y) > maxTextMade:
		return nil, errTooLong
	case textX && textY:
		return x + y, nil
	case textX || textY:
		return nil, faultf("+ needs two numbers or two strings, got %s and %s", saying(args[0]), saying(args[1]))
	}
	return arithmetic("+", args[0], args[1], func(x, y int64) (int64, bool) {
		z := x + y
		return z, (z > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y })
}

func subtract(args ...any) (any, error) {
	return arithmetic("-", args[0], args[1], func(x, y int64) (int64, bool) {
		z := x - y
		return z, (z < x) == (y > 0)
	}, func(x, y float64) float64 { return x - y })
}

func multiply(args ...any) (any, error) {
	return arithmetic("*", args[0], args[1], func(x, y int64) (int64, bool) {
		if x == 0 || y == 0 {
			return 0, true
		}
		z := x * y
		return z, z/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	}, func(x, y float64) float64 { return x * y })
}

func negate(args ...any) (any, error) {
	if _, _, _, ok := number(args[0]); !ok {
		return nil, faultf("- needs a number, got %s", saying(args[0]))
	}
	return subtract(int64(0), args[0])
}

func sum(args ...any) (any, error) {
	list, err := machine.Normalize(args[0])
	items, ok := list.([]machine.Value)
	if err != nil || !ok {
		return nil, faultf("sum needs a list of numbers, got %s", saying(args[0]))
	}
	var total any = int64(0)
	for i, item := range items {
		if _, _, _, ok := number(item); !ok {
			return nil, faultf("sum needs a list of numbers; item %d is %s", i, saying(item))
		}
		if total, err = add(total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// equal compares what == cannot: lists and objects whose whole numbers have different Go types.
func equal(args ...any) (any, error) {
	switch args[0].(type) {
	case nil, string, bool, int64, int, float64:
		return runtime.Equal(args[0], args[1]), nil
	}
	a, errA := machine.Normalize(args[0])
	b, errB := machine.Normalize(args[1])
	return errA == nil && errB == nil && machine.EqualValues(a, b), nil
}

// itemAt is x[i] where i is no literal name.
func itemAt(args ...any) (any, error) {
	from, at := args[0], args[1]
	if from == nil {
		return nil, faultf("null has no item %s", machine.FormatValue(at))
	}
	if object, ok := from.(map[string]any); ok {
		switch at.(type) {
		case string, int64, int, bool:
			return object[machine.FormatValue(at)], nil
		}
		return nil, faultf("a property is named by a string, got %s", saying(at))
	}
	if _, ok := from.(string); ok {
		return nil, fault("a string has no items; text[0:1] is its first character")
	}
	list, err := machine.Normalize(from)
	items, ok := list.([]machine.Value)
	i, _, whole, _ := number(at)
	switch {
	case err != nil || !ok:
		return nil, faultf("%s has no items", saying(from))
	case !whole:
		return nil, faultf("an item of a list is named by an integer, got %s", saying(at))
	case i < 0:
		i += int64(len(items))
	}
	if i < 0 || i >= int64(len(items)) {
		return nil, faultf("the list has %d items, counted from 0; there is no item %s", len(items), machine.FormatValue(at))
	}
	return items[i], nil
}

// sliceOf is x[from:to]: of a list its items, of a string its characters.
func sliceOf(args ...any) (any, error) {
	var length int
	var runes []rune
	var items []machine.Value
	switch x := args[0].(type) {
	case string:
		runes = []rune(x)
		length = len(runes)
	default:
		list, err := machine.Normalize(x)
		var ok bool
		if items, ok = list.([]machine.Value); err != nil || !ok {
			return nil, faultf("only a string or a list can be cut by [from:to], got %s", saying(x))
		}
		length = len(items)
	}
	from, err := bound(args[1], 0, length)
	if err != nil {
		return nil, err
	}
	to, err := bound(args[2], length, length)
	if err != nil {
		return nil, err
	}
	from = min(from, to)
	if runes != nil {
		return string(runes[from:to]), nil
	}
	if _, isText := args[0].(string); isText {
		return "", nil
	}
	return items[from:to], nil
}

// bound reads one end of a slice; a negative one counts from behind.
func bound(v any, otherwise, length int) (int, error) {
	if v == nil {
		return otherwise, nil
	}
	i, _, whole, _ := number(v)
	if !whole {
		return 0, faultf("[from:to] needs integers, got %s", saying(v))
	}
	if i < 0 {
		i += int64(length)
	}
	return int(min(max(i, 0), int64(length))), nil
}

// listOf lets a list through to the functions that walk one.
func listOf(args ...any) (any, error) {
	switch args[0].(type) {
	case []any, []string:
		return args[0], nil
	}
	list, err := machine.Normalize(args[0])
	if items, ok := list.([]machine.Value); ok && err == nil {
		return items, nil
	}
	return nil, faultf("a list must stand here, got %s", saying(args[0]))
}

// groupsOf makes groupBy's result an object.
func groupsOf(args ...any) (any, error) {
	groups, ok := args[0].(map[any][]any)
	if !ok {
		return args[0], nil
	}
	out := make(machine.Values, len(groups))
	for key, items := range groups {
		name := machine.FormatValue(key)
		earlier, _ := out[name].([]machine.Value)
		if earlier != nil {
			return nil, faultf("two different groups would be called %s", name)
		}
		out[name] = items
	}
	return out, nil
}

func visitsOf(args ...any) (any, error) {
	visits, _ := args[0].(map[string]int64)
	state, _ := args[1].(string)
	return visits[state], nil
}

func envOf(args ...any) (any, error) {
	getenv, _ := args[0].(func(string) (string, bool))
	name, _ := args[1].(string)
	if getenv == nil {
		return nil, fault("the environment cannot be read here")
	}
	v, ok := getenv(name)
	if !ok {
		return nil, faultf("the environment variable %s is not set", name)
	}
	return v, nil
}

func object(v any, name string) (machine.Values, error) {
	if m, ok := v.(map[string]any); ok {
		return m, nil
	}
	return nil, faultf("%s needs an object, got %s", name, saying(v))
}

func keysOf(args ...any) (any, error) {
	m, err := object(args[0], "keys")
	out := make([]any, 0, len(m))
	for _, name := range machine.SortedNames(m) {
		out = append(out, name)
	}
	return out, err
}

func valuesOf(args ...any) (any, error) {
	m, err := object(args[0], "values")
	out := make([]any, 0, len(m))
	for _, name := range machine.SortedNames(m) {
		out = append(out, m[name])
	}
	return out, err
}

func pairsOf(args ...any) (any, error) {
	m, err := object(args[0], "toPairs")
	out := make([]any, 0, len(m))
	for _, name := range machine.SortedNames(m) {
		out = append(out, []any{name, m[name]})
	}
	return out, err
}

func fromPairs(args ...any) (any, error) {
	list, err := machine.Normalize(args[0])
	pairs, ok := list.([]machine.Value)
	if err != nil || !ok {
		return nil, faultf("fromPairs needs a list of pairs, got %s", saying(args[0]))
	}
	out := make(machine.Values, len(pairs))
	for i, item := range pairs {
		pair, ok := item.([]machine.Value)
		if !ok || len(pair) != 2 {
			return nil, faultf("fromPairs needs a list of pairs; item %d is no [name, value]", i)
		}
		out[machine.FormatValue(pair[0])] = pair[1]
	}
	return out, nil
}

func toJSON(args ...any) (any, error) {
	v, err := machine.Normalize(args[0])
	if err != nil {
		return nil, fault("toJSON needs a JSON value")
	}
	data, err := machine.EncodeValue(v)
	return string(data), err
}

func fromJSON(args ...any) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, faultf("fromJSON needs a string, got %s", saying(args[0]))
	}
	v, err := machine.DecodeValue([]byte(text))
	if err != nil {
		return nil, faultf("fromJSON: %v", err)
	}
	return v, nil
}

func toText(args ...any) (any, error) {
	v, err := machine.Normalize(args[0])
	if err != nil {
		return nil, fault("string needs a JSON value")
	}
	return machine.FormatValue(v), nil
}

func toNumber(args ...any) (any, error) {
	if text, ok := args[0].(string); ok {
		v, err := machine.DecodeValue([]byte(strings.TrimSpace(text)))
		if _, _, _, isNumber := number(v); err != nil || !isNumber {
			return nil, fault("the text is no number")
		}
		return v, nil
	}
	if _, _, _, ok := number(args[0]); !ok {
		return nil, faultf("a number or a string must stand here, got %s", saying(args[0]))
	}
	return args[0], nil
}

func toInteger(args ...any) (any, error) {
	if text, ok := args[0].(string); ok {
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, fault("the text is no whole number")
		}
		return i, nil
	}
	return rounded(math.Trunc)(args...)
}

// rounded makes a function that turns a fraction into a whole number; whole numbers stay as they are.
func rounded(round func(float64) float64) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		whole, fraction, isWhole, ok := number(args[0])
		switch {
		case !ok:
			return nil, faultf("a number must stand here, got %s", saying(args[0]))
		case isWhole:
			return whole, nil
		}
		f := round(fraction)
		if f < math.MinInt64 || f >= math.MaxInt64 {
			return nil, errOverflow
		}
		return int64(f), nil
	}
}

func absolute(args ...any) (any, error) {
	if _, f, _, ok := number(args[0]); ok && f >= 0 {
		return args[0], nil
	}
	return negate(args...)
}

// texts checks that the first n arguments are strings.
func texts(name string, n int, args []any) error {
	for _, arg := range args[:min(n, len(args))] {
		if _, ok := arg.(string); !ok {
			return faultf("%s needs a string, got %s", name, saying(arg))
		}
	}
	return nil
}

func repeated(args ...any) (any, error) {
	if err := texts("repeat", 1, args); err != nil {
		return nil, err
	}
	text := args[0].(string)
	n, _, whole, _ := number(args[1])
	switch {
	case !whole || n < 0:
		return nil, fault("repeat needs a whole number from 0")
	case text != "" && n > int64(maxTextMade/len(text)):
		return nil, errTooLong
	}
	return strings.Repeat(text, int(min(n, maxTextMade))), nil
}

func replaced(args ...any) (any, error) {
	if err := texts("replace", 3, args); err != nil {
		return nil, err
	}
	text, from, to := args[0].(string), args[1].(string), args[2].(string)
	limit := int64(-1)
	if len(args) > 3 {
		n, _, whole, _ := number(args[3])
		if !whole {
			return nil, faultf("replace needs an integer as its last argument, got %s", saying(args[3]))
		}
		limit = n
	}
	if hits := strings.Count(text, from); len(to) > 0 && hits > (maxTextMade-len(text))/len(to) {
		return nil, errTooLong
	}
	return strings.Replace(text, from, to, int(max(limit, -1))), nil
}

// joined puts the items of a list one behind the other, with text between them; what is no string stands as in a text.
func joined(args ...any) (any, error) {
	list, err := machine.Normalize(args[0])
	items, ok := list.([]machine.Value)
	if err != nil || !ok {
		return nil, faultf("join needs a list, got %s", saying(args[0]))
	}
	glue := ""
	if len(args) > 1 {
		if glue, ok = args[1].(string); !ok {
			return nil, faultf("join needs a string between the items, got %s", saying(args[1]))
		}
	}
	words, size := make([]string, len(items)), 0
	for i, item := range items {
		words[i] = machine.FormatValue(item)
		if size += len(words[i]) + len(glue); size > maxTextMade {
			return nil, errTooLong
		}
	}
	return strings.Join(words, glue), nil
}

// position counts in characters, as len and [from:to] do.
func position(find func(text, part string) int) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		if err := texts("indexOf", 2, args); err != nil {
			return nil, err
		}
		text := args[0].(string)
		i := find(text, args[1].(string))
		if i < 0 {
			return int64(-1), nil
		}
		return int64(len([]rune(text[:i]))), nil
	}
}

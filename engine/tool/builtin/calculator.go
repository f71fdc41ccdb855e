package builtin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const (
	maxExpression = 1000 // characters
	maxBits       = 4096 // of a numerator or denominator on the way
)

// errTooLarge is returned for numbers that would take too long to work with.
var errTooLarge = errors.New("a number on the way becomes too large")

type expressionArgs struct {
	Expression string `json:"expression" jsonschema:"description=An arithmetic expression such as (19.99 * 3 + 4) / 2. It may use + - * / % ** ( ) and abs\\, max\\, min\\, round\\, sum,minLength=1,maxLength=1000"`
}

// calculator works with fractions, so that 0.1 + 0.2 is 0.3 and whole numbers stay exact. The notation and its parser are
// those of the flow's expressions; what is worked out is arithmetic alone.
func calculator() tool.Function {
	f := tool.Func("calculator", "Work out an arithmetic expression exactly.", machine.EffectRead,
		func(_ context.Context, _ tool.Call, args expressionArgs) (machine.Value, error) {
			v, err := calculate(args.Expression)
			if err != nil {
				return nil, tool.Failf("", "%s cannot be worked out: %w", show(args.Expression), err)
			}
			return v, nil
		})
	f.Result = []byte(`{"type":"number"}`)
	return f
}

func calculate(text string) (machine.Value, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it has more than %d characters", maxExpression)
	}
	config := conf.CreateNew()
	for name := range config.Builtins {
		config.Disabled[name] = true // functions are ours, see call
	}
	config.Functions["sum"] = nil // else it is read as a predicate
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, syntaxError(err)
	}
	r, err := work(tree.Node)
	if err != nil {
		return nil, err
	}
	if r.IsInt() {
		if !r.Num().IsInt64() {
			return nil, fmt.Errorf("the result is a whole number beyond %d, too large to stay exact", int64(math.MaxInt64))
		}
		return r.Num().Int64(), nil
	}
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		return nil, errTooLarge
	}
	return machine.Normalize(f)
}

// syntaxError keeps the first line of the parser's message: the others draw the place.
func syntaxError(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if strings.Contains(line, "value out of range") {
		return fmt.Errorf("a number in it is beyond %d", int64(math.MaxInt64))
	}
	return errors.New(line)
}

func work(node ast.Node) (*big.Rat, error) {
	r, err := workNode(node)
	if err != nil {
		return nil, err
	}
	if r.Num().BitLen() > maxBits || r.Denom().BitLen() > maxBits {
		return nil, errTooLarge
	}
	return r, nil
}

func workNode(node ast.Node) (*big.Rat, error) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		return new(big.Rat).SetInt64(int64(n.Value)), nil
	case *ast.FloatNode:
		return decimal(n.Value)
	case *ast.UnaryNode:
		return unary(n)
	case *ast.BinaryNode:
		left, err := work(n.Left)
		if err != nil {
			return nil, err
		}
		right, err := work(n.Right)
		if err != nil {
			return nil, err
		}
		return binary(n.Operator, left, right)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return call(name.Value, n.Arguments)
		}
	case *ast.IdentifierNode:
		return nil, fmt.Errorf("it holds the name %s, and only numbers can be worked with", n.Value)
	}
	return nil, errors.New("only numbers, + - * / % ** ( ) and abs, max, min, round and sum can be used")
}

// decimal gives the number as it was written: 0.1 is a tenth, not the float beside it.
func decimal(f float64) (*big.Rat, error) {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok {
		return nil, errTooLarge
	}
	return r, nil
}

func unary(n *ast.UnaryNode) (*big.Rat, error) {
	if n.Operator != "-" && n.Operator != "+" {
		return nil, fmt.Errorf("%s is no arithmetic", n.Operator)
	}
	r, err := work(n.Node)
	if err == nil && n.Operator == "-" {
		r = new(big.Rat).Neg(r)
	}
	return r, err
}

func binary(op string, a, b *big.Rat) (*big.Rat, error) {
	r := new(big.Rat)
	switch op {
	case "+":
		return r.Add(a, b), nil
	case "-":
		return r.Sub(a, b), nil
	case "*":
		return r.Mul(a, b), nil
	case "/":
		if b.Sign() == 0 {
			return nil, errors.New("division by zero")
		}
		return r.Quo(a, b), nil
	case "%":
		switch {
		case !a.IsInt() || !b.IsInt():
			return nil, errors.New("% needs whole numbers")
		case b.Sign() == 0:
			return nil, errors.New("division by zero")
		}
		return r.SetInt(new(big.Int).Rem(a.Num(), b.Num())), nil
	case "**", "^":
		return power(a, b)
	}
	return nil, fmt.Errorf("%s is no arithmetic", op)
}

func power(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() {
		b, _ := base.Float64()
		e, _ := exponent.Float64()
		f := math.Pow(b, e)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("this power is no number")
		}
		return decimal(f)
	}
	if base.Sign() == 0 && exponent.Sign() < 0 {
		return nil, errors.New("division by zero")
	}
	bits := int64(max(base.Num().BitLen(), base.Denom().BitLen()))
	abs := new(big.Int).Abs(exponent.Num())
	one := base.IsInt() && base.Num().CmpAbs(big.NewInt(1)) <= 0 // 0, 1 and -1 do not grow
	if !one && (!abs.IsInt64() || abs.Int64() > maxBits || bits*abs.Int64() > 2*maxBits) {
		return nil, errTooLarge
	}
	if one {
		abs.And(abs, big.NewInt(1)) // only whether it is odd matters …
		if base.Sign() == 0 && exponent.Sign() > 0 {
			abs.SetInt64(1) // … but 0 ** 2 is 0
		}
	}
	num := new(big.Int).Exp(base.Num(), abs, nil)
	den := new(big.Int).Exp(base.Denom(), abs, nil)
	if exponent.Sign() < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), nil
}

func call(name string, nodes []ast.Node) (*big.Rat, error) {
	args, err := arguments(nodes)
	if err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains([]string{"abs", "max", "min", "round", "sum"}, name):
		return nil, fmt.Errorf("there is no function %s; there are abs, max, min, round and sum", name)
	case len(args) == 0:
		return nil, fmt.Errorf("%s needs a number", name)
	case name == "abs" && len(args) > 1:
		return nil, errors.New("abs takes one number")
	}
	r := args[0]
	switch name {
	case "abs":
		return new(big.Rat).Abs(r), nil
	case "round":
		return round(args)
	case "sum":
		for _, arg := range args[1:] {
			r = new(big.Rat).Add(r, arg)
		}
	case "max":
		r = slices.MaxFunc(args, (*big.Rat).Cmp)
	case "min":
		r = slices.MinFunc(args, (*big.Rat).Cmp)
	}
	return r, nil
}

// arguments works out the arguments of a call; a list stands for its items.
func arguments(nodes []ast.Node) ([]*big.Rat, error) {
	var args []*big.Rat
	for _, node := range nodes {
		if list, ok := node.(*ast.ArrayNode); ok {
			items, err := arguments(list.Nodes)
			if err != nil {
				return nil, err
			}
			args = append(args, items...)
			continue
		}
		r, err := work(node)
		if err != nil {
			return nil, err
		}
		args = append(args, r)
	}
	return args, nil
}

// round rounds half away from zero, to whole numbers or to the given number of digits.
func round(args []*big.Rat) (*big.Rat, error) {
	const most = 30 // digits
	digits := new(big.Rat)
	if len(args) == 2 {
		digits = args[1]
	}
	if len(args) > 2 || !digits.IsInt() || digits.Sign() < 0 || digits.Cmp(big.NewRat(most, 1)) > 0 {
		return nil, fmt.Errorf("round takes a number and, if wanted, how many digits from 0 to %d", most)
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), digits.Num(), nil))
	half := big.NewRat(int64(args[0].Sign()), 2)
	scaled := new(big.Rat).Mul(args[0], scale)
	scaled.Add(scaled, half)
	whole := new(big.Int).Quo(scaled.Num(), scaled.Denom()) // towards zero
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale), nil
}

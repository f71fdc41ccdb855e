// Command embed runs a flow from a Go program that brings its own handler and its own tool.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/states"
	"flowctl/store/memory"
)

//go:embed flow.yaml
var flow []byte

// threshold is a handler: it compares a variable with a number that the flow gives.
type threshold struct{}

type thresholdConfig struct {
	Value   machine.VarRef `yaml:"value" flow:"required" doc:"Variable to look at"`
	AtLeast int64          `yaml:"at_least" flow:"required" doc:"From here on it is enough"`
}

func (c *thresholdConfig) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: "enough"}, {Name: "short"}}}
}

func (threshold) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "compare a number with a threshold", With: &thresholdConfig{}}
}

func (threshold) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*thresholdConfig](step)
	if n, _ := engine.Get[int64](step, string(with.Value)); n >= with.AtLeast {
		return "enough", nil
	}
	return "short", nil
}

// stock is a tool: its parameters and its result are described by its Go types.
var stock = tool.Func("stock", "Count what is left of an article.", machine.EffectRead,
	func(_ context.Context, _ tool.Call, args struct {
		Article string `json:"article" jsonschema:"description=Name of the article"`
	}) (int64, error) {
		left := map[string]int64{"mug": 12, "socks": 2}
		n, ok := left[args.Article]
		if !ok {
			return 0, tool.Failf("none_found", "no article %s", args.Article)
		}
		return n, nil
	})

func run(ctx context.Context, message string) (string, error) {
	handlers := states.Builtin()
	handlers["threshold"] = threshold{}
	kind := builtin.New(stock)
	defer kind.Close()
	catalog := flows.Catalog{Handlers: map[string]func() machine.HandlerSpec{},
		ToolKinds: map[string]machine.ToolKind{"builtin": kind.Spec()}}
	for name, h := range handlers {
		catalog.Handlers[name] = h.Spec
	}
	compile := func(source []byte, dir string) (*machine.Machine, error) { return flows.Compile(source, dir, catalog) }
	m, err := compile(flow, "")
	if err != nil {
		return "", err
	}
	e, err := engine.New(engine.Config{Store: memory.New(memory.Options{}), Compile: compile, Handlers: handlers,
		Tools: map[string]tool.Kind{"builtin": kind}})
	if err != nil {
		return "", err
	}
	defer e.Close()
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: m, Inputs: machine.Values{"message": message}})
	if err != nil {
		return "", err
	}
	snap, err := e.Advance(ctx, id)
	if err != nil || snap.Finish == nil {
		return "the run has not ended", err
	}
	return machine.FormatValue(snap.Finish.Output), nil
}

func main() {
	answer, err := run(context.Background(), "How many socks do you have?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

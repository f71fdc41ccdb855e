package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// more says what batch does.
const more = "With `batch: true` the calls that a model makes of the tool in one turn are one request, at most 50 of them; a call " +
	"that is alone is a list of one. It is for GET and POST with the effect read. In `query` and `json` `{{ args.name }}`, standing alone, is the " +
	"list of the values of all calls, and every parameter must be there; elsewhere no argument can be used:\n\n" +
	"```yaml\nlookup_order:\n  description: Look up one order by its number.\n  effect: read\n  batch: true\n  parameters: {order_id: {type: string}}\n" +
	"  http: {method: POST, url: https://shop.example/orders/lookup, json: {ids: '{{ args.order_id }}'}}\n```\n\n" +
	"In `query` a list gives the parameter once per call (`?id=A1&id=A2`). The answer is JSON: a list with one item per call, in the same order, or, where the " +
	"tool has one parameter, an object with a member named by each argument, where a missing one fails (none_found). Each call " +
	"gives {status, headers, body} with its own item as body. A status that is not 2xx, and any other answer, is every call's failure.\n"

// batch makes several calls in one request.
func (e *endpoint) batch(ctx context.Context, calls []tool.Call) ([]tool.BatchResult, error) {
	all := calls[0] // run and time are the same for calls of one turn
	all.Args = make(machine.Values, len(e.lists))
	for _, name := range e.lists {
		values := make([]machine.Value, len(calls))
		for i, call := range calls {
			values[i] = call.Args[name]
		}
		all.Args[name] = values
	}
	v, err := e.run(ctx, all)
	if err != nil {
		return nil, err
	}
	answer, _ := v.(machine.Values)
	results := make([]tool.BatchResult, len(calls))
	switch body := answer["body"].(type) {
	case []machine.Value:
		if len(body) != len(calls) {
			return nil, e.unfit("is a list of %d, and must be one of %d: an item for each call, in the same order", len(body), len(calls))
		}
		for i, item := range body {
			results[i].Value = withBody(answer, item)
		}
	case machine.Values:
		if len(e.lists) != 1 {
			return nil, e.unfit("is an object, and must be a list with an item for each call, since the tool has several parameters")
		}
		for i, call := range calls {
			name := machine.FormatValue(call.Args[e.lists[0]])
			item, ok := body[name]
			if !ok {
				results[i].Err = tool.Failf("none_found", "the answer of %s has nothing for %.100q", e.address.host, name)
				continue
			}
			results[i].Value = withBody(answer, item)
		}
	default:
		return nil, e.unfit("must be a JSON list with an item for each call, or an object with a member for each argument")
	}
	return results, nil
}

// unfit is the failure of calls whose answer cannot be shared out.
func (e *endpoint) unfit(format string, args ...any) error {
	return tool.Failf("invalid", "the answer of %s %s", e.address.host, fmt.Sprintf(format, args...))
}

// withBody gives an answer with another body.
func withBody(answer machine.Values, body machine.Value) machine.Values {
	return machine.Values{"status": answer["status"], "headers": answer["headers"], "body": body}
}

// names gives the parameters of a tool.
func names(parameters machine.Schema) []string {
	if parameters == nil {
		return nil
	}
	return parameters.Info().Properties
}

// readsArgs finds expressions that read an argument.
var readsArgs = regexp.MustCompile(`\bargs\b`)

// checkBatch checks that the calls can be told apart in one request.
func (c *Config) checkBatch(scope machine.ToolScope, problem func(path, format string, args ...any)) {
	if c.Method == http.MethodHead {
		problem("method", "the answer to a HEAD is empty, so it cannot be shared out among calls; remove batch, or write GET")
	}
	misplaced := false
	misplace := func(path string) {
		misplaced = true
		problem(path, "with batch: true a request is for several calls, so an argument can stand in query or json only, where it is the "+
			"list of their values")
	}
	if c.URL != nil && inTemplate(c.URL) {
		misplace("url")
	}
	for _, h := range c.Headers {
		if inTemplate(h.Value) {
			misplace("headers." + h.Name)
		}
	}
	if c.Body != nil && readsArgs.MatchString(c.Body.Source()) {
		misplace("body")
	}
	if !misplaced {
		c.checkLists(scope, problem)
	}
}

// checkLists checks that every parameter is there as a list.
func (c *Config) checkLists(scope machine.ToolScope, problem func(path, format string, args ...any)) {
	declared := names(scope.Parameters)
	if len(declared) == 0 {
		problem("", "with batch: true the tool needs a parameter, by which its calls differ")
		return
	}
	found := map[string]bool{}
	sample := samples(declared)
	for _, item := range c.Query {
		if err := look(item.Value, sample, found); err != nil {
			problem("query."+item.Name, "%v", err)
			return
		}
	}
	if c.JSON != nil {
		if err := look(c.JSON, sample, found); err != nil {
			problem("json", "%v", err)
			return
		}
	}
	for _, name := range declared {
		if !found[name] {
			problem("", "with batch: true every parameter stands in query or json, alone, as '{{ args.%s }}'; it is the list of the values of all calls", name)
		}
	}
}

func inTemplate(t machine.Template) bool {
	for _, part := range t.Parts() {
		if part.Expr != nil && readsArgs.MatchString(part.Expr.Source()) {
			return true
		}
	}
	return false
}

// mark begins the items of samples; no flow has it in a text.
const (
	mark        = "\x00list of "
	escapedMark = `\u0000list of ` // in a list that stands in a text, where it is JSON
)

// samples are arguments by which a list is found again in what a text makes of it.
func samples(names []string) machine.Values {
	out := make(machine.Values, len(names))
	for _, name := range names {
		out[name] = []machine.Value{mark + name}
	}
	return out
}

// look finds the lists of arguments in what a tree gives. An error says that something else is made of one.
func look(t machine.Tree, sample machine.Values, found map[string]bool) error {
	v, err := t.Value(machine.Facts{Args: sample})
	if err != nil {
		return errNotAlone
	}
	return lookIn(v, sample, found)
}

var errNotAlone = errors.New("with batch: true args.name is the list of the values of all calls, so it stands alone: '{{ args.name }}'")

func lookIn(v machine.Value, sample machine.Values, found map[string]bool) error {
	for name, list := range sample {
		if reflect.DeepEqual(v, list) {
			found[name] = true
			return nil
		}
	}
	switch x := v.(type) {
	case string:
		if strings.Contains(x, mark) || strings.Contains(x, escapedMark) {
			return errNotAlone
		}
	case []machine.Value:
		for _, item := range x {
			if err := lookIn(item, sample, found); err != nil {
				return err
			}
		}
	case machine.Values:
		for _, item := range x {
			if err := lookIn(item, sample, found); err != nil {
				return err
			}
		}
	}
	return nil
}

package http_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"flowctl/engine/tool"
	toolhttp "flowctl/engine/tool/http"
	"flowctl/flows"
	"flowctl/flows/machine"
)

// A tool that looks up an order. Whatever the number holds, it stays one segment of the path.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/orders/A 1" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `{"asked": %q, "cents": 1290}`, r.RequestURI)
	}))
	defer server.Close()

	kind := toolhttp.New()
	defer func() { _ = kind.Close() }()
	m, err := flows.Compile([]byte(`
version: 1
name: shop
tools:
  lookup_order:
    description: Look up one order by its number.
    parameters: {order_id: {type: string}}
    http: {method: GET, url: "`+server.URL+`/orders/{{ args.order_id }}"}
start: done
states:
  done: {handler: end}
`), ".", flows.Catalog{
		Handlers:  map[string]func() machine.HandlerSpec{"end": end},
		ToolKinds: map[string]machine.ToolKind{"http": kind.Spec()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, _ := m.Tools.Get("lookup_order")
	lookup, err := kind.New(spec, tool.Env{Machine: m})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"A 1", "A1/../../admin", "B/2?all=1"} {
		prepared := tool.Prepared{Tool: lookup, Values: machine.Values{"order_id": id}}
		result := tool.Runner{}.Run(context.Background(), prepared, tool.Call{Key: "run/2.0"}).Result
		fmt.Printf("%s: %s\n", id, result.Status)
		if value, ok := result.Value.(machine.Values); ok {
			fmt.Println(machine.FormatValue(value["status"]), machine.FormatValue(value["body"]))
		}
	}

	// Output:
	// A 1: ok
	// 200 {"asked":"/orders/A%201","cents":1290}
	// A1/../../admin: refused
	// B/2?all=1: failed
	// 404 {"asked":"/orders/B%2F2%3Fall=1","cents":1290}
}

func end() machine.HandlerSpec { return machine.HandlerSpec{Doc: "End the run.", With: new(endWith)} }

type endWith struct{}

func (*endWith) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

package flows

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"flowctl/flows/machine"
)

// keys compiles testdata/ok/keys.yaml.
func keys(t *testing.T) *machine.Machine {
	t.Helper()
	source, err := os.ReadFile("testdata/ok/keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Compile(source, "testdata/ok", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMemoryAndBudget(t *testing.T) {
	m := keys(t)
	namespace, err := m.Memory.Render(machine.Facts{Values: machine.Values{"customer": "ann"}})
	same(t, "namespace", []any{namespace, err}, []any{"customer/ann", nil})
	view := state(t, m, "work").View
	same(t, "keys", view.Memory.Keys, []string{"address/*", "name"})
	same(t, "search", view.Memory.Search.Source(), "{{ wish }}")
	same(t, "top", view.Memory.Top, int64(3))
	same(t, "budget", view.Budget, machine.Budget{System: 500, Task: 2000, Recent: 6000})
	other := state(t, m, "again").View
	same(t, "default", []any{other.Memory.Keys == nil, other.Memory.Top}, []any{true, int64(5)})
	same(t, "budget in part", other.Budget, machine.Budget{Recent: 1})
	if get := state(t, m, "get").View; get.Memory != nil || get.Budget != (machine.Budget{}) {
		t.Errorf("a state without these keys has the view %+v", get)
	}
	if support(t).Memory != nil {
		t.Error("a flow without the key memory has one")
	}
}

// TestReadsOfMemory: a state that may use the memory reads what its namespace names, and shows none of it by that; what is
// searched for is shown.
func TestReadsOfMemory(t *testing.T) {
	m := keys(t)
	facts := func(name string) []any { s := state(t, m, name); return []any{s.Reads, s.Shows} }
	same(t, "work", facts("work"), []any{[]string{"customer", "plain", "spare_code", "wish"}, []string{"customer", "plain", "wish"}})
	same(t, "get", facts("get"), []any{[]string{"customer"}, []string{"customer"}}) // by the instructions
	source := strings.Replace(string(m.Source), "{{ customer }}. Be brief", "us. Be brief", 1)
	m, err := Compile([]byte(source), "testdata/ok", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "work", facts("work"), []any{[]string{"customer", "plain", "spare_code", "wish"}, []string{"plain", "wish"}})
	same(t, "again", facts("again"), []any{[]string{"customer", "wish"}, []string{}})
	same(t, "get", facts("get"), []any{[]string{}, []string{}})
}

func TestToolKeys(t *testing.T) {
	m := keys(t)
	tool := func(name string) machine.ToolSpec { spec, _ := m.Tools.Get(name); return spec }
	retry := func(name string) string {
		if n := tool(name).Retry; n != nil {
			return fmt.Sprint(*n)
		}
		return "default"
	}
	same(t, "retry", []string{retry("add"), retry("lookup"), retry("pay"), retry("note")}, []string{"0", "10", "3", "default"})
	same(t, "batch", []bool{tool("lookup").Batch, tool("add").Batch}, []bool{true, false})
	resource, err := tool("pay").Resource.Render(machine.Facts{Args: machine.Values{"order_id": "A7"}})
	same(t, "resource", []any{resource, err}, []any{"order/A7", nil})
	same(t, "no resource", tool("note").Resource, nil)
}

func TestToolsOfState(t *testing.T) {
	m := keys(t)
	work, again, pay := state(t, m, "work"), state(t, m, "again"), state(t, m, "pay")
	same(t, "tools", [][]string{work.Tools, again.Tools}, [][]string{{"add", "lookup", "note"}, {"lookup", "read", "note"}})
	same(t, "select", []int64{work.Select, again.Select, pay.Select}, []int64{2, 0, 0})
	same(t, "guards", [][]string{machine.SortedNames(work.ToolWhen), machine.SortedNames(again.ToolWhen), machine.SortedNames(pay.ToolWhen)},
		[][]string{{"lookup"}, {"note"}, {}})
	for code, want := range map[machine.Value]bool{nil: true, "x": false} {
		got, err := work.ToolWhen["lookup"].Eval(machine.Facts{Values: machine.Values{"spare_code": code}, Visits: map[string]int64{"work": 1}})
		same(t, "guard", []any{got, err}, []any{want, nil})
	}
}

func TestServers(t *testing.T) {
	m := keys(t)
	same(t, "names", m.Servers.Names(), []string{"files", "acme"})
	files, _ := m.Servers.Get("files")
	same(t, "command", files.Command, []string{"./files", "--root", "."})
	same(t, "rest", []any{files.Dir, files.Timeout, files.Env.Names()},
		[]any{"work", machine.Duration(10 * time.Second), []string{"FILES_KEY", "LANG"}})
	acme, _ := m.Servers.Get("acme")
	header, err := acme.Headers[0].Value.Render(machine.Facts{Getenv: func(name string) (string, bool) { return name + " value", true }})
	same(t, "header", []any{acme.URL, header, err}, []any{"https://mcp.acme.example/mcp", "Bearer ACME_KEY value", nil})
	same(t, "env", m.Env, []string{"ACME_KEY", "FILES_KEY"})
}

func TestSecretVariables(t *testing.T) {
	m := keys(t)
	for name, want := range map[string]bool{"token": true, "code": true, "spare_code": true, "plain": false, "customer": false} {
		v, ok := m.Variable(name)
		same(t, name, []any{ok, v.Secret}, []any{true, want})
		if strings.Contains(string(v.Schema.JSON()), "secret") {
			t.Errorf("the schema of %s holds the flow's own key: %s", name, v.Schema.JSON())
		}
	}
	same(t, "first message", m.Message, "") // token is the only required input, and messages are shown
	same(t, "collected", state(t, m, "fill").Writes, []string{"code", "spare_code"})
	for _, s := range m.States {
		for _, name := range s.Value.Shows {
			if v, _ := m.Variable(name); v.Secret {
				t.Errorf("%s shows the secret %s", s.Name, name)
			}
		}
	}
}

// TestSecretsInErrors: an expression that fails does not tell what a secret variable holds.
func TestSecretsInErrors(t *testing.T) {
	source := strings.Replace(string(keys(t).Source), "when: 'code == token'", "when: 'len(code) > 2'", 1)
	m, err := Compile([]byte(source), "testdata/ok", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Next("get", "answered", machine.Facts{Values: machine.Values{"code": int64(4711)}})
	if err == nil || strings.Contains(err.Error(), "4711") || !strings.Contains(err.Error(), "code = (secret)") {
		t.Errorf("the guard fails with %v; want an error that names the variable and not its value", err)
	}
}

// TestSecretDigest: a step under way does not go on in a state whose variable has become secret, or is no longer.
func TestSecretDigest(t *testing.T) {
	m := keys(t)
	source := strings.Replace(string(m.Source), "token: {type: string, secret: true}", "token: {type: string}", 1)
	other, err := Compile([]byte(source), "testdata/ok", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"pay": false, "fill": true, "work": true} {
		if got := state(t, m, name).Digest == state(t, other, name).Digest; got != stays {
			t.Errorf("%s: the digest stays: %v, want %v", name, got, stays)
		}
	}
}

// TestSecretMessage: an input that is secret is never the first human message, not even where it is called so.
func TestSecretMessage(t *testing.T) {
	source := exampleHead + "inputs: {message: {type: string, secret: true}, wish: {type: string}}\n" + exampleTail
	m, found := Check([]byte(source), Place{}, testCatalog())
	if m == nil {
		t.Fatal(found)
	}
	same(t, "message", m.Message, "wish")
}

// TestStoredRunsOutliveNewRules: the new rules that only judge leave a stored flow alone; those that would do harm do not.
func TestStoredRunsOutliveNewRules(t *testing.T) {
	for source, stays := range map[string]bool{
		viewFlow("instructions: Be brief and exact, and promise nothing.\n", "{budget: {system: 1}}"): true,
		toolsFlow(16, ""): true,
		exampleHead + secretFlow("'It is {{ code }}'"): false,
		viewFlow("", "{memory: {keys: ['*']}}"):        false,
	} {
		if _, err := CompileStored([]byte(source), "", testCatalog()); (err == nil) != stays {
			t.Errorf("a stored run with this flow gives %v, want it taken up: %v\n%s", err, stays, source)
		}
	}
}

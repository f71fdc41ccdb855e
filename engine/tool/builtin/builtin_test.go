package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func endedContext(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func greet() tool.Function {
	type args struct {
		Name string `json:"name"`
	}
	return tool.Func("greet", "Greet somebody.", machine.EffectWrite, func(_ context.Context, _ tool.Call, a args) (string, error) {
		return "Hello " + a.Name, nil
	})
}

func TestUses(t *testing.T) {
	kind := New(greet())
	for name, effect := range map[string]machine.Effect{
		"read_file": machine.EffectRead, "write_file": machine.EffectIdempotent, "list_dir": machine.EffectRead,
		"calculator": machine.EffectRead, "current_time": machine.EffectRead, "greet": machine.EffectWrite,
		"append_file": machine.EffectWrite, "edit_file": machine.EffectWrite, "search_files": machine.EffectRead, "http_get": machine.EffectRead,
		"remember": machine.EffectIdempotent, "recall": machine.EffectRead, "forget": machine.EffectIdempotent,
	} {
		config := kind.Spec().Config().(*Config)
		config.Name = name
		if name == "http_get" {
			config.Hosts = []string{"example.com"}
		}
		uses := config.Uses(machine.ToolScope{Machine: withMemory()})
		if len(uses.Problems) > 0 || uses.Effect != effect || uses.Description == "" {
			t.Errorf("%s: %+v", name, uses)
		}
		parameters, err := schema.Compile(uses.Parameters)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if parameters.Check(machine.Values{"surplus": true}) == nil {
			t.Errorf("%s takes a parameter that it does not have", name)
		}
		if _, err := schema.Compile(uses.Result); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a tool gives fits the schema that it declares.
func TestResultsFitTheirSchema(t *testing.T) {
	ws := sandbox(t)
	for name, args := range map[string]machine.Values{
		"read_file": {"path": "a.txt"}, "write_file": {"path": "n", "content": "x"}, "list_dir": {}, "calculator": {"expression": "1/4"}, "current_time": {},
		"append_file": {"path": "n", "content": "x"}, "edit_file": {"path": "sub/b.txt", "old": "eta", "new": "lue"}, "search_files": {"pattern": "b"},
	} {
		result, err := schema.Compile(New().functions(setting{})[name].Result)
		if err != nil {
			t.Fatal(err)
		}
		got := runTool(t, name, ws, args)
		if got.Status != tool.OK {
			t.Errorf("%s: %+v", name, got)
		}
		if err := result.Check(got.Value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReference: the table of the reference is made from what the functions say, those of the program too.
func TestReference(t *testing.T) {
	type in struct {
		ID    string `json:"id"`
		Limit int64  `json:"limit,omitempty"`
	}
	more := New(tool.Func("orders", "List orders.", machine.EffectRead,
		func(context.Context, tool.Call, in) ([]string, error) { return nil, nil })).Spec().More
	for _, row := range []string{
		"| `calculator` | `expression`: text | number | Work out an arithmetic expression exactly. (read) |\n",
		"| `list_dir` | `path?`: text | a list of `{dir, name, size}` | ",
		"| `recall` | `key?`: text, `limit?`: integer, `query?`: text | a list of `{key, updated_at, value, version}` | ",
		"| `remember` | `key`: text, `value`: anything, `version?`: integer | `{key}` | ",
		"| `orders` | `id`: text, `limit?`: integer | a list of text | List orders. (read) |\n",
		"| `write_file` | `content`: text, `path`: text | `{bytes}` | ",
	} {
		if !strings.Contains(more, row) {
			t.Errorf("the reference lacks %q:\n%s", row, more)
		}
	}
}

func TestUsesProblems(t *testing.T) {
	kind := New(greet())
	tests := []struct {
		config                    Config
		effect                    machine.Effect
		path, message, suggestion string
	}{
		{Config{Name: "read_fil"}, "", "name", `there is no builtin "read_fil"; there are append_file, calculator, current_time, edit_file, forget, greet`, "read_file"},
		{Config{Name: "zzzzzzz"}, "", "name", "no builtin", ""},
		{Config{Name: "calculator", Root: "x"}, "", "root", "works on no files", ""},
		{Config{Name: "http_get", Hosts: []string{"example.com"}, Root: "x"}, "", "root", "works on no files", ""},
		{Config{Name: "http_get"}, "", "", `http_get needs hosts, the hosts that it may ask, such as hosts: [example.com, "*.example.org"]`, ""},
		{Config{Name: "http_get", Hosts: []string{"example.com", "*"}}, "", "hosts[1]", `"*" is no host; write example.com`, ""},
		{Config{Name: "search_files", Hosts: []string{"example.com"}}, "", "hosts", "search_files asks no hosts; remove hosts", ""},
		{Config{Name: "remember", Root: "x"}, "", "root", "works on no files", ""},
		{Config{Name: "recall", Hosts: []string{"example.com"}}, "", "hosts", "asks no hosts", ""},
		{Config{Name: "remember"}, machine.EffectRead, "name", "cannot be read", ""},
		{Config{Name: "forget"}, machine.EffectRead, "name", "cannot be read", ""},
		{Config{Name: "append_file"}, machine.EffectRead, "name", "cannot be read", ""},
		{Config{Name: "edit_file"}, machine.EffectRead, "name", "cannot be read", ""},
		{Config{Name: "write_file"}, machine.EffectRead, "name", "cannot be read", ""},
		{Config{Name: "greet"}, machine.EffectRead, "name", "cannot be read", ""},
	}
	for _, test := range tests {
		test.config.kind = kind
		problems := test.config.Uses(machine.ToolScope{Machine: withMemory(), Effect: test.effect}).Problems
		if len(problems) != 1 || problems[0].Path != test.path || !strings.Contains(problems[0].Message, test.message) || problems[0].Suggestion != test.suggestion {
			t.Errorf("%+v: %+v", test.config, problems)
		}
	}
}

func TestNewTool(t *testing.T) {
	kind := New(greet())
	made, err := kind.New(machine.ToolSpec{Name: "hi", Config: &Config{Name: "greet"}}, tool.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := made.Run(t.Context(), tool.Call{Args: machine.Values{"name": "Ann"}}); v != "Hello Ann" || err != nil || made.Spec.Name != "hi" {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := kind.New(machine.ToolSpec{Name: "hi", Config: &Config{Name: "nope"}}, tool.Env{}); err == nil {
		t.Error("a builtin that does not exist was made")
	}
	if _, err := kind.New(machine.ToolSpec{Name: "hi", Config: &Config{Name: "http_get", Hosts: []string{"a b"}}}, tool.Env{}); err == nil {
		t.Error("a host that is none was taken")
	}
	if _, err := kind.New(machine.ToolSpec{Name: "hi"}, tool.Env{}); err == nil {
		t.Error("a tool of another kind was made")
	}
	if err := kind.Close(); err != nil {
		t.Error(err)
	}
}

func TestRootIsRelativeToTheFlow(t *testing.T) {
	ws := sandbox(t)
	kind := New()
	for root, path := range map[string]string{"": "ws/a.txt", "ws": "a.txt", "./ws/sub/..": "a.txt", ws: "a.txt"} {
		made, err := kind.New(machine.ToolSpec{Name: "r", Config: &Config{Name: "read_file", Root: root}}, tool.Env{Dir: filepath.Dir(ws)})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := made.Run(t.Context(), tool.Call{Args: machine.Values{"path": path}}); v != "alpha" || err != nil {
			t.Errorf("root %q: %v, %v", root, v, err)
		}
	}
}

func TestNewPanicsOnAMistakeInTheProgram(t *testing.T) {
	bad := map[string][]tool.Function{
		"one of that name":  {greet(), greet()},
		"name is":           {{Name: "Greet", Run: greet().Run}},
		"nothing to run":    {{Name: "idle"}},
		"calculator: there": {{Name: "calculator", Run: greet().Run}},
	}
	for want, functions := range bad {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, want) {
					t.Errorf("recovered %q, want %q", p, want)
				}
			}()
			New(functions...)
		}()
	}
}

func TestCurrentTime(t *testing.T) {
	kind := New()
	kind.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC) }
	run := kind.functions(setting{})["current_time"].Run
	for zone, want := range map[string]string{
		"": "2026-01-02T03:04:05Z", "UTC": "2026-01-02T03:04:05Z", "Europe/Berlin": "2026-01-02T04:04:05+01:00",
		"Asia/Kolkata": "2026-01-02T08:34:05+05:30", "America/New_York": "2026-01-01T22:04:05-05:00",
	} {
		if got, err := run(t.Context(), tool.Call{Args: machine.Values{"zone": zone}}); got != want || err != nil {
			t.Errorf("%s: %v, %v", zone, got, err)
		}
	}
	for _, zone := range []string{"Mars", "Local", "../etc/passwd", "/etc/localtime", "UTC+1"} {
		if got, err := run(t.Context(), tool.Call{Args: machine.Values{"zone": zone}}); err == nil || !strings.Contains(err.Error(), "no time zone") {
			t.Errorf("%s: %v, %v", zone, got, err)
		}
	}
}

func TestCalculatorTool(t *testing.T) {
	got := runTool(t, "calculator", "/", machine.Values{"expression": "2 ** 10"})
	if !reflect.DeepEqual(got, tool.Result{Status: tool.OK, Value: int64(1024)}) {
		t.Errorf("got %+v", got)
	}
	got = runTool(t, "calculator", "/", machine.Values{"expression": "1/0"})
	if got.Status != tool.Failed || got.Problem.Message != `"1/0" cannot be worked out: division by zero` {
		t.Errorf("got %+v", got)
	}
}

func Example() {
	kind := New()
	calculator, err := kind.New(machine.ToolSpec{Name: "calculator", Effect: machine.EffectRead, Config: &Config{Name: "calculator"}}, tool.Env{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, expression := range []string{"0.1 + 0.2", "9007199254740992 + 1", "1 / 0"} {
		call := tool.Prepared{Tool: calculator, Values: machine.Values{"expression": expression}}
		result := tool.Runner{}.Run(context.Background(), call, tool.Call{}).Result
		if result.Status != tool.OK {
			fmt.Println(result.Status, "-", result.Problem.Message)
			continue
		}
		fmt.Println(result.Value)
	}
	// Output:
	// 0.3
	// 9007199254740993
	// failed - "1 / 0" cannot be worked out: division by zero
}

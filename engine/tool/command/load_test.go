package command

import (
	"fmt"
	"strings"
	"testing"

	"flowctl/engine/tool"
	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

type endWith struct{}

func (*endWith) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

// check reads a flow with one tool, t, whose declaration starts in line 5.
func check(k *Kind, declaration string) (*machine.Machine, []flows.Finding) {
	cat := flows.Catalog{
		Handlers: map[string]func() machine.HandlerSpec{
			"end": func() machine.HandlerSpec { return machine.HandlerSpec{Doc: "End the run.", With: new(endWith)} }},
		ToolKinds: map[string]machine.ToolKind{"command": k.Spec()},
	}
	source := "version: 1\nname: shop\ntools:\n  t:\n" + declaration + "\nstart: done\nstates: {done: {handler: end}}\n"
	return flows.Check([]byte(source), flows.Place{}, cat)
}

func TestLoad(t *testing.T) {
	if _, err := schema.Compile([]byte(result)); err != nil {
		t.Error(err)
	}
	m, found := check(New(Options{}), `    description: A test's tool.
    effect: write
    parameters: {id: {type: string}}
    command: {args: [git, log, --, '{{ args.id }}'], dir: src, stdin: {id: '{{ args.id }}'}, env: {KEY: '{{ env("SHOP_KEY") }}'}, memory: 64 MiB, cpu: 1500ms}`)
	if m == nil {
		t.Fatal(found)
	}
	spec, _ := m.Tools.Get("t")
	want := `{"additionalProperties":false,"properties":{"exit_code":{"type":"integer"},"stderr":{"type":"string"},"stdout":{"type":"string"}},"required":["exit_code","stdout","stderr"],"type":"object"}`
	if got := string(spec.Result.JSON()); got != want {
		t.Errorf("the result is %s", got)
	}
	if len(m.Env) != 1 || m.Env[0] != "SHOP_KEY" {
		t.Errorf("the environment is %v", m.Env)
	}
}

// Each mistake is one finding with its place.
func TestLoadErrors(t *testing.T) {
	command := func(rest string) string { return "write\n    command:\n" + rest }
	args := func(args string) string { return command("      args: " + args) }
	more := func(rest string) string { return command("      args: [git]\n      " + rest) }
	tests := []struct{ name, declaration, want string }{
		// args start in line 9.
		{"no args", "write\n    command: {dir: x}", "8:14 command needs args (the program and its arguments"},
		{"empty args", args("[]"), "9:13 args needs the program at least, as in [git, status]"},
		{"a text", args("git status"), "9:13 command.args takes a list, not the text 'git status'"},
		{"a number", args("[head, -n, 5]"), "9:24 args[2] takes text, not the number 5; write '5'"},
		{"program by value", args("['{{ args.id }}']"), "9:14 the program must be fixed text, so that no value can choose what runs"},
		{"part of the program", args("['bin/{{ args.id }}', x]"), "9:14 the program must be fixed text"},
		{"empty program", args("[' ']"), "9:14 the program is empty; write its name or its path"},
		{"environment in an argument", args("[git, '{{ env(\"KEY\") }}']"), "9:23 env"},
		{"unknown argument", args("[git, '{{ args.idd }}']"), "9:28 args has no property idd; it has id"},
		{"no effect", "\n    command: {args: [git]}", "4:3 t needs effect (read, idempotent or write)"},
		// What stands behind args is in line 10.
		{"name of a variable", more("env: {A-B: x}"), `10:18 "A-B" is no name of an environment variable`},
		{"the key", more("env: {FLOWCTL_IDEMPOTENCY_KEY: x}"), "10:38 FLOWCTL_IDEMPOTENCY_KEY cannot be set: flowctl gives the call's own key"},
		{"number as a variable", more("env: {A: 1}"), "10:16 A takes text, not the number 1; write '1'"},
		{"environment in stdin", more("stdin: '{{ env(\"KEY\") }}'"), "10:18 env"},
		{"size without a unit", more("memory: '512'"), `10:15 memory takes a size with its unit, such as 512MiB or 2GiB, not "512"`},
		{"size of nothing", more("memory: 0MiB"), "10:15 memory takes a size with its unit"},
		{"too large a size", more("memory: 99999999999GiB"), "10:15 memory takes a size with its unit"},
		{"odd size", more("memory: manyMiB"), "10:15 memory takes a size with its unit"},
		{"no length of time", more("cpu: 5"), "10:12 cpu takes a length of time with its unit"},
		{"unknown key", more("shell: true"), "10:7 command has no key 'shell'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			effect := "    effect: "
			if strings.HasPrefix(test.declaration, "\n") {
				effect = "    "
				test.declaration = "timeout: 5s" + test.declaration
			}
			m, found := check(New(Options{}), "    description: A test's tool.\n    parameters: {id: {type: string}}\n"+effect+test.declaration)
			var got []string
			for _, f := range found {
				if f.Severity == flows.SeverityError {
					text := fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Message)
					if f.Fix != "" {
						text += "; write " + f.Fix
					}
					got = append(got, text)
				}
			}
			if m != nil || len(got) != 1 || !strings.HasPrefix(got[0], test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// Commands must be allowed; a flow with them can be checked all the same.
func TestNewRefuses(t *testing.T) {
	k := New(Options{})
	for command, want := range map[string]string{
		`{args: [git, log, --, "{{ args.id }}"]}`: "the flow runs commands (tool t: git …); allow it with --allow-commands",
		`{args: [./check]}`:                       "the flow runs commands (tool t: ./check); allow it with --allow-commands",
	} {
		m, found := check(k, "    description: A test's tool.\n    effect: write\n    parameters: {id: {type: string}}\n    command: "+command)
		if m == nil {
			t.Fatal(found)
		}
		spec, _ := m.Tools.Get("t")
		if _, err := k.New(spec, tool.Env{Machine: m}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, config := range []machine.ToolConfig{nil, &Config{}} {
		if _, err := k.New(machine.ToolSpec{Name: "t", Config: config}, tool.Env{}); err == nil || !strings.Contains(err.Error(), "not of the kind command") {
			t.Errorf("got %v", err)
		}
	}
}

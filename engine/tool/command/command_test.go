//go:build unix

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// newKind makes a kind that is closed when the test ends.
func newKind(t *testing.T) *Kind {
	t.Helper()
	k := New(Options{Allow: true})
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// setting is what a test's tool is made in.
type setting struct {
	kind    *Kind
	effect  string // read if left out
	timeout string // 1m if left out
	dir     string // the flow's folder
	env     map[string]string
}

// made makes a tool of a `command: {…}` part in one line, where CHILD stands for this program as a child. Its parameters
// are text, n, flag, list and object.
func (s setting) made(t *testing.T, command string) tool.Tool {
	t.Helper()
	if s.kind == nil {
		s.kind = newKind(t)
	}
	if s.effect == "" {
		s.effect = "read"
	}
	if s.timeout == "" {
		s.timeout = "1m"
	}
	command = strings.ReplaceAll(command, "CHILD", fmt.Sprintf("%q, child", os.Args[0]))
	m, found := check(s.kind, `    description: A test's tool.
    effect: `+s.effect+`
    timeout: `+s.timeout+`
    parameters:
      type: object
      properties: {text: {type: string}, n: {type: integer}, flag: {type: boolean}, list: {type: array}, object: {type: object}}
    command: `+command)
	if m == nil {
		t.Fatal(found)
	}
	spec, _ := m.Tools.Get("t")
	getenv := func(name string) (string, bool) { v, ok := s.env[name]; return v, ok }
	made, err := s.kind.New(spec, tool.Env{Machine: m, Dir: s.dir, Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// call makes a call as the executor does.
func call(ctx context.Context, tl tool.Tool, args machine.Values) tool.Result {
	return tool.Runner{}.Run(ctx, tool.Prepared{Tool: tl, Values: args}, tool.Call{Key: "r1/2.0", RunID: "r1"}).Result
}

// printed gives what a command that ended well has written to stdout.
func printed(t *testing.T, got tool.Result) string {
	t.Helper()
	if got.Status != tool.OK {
		t.Fatalf("got %+v", got)
	}
	return got.Value.(machine.Values)["stdout"].(string)
}

func printedArgs(t *testing.T, got tool.Result) machine.Value {
	t.Helper()
	v, err := machine.DecodeValue([]byte(printed(t, got)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestArguments(t *testing.T) {
	args := machine.Values{"text": "a b; $(rm -rf /) | x && 'y' \"z\" `w` * ~ %PATH% \\", "n": int64(9007199254740993), "flag": true,
		"list": []machine.Value{"x", int64(2), []machine.Value{}}, "object": machine.Values{"k": "<é>"}}
	for command, want := range map[string][]machine.Value{
		`[CHILD, args]`:                                                     nil,
		`[CHILD, args, "{{ args.text }}"]`:                                  {args["text"]},
		`[CHILD, args, "{{ args.n }}", "{{ args.flag }}"]`:                  {"9007199254740993", "true"},
		`[CHILD, args, "{{ args.list }}", "{{ args.object }}"]`:             {`["x",2,[]]`, `{"k":"<é>"}`},
		`[CHILD, args, "--n={{ args.n }}", "{{ run.id }} {{ args.flag }}"]`: {"--n=9007199254740993", "r1 true"},
		`[CHILD, args, "", " ", "$HOME", "a\nb", "-", "日本"]`:                {"", " ", "$HOME", "a\nb", "-", "日本"},
	} {
		got := printedArgs(t, call(t.Context(), setting{}.made(t, "{args: "+command+"}"), args))
		if list, _ := got.([]machine.Value); !reflect.DeepEqual(list, want) && len(list)+len(want) > 0 {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

// Whatever a value holds, it arrives as it is, as one argument, and so does what is read from stdin.
func TestAnyArgument(t *testing.T) {
	arguments := setting{}.made(t, `{args: [CHILD, args, "{{ args.text }}", "x{{ args.text }}"]}`)
	stdin := setting{}.made(t, `{args: [CHILD, copy], stdin: "{{ args.text }}"}`)
	value := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("-; $()|&'\"`*~%\\\n\x00=")), rapid.Rune()))
	for seed := range 25 { // each is two processes
		v := value.Example(seed)
		values := machine.Values{"text": v}
		got := call(t.Context(), arguments, values)
		if strings.ContainsRune(v, 0) {
			if got.Status != tool.Refused || !strings.Contains(got.Problem.Message, "argument 3 of") {
				t.Errorf("%q: got %+v", v, got)
			}
		} else if list := printedArgs(t, got); !reflect.DeepEqual(list, []machine.Value{v, "x" + v}) {
			t.Errorf("%q: got %q", v, list)
		}
		if got := printed(t, call(t.Context(), stdin, values)); got != v {
			t.Errorf("%q: stdin is %q", v, got)
		}
	}
}

func TestStdin(t *testing.T) {
	args := machine.Values{"text": "a\nb", "n": int64(7), "list": []machine.Value{"x", nil}, "object": machine.Values{}}
	for stdin, want := range map[string]string{
		`"{{ args.text }}"`:                         "a\nb",
		`"{{ args.n }}"`:                            "7",
		`"n is {{ args.n }}"`:                       "n is 7",
		`{n: "{{ args.n }}", l: "{{ args.list }}"}`: `{"l":["x",null],"n":7}`,
		`["{{ args.text }}"]`:                       `["a\nb"]`,
		`"{{ args.object.none }}"`:                  "",
		`""`:                                        "",
		`"` + strings.Repeat("long enough ", 1<<14) + `"`: strings.Repeat("long enough ", 1<<14),
	} {
		got := printed(t, call(t.Context(), setting{}.made(t, "{args: [CHILD, copy], stdin: "+stdin+"}"), args))
		if got != want {
			t.Errorf("%.80s: got %.80q", stdin, got)
		}
	}
	if got := printed(t, call(t.Context(), setting{}.made(t, "{args: [CHILD, copy]}"), nil)); got != "" {
		t.Errorf("without stdin there is %q", got)
	}
	// A command need not read what it is given.
	long := machine.Values{"text": strings.Repeat("x", 1<<20)}
	if got := call(t.Context(), setting{}.made(t, `{args: [CHILD, args], stdin: "{{ args.text }}"}`), long); got.Status != tool.OK {
		t.Errorf("got %+v", got)
	}
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "HOME": "/home/me", "TMPDIR": "/tmp",
		"LLM_API_KEY": "sk-of-flowctl", "LD_PRELOAD": "", "FLOWCTL_DB": "x.db", keyVariable: "of another call"} {
		t.Setenv(name, value)
	}
	tl := setting{env: map[string]string{"SHOP_KEY": "sk-12345678"}}.made(t,
		`{args: [CHILD, env], env: {SHOP_KEY: 'key {{ env("SHOP_KEY") }}', mode: "{{ args.text }}", TZ: Asia/Shanghai, EMPTY: ""}}`)
	got := printed(t, call(t.Context(), tl, machine.Values{"text": "a\nb=c"}))
	want := "EMPTY=\nFLOWCTL_IDEMPOTENCY_KEY=r1/2.0\nHOME=/home/me\nLANG=C.UTF-8\nLC_ALL=C\nPATH=" + os.Getenv("PATH") +
		"\nSHOP_KEY=[secret:SHOP_KEY]\nTMPDIR=/tmp\nTZ=Asia/Shanghai\nmode=a\nb=c\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if err := os.Unsetenv("HOME"); err != nil { // t.Setenv puts it back
		t.Fatal(err)
	}
	if got := printed(t, call(t.Context(), tl, machine.Values{"text": "x"})); strings.Contains(got, "HOME") {
		t.Errorf("HOME is not set, and the command got %q", got)
	}
}

// What comes of the environment stands neither in a result nor in an error, also where a text is cut.
func TestSecretsAreMasked(t *testing.T) {
	const key = "sk-1234567890"
	env := map[string]string{"SHOP_KEY": key, "SHORT": "ab"}
	s := setting{env: env}
	for command, want := range map[string]string{
		`{args: [CHILD, env], env: {A: '{{ env("SHOP_KEY") }}', B: '{{ upper(env("SHOP_KEY")) }}'}}`: "A=[secret:SHOP_KEY]\nB=[secret:SHOP_KEY]\n",
		`{args: [CHILD, copy], stdin: "{{ args.text }}", env: {A: '{{ env("SHOP_KEY") }}'}}`:         "a [secret:SHOP_KEY] b",
		`{args: [CHILD, env], env: {A: '{{ env("SHORT") }}'}}`:                                       "A=ab\n", // too short to be told from other text
	} {
		got := call(t.Context(), s.made(t, command), machine.Values{"text": "a " + key + " b"})
		if !strings.Contains(printed(t, got), want) || strings.Contains(fmt.Sprint(got), key) {
			t.Errorf("%s: got %+v", command, got)
		}
	}
	failing := s.made(t, `{args: [CHILD, exit, "3", "{{ args.text }}"], env: {A: '{{ env("SHOP_KEY") }}'}}`)
	got := call(t.Context(), failing, machine.Values{"text": "wrong key " + key})
	if !strings.HasSuffix(got.Problem.Message, "ended with exit code 3: wrong key [secret:SHOP_KEY]") || strings.Contains(fmt.Sprint(got), key) {
		t.Errorf("got %+v", got)
	}
	before := strings.Repeat("x", maxText-5) // the limit cuts the key in two
	got = call(t.Context(), s.made(t, `{args: [CHILD, copy], stdin: "{{ args.text }}", env: {A: '{{ env("SHOP_KEY") }}'}}`),
		machine.Values{"text": before + key + key})
	if text := printed(t, got); strings.Contains(text, "sk-1") || !strings.HasPrefix(text[maxText-5:], "[secr… [cut: ") {
		t.Errorf("the end is %q", text[maxText-10:])
	}
	broken := s.made(t, `{args: [CHILD, env], env: {A: '{{ int(env("SHOP_KEY")) }}'}}`)
	got = call(t.Context(), broken, nil)
	if got.Status != tool.Refused || got.Problem.Message != "the variable A cannot be made: an expression in it fails on a value of the environment" {
		t.Errorf("got %+v", got)
	}
}

func TestMissingKey(t *testing.T) {
	for _, env := range []map[string]string{nil, {"SHOP_KEY": ""}} {
		got := call(t.Context(), setting{env: env, effect: "write"}.made(t, `{args: [CHILD, env], env: {KEY: 'x {{ env("SHOP_KEY") }}'}}`), nil)
		if got.Status != tool.Unavailable || got.Problem.Kind != "no_key" ||
			!strings.Contains(got.Problem.Message, "SHOP_KEY, which the variable KEY of t needs, is not set") {
			t.Errorf("got %+v", got)
		}
	}
}

func TestFolder(t *testing.T) {
	flow, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(flow, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(flow, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": flow, "a/b": filepath.Join(flow, "a", "b"), "./a/..": flow, flow: flow} {
		got := printed(t, call(t.Context(), setting{dir: flow}.made(t, fmt.Sprintf(`{args: [CHILD, folder], dir: %q}`, dir)), nil))
		if got != want {
			t.Errorf("%q: it runs in %s", dir, got)
		}
	}
	for dir, want := range map[string]string{"none": "the folder none, which t runs in, is not there", "file": "file, which t runs in, is not a folder",
		"file/x": "the folder file/x, which t runs in, cannot be opened: not a directory"} {
		got := call(t.Context(), setting{dir: flow, effect: "write"}.made(t, fmt.Sprintf(`{args: [CHILD, folder], dir: %q}`, dir)), nil)
		if got.Status != tool.Unavailable || !strings.HasPrefix(got.Problem.Message, want) {
			t.Errorf("%q: got %+v", dir, got)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, effect := range []string{"read", "idempotent", "write"} {
		got := call(t.Context(), setting{effect: effect}.made(t, `{args: [CHILD, exit, "3", usage, " ", no such order, ""]}`), nil)
		want := machine.Values{"exit_code": int64(3), "stdout": "out", "stderr": "usage\n \nno such order\n"}
		if got.Status != tool.Failed || got.Problem.Kind != "failed" || !reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s: got %+v", effect, got)
		}
		if want := fmt.Sprintf("%s ended with exit code 3: no such order", os.Args[0]); got.Problem.Message != want {
			t.Errorf("%s: got  %s\nwant %s", effect, got.Problem.Message, want)
		}
		got = call(t.Context(), setting{effect: effect}.made(t, `{args: [CHILD, exit, "0", warning]}`), nil)
		if want := (machine.Values{"exit_code": int64(0), "stdout": "out", "stderr": "warning"}); got.Status != tool.OK || !reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s: got %+v", effect, got)
		}
	}
}

func TestOutput(t *testing.T) {
	got := call(t.Context(), setting{}.made(t, `{args: [CHILD, print, é, "700000"]}`), nil) // 1.4 MB on each way
	value := got.Value.(machine.Values)
	for _, name := range []string{"stdout", "stderr"} {
		text := value[name].(string)
		kept, mark, cut := strings.Cut(text, "… [cut: ")
		if got.Status != tool.OK || !cut || !strings.HasPrefix(mark, fmt.Sprintf("%d of ", len(kept))) || strings.Trim(kept, "é") != "" {
			t.Errorf("%s: %s, cut as %q", name, got.Status, mark)
		}
	}
	if got := printed(t, call(t.Context(), setting{}.made(t, `{args: [CHILD, bytes]}`), nil)); got != "a\uFFFDb\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestCapture(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"nothing", "", ""},
		{"as large as can be", strings.Repeat("x", maxText), strings.Repeat("x", maxText)},
		{"larger", strings.Repeat("x", maxText+1), strings.Repeat("x", maxText) + "… [cut: 1048576 of 1048577 bytes]"},
		{"cut in a rune", "a" + strings.Repeat("é", maxText/2), "a" + strings.Repeat("é", maxText/2-1) + "… [cut: 1048575 of 1048577 bytes]"},
		{"no UTF-8", strings.Repeat("\xffx", maxText/2), strings.Repeat("\uFFFDx", maxText/4) + "… [cut: 1048576 of 1048576 bytes]"},
	} {
		c := newCapture(nil)
		for data := []byte(test.data); len(data) > 0; {
			n, err := c.Write(data[:min(len(data), 32<<10)])
			if err != nil {
				t.Fatal(err)
			}
			data = data[n:]
		}
		if got := c.text(nil); got != test.want {
			t.Errorf("%s: %d bytes, which end in %q", test.name, len(got), got[max(0, len(got)-50):])
		}
	}
}

// A command that cannot be started has done nothing, whatever its effect.
func TestNotStarted(t *testing.T) {
	flow := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(flow, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("data", "x", 0o644)
	write("script", "#!/no/such/interpreter\n", 0o755)
	write("empty", "\x7fnothing that runs", 0o755)
	for program, want := range map[string]string{
		"no-such-program": "there is no program no-such-program in the PATH; install it, or write its path",
		"./none":          "there is no program ./none (its path starts from the flow's folder)",
		"sub/none":        "there is no program sub/none",
		"./data":          "the program ./data cannot be run: its rights do not allow it",
		"./script":        "./script could not be started: what it runs with is missing",
		"./empty":         "./empty could not be started: exec format error",
		"./":              "there is no program ./",
	} {
		got := call(t.Context(), setting{dir: flow, effect: "write"}.made(t, fmt.Sprintf("{args: [%s]}", program)), nil)
		if got.Status != tool.Unavailable || got.Value != nil || !strings.HasPrefix(got.Problem.Message, want) || strings.Contains(got.Problem.Message, flow) {
			t.Errorf("%s: got %+v", program, got)
		}
	}
	long := machine.Values{"text": strings.Repeat("x", 8<<20)}
	got := call(t.Context(), setting{effect: "write"}.made(t, `{args: [CHILD, args, "{{ args.text }}"]}`), long)
	if got.Status != tool.Refused || !strings.Contains(got.Problem.Message, "too long for the system; give long texts through stdin") {
		t.Errorf("got %s: %.200s", got.Status, got.Problem.Message)
	}
	for command, want := range map[string]string{
		`{args: [CHILD, args, "{{ args.n + 1 }}"]}`:               "args.n + 1",
		`{args: [CHILD, args], stdin: ["{{ args.n + 1 }}"]}`:      "args.n + 1",
		`{args: [CHILD, args], env: {N: "{{ args.n + 1 }}"}}`:     "args.n + 1",
		`{args: [CHILD, args], env: {N: "a{{ args.text }}"}}`:     "the variable N would hold a NUL character",
		`{args: [CHILD, args, "{{ args.flag }}{{ args.text }}"]}`: "argument 3 of",
	} {
		got := call(t.Context(), setting{effect: "write"}.made(t, command), machine.Values{"n": int64(9223372036854775807), "text": "\x00", "flag": true})
		if got.Status != tool.Refused || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: got %+v", command, got)
		}
	}
}

// A program is found at each call: by its name in the PATH, never in the working directory by accident, or by its path
// from the flow's folder.
func TestProgram(t *testing.T) {
	flow := t.TempDir()
	bin := filepath.Join(flow, "bin")
	tl := setting{dir: flow}.made(t, `{args: [tester, child, args, a]}`)
	t.Setenv("PATH", bin)
	if got := call(t.Context(), tl, nil); got.Status != tool.Unavailable {
		t.Errorf("got %+v", got)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "tester")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for _, program := range []string{"tester", "./bin/tester", "bin/tester", filepath.Join(bin, "tester")} {
		tl := setting{dir: flow}.made(t, fmt.Sprintf("{args: [%q, child, args, a], dir: bin}", program))
		if got := printedArgs(t, call(t.Context(), tl, nil)); !reflect.DeepEqual(got, []machine.Value{"a"}) {
			t.Errorf("%s: got %v", program, got)
		}
	}
	t.Setenv("PATH", ".")
	t.Chdir(bin)
	if got := call(t.Context(), tl, nil); got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, "write its path, as in ./tester") {
		t.Errorf("got %+v", got)
	}
}

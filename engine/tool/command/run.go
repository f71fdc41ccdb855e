package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"flowctl/engine/tool"
	"flowctl/engine/tool/program"
	"flowctl/flows/machine"
)

const (
	// keyVariable names the variable that holds a call's idempotency key.
	keyVariable = "FLOWCTL_IDEMPOTENCY_KEY"

	// kindNoKey is the kind of problem of an environment variable that is not set.
	kindNoKey = "no_key"
)

// command is one tool.
type command struct {
	kind    *Kind
	spec    machine.ToolSpec
	config  *Config
	program string // as it is written
	flow    string // the flow's folder, absolute
	limits  limits
	getenv  func(string) (string, bool)
}

// execution is one call under way.
type execution struct {
	*command
	cmd            *exec.Cmd
	secrets        secrets
	stdout, stderr *capture
	stopped        atomic.Bool // it was told to stop
}

// run makes one call.
func (c *command) run(ctx context.Context, call tool.Call) (machine.Value, error) {
	end, err := c.kind.begin(ctx, c.spec.Name, call.Key)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.kind.life, stop)()
	x, err := c.prepare(ctx, call)
	if err != nil {
		return nil, err
	}
	dieWithUs(x.cmd)
	runtime.LockOSThread() // dieWithUs counts on the thread that starts it
	defer runtime.UnlockOSThread()
	if err := x.cmd.Start(); err != nil {
		return nil, c.notStarted(ctx, err)
	}
	if err := c.limits.set(x.cmd.Process.Pid); err != nil {
		program.Kill(x.cmd)
		_ = x.cmd.Wait() // it was killed
		return nil, x.unsure("", "%s was stopped at once: %w", c.program, err)
	}
	err = x.cmd.Wait()
	program.Kill(x.cmd) // what it left behind
	return x.judge(ctx, err)
}

// prepare makes the process of a call, not yet started. Where it cannot be made, the call is Refused, or Unavailable where
// the system lacks something.
func (c *command) prepare(ctx context.Context, call tool.Call) (*execution, error) {
	facts := machine.Facts{Args: call.Args, RunID: call.RunID, StartedAt: call.StartedAt}
	args, err := c.arguments(facts)
	if err != nil {
		return nil, refused(err)
	}
	stdin, err := c.stdin(facts)
	if err != nil {
		return nil, refused(err)
	}
	x := &execution{command: c}
	env, err := x.environment(facts, call.Key)
	if err != nil {
		return nil, err
	}
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	dir, err := program.Folder(c.flow, c.config.Dir, c.spec.Name)
	if err != nil {
		return nil, err
	}
	x.cmd = exec.CommandContext(ctx, path)
	x.cmd.Args = append([]string{c.program}, args...)
	x.cmd.Dir, x.cmd.Env = dir, env
	if stdin != "" {
		x.cmd.Stdin = strings.NewReader(stdin)
	}
	x.stdout, x.stderr = newCapture(x.secrets), newCapture(x.secrets)
	x.cmd.Stdout, x.cmd.Stderr = x.stdout, x.stderr
	x.cmd.WaitDelay = c.kind.patience
	x.cmd.Cancel = func() error {
		x.stopped.Store(true)
		return program.Terminate(x.cmd)
	}
	program.OwnGroup(x.cmd)
	return x, nil
}

func refused(err error) error { return &tool.Error{Status: tool.Refused, Err: err} }

// arguments gives the arguments behind the program.
func (c *command) arguments(facts machine.Facts) ([]string, error) {
	var args []string
	for i, text := range c.config.Args[1:] {
		arg, err := text.Render(facts)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(arg, 0) {
			return nil, fmt.Errorf("argument %d of %s would hold a NUL character, which no argument can; give such text through stdin",
				i+1, c.program)
		}
		args = append(args, arg)
	}
	return args, nil
}

// stdin gives what the command reads.
func (c *command) stdin(facts machine.Facts) (string, error) {
	if c.config.Stdin == nil {
		return "", nil
	}
	v, err := c.config.Stdin.Value(facts)
	if err != nil {
		return "", err
	}
	return machine.FormatValue(v), nil
}

// environment gives all variables of the command. The `env` of the declaration is the one place where the environment of
// the flow is read, so what goes wrong there is told without the values.
func (x *execution) environment(facts machine.Facts, key string) ([]string, error) {
	vars := program.Inherited()
	vars[keyVariable] = key
	missing, source := "", "" // which variable is not set; which one the present text was made of
	facts.Getenv = func(name string) (string, bool) {
		v := ""
		if x.getenv != nil {
			v, _ = x.getenv(name)
		}
		if source = name; v == "" {
			missing = name
		}
		x.secrets.add(v, name)
		return v, v != ""
	}
	for _, item := range x.config.Env {
		source = ""
		value, err := item.Value.Render(facts)
		switch {
		case missing != "":
			return nil, &tool.Error{Status: tool.Unavailable, Kind: kindNoKey, Err: fmt.Errorf("the environment variable %s, which the "+
				"variable %s of %s needs, is not set; set it, or write it into a file .env beside the flow, and go on",
				missing, item.Name, x.spec.Name)}
		case err != nil && source != "":
			return nil, refused(fmt.Errorf("the variable %s cannot be made: an expression in it fails on a value of the environment", item.Name))
		case err != nil:
			return nil, refused(err)
		case strings.ContainsRune(value, 0):
			return nil, refused(fmt.Errorf("the variable %s would hold a NUL character, which no variable can", item.Name))
		}
		if source != "" {
			x.secrets.add(value, source)
		}
		vars[item.Name] = value
	}
	return program.Environ(vars), nil
}

// find gives the path of the program.
func (c *command) find() (string, error) {
	name := c.program
	isPath := filepath.Base(name) != name
	if isPath && !filepath.IsAbs(name) {
		name = filepath.Join(c.flow, name)
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil && program.BatchFile(runtime.GOOS, path):
		return "", tool.Unavailablef("%s is a batch file, which cannot keep its arguments apart; name the program that it starts", c.program)
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", tool.Unavailablef("the program %s was found only by way of a relative folder in the PATH, which is not used; "+
			"write its path, as in ./%s", c.program, c.program)
	case errors.Is(err, fs.ErrPermission):
		return "", tool.Unavailablef("the program %s cannot be run: its rights do not allow it", c.program)
	case isPath:
		return "", tool.Unavailablef("there is no program %s (its path starts from the flow's folder)", c.program)
	}
	return "", tool.Unavailablef("there is no program %s in the PATH; install it, or write its path, as in ./%s", c.program, c.program)
}

// notStarted says why a command could not be started. It is certain to have done nothing.
func (c *command) notStarted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return tool.Undone(ctx, c.spec.Name)
	case errors.Is(err, syscall.E2BIG):
		return refused(fmt.Errorf("the arguments of %s are too long for the system; give long texts through stdin", c.program))
	case errors.Is(err, fs.ErrNotExist):
		return tool.Unavailablef("%s could not be started: what it runs with is missing, such as the program that its first line "+
			"names", c.program)
	}
	return tool.Unavailablef("%s could not be started: %w", c.program, program.Cause(err))
}

// judge says how a command ended that had started.
func (x *execution) judge(ctx context.Context, waited error) (machine.Value, error) {
	state := x.cmd.ProcessState
	if state == nil { // the system has lost it
		return nil, x.unsure("", "%s was started, and how it ended cannot be found out: %w", x.program, waited)
	}
	if x.stopped.Load() {
		return nil, x.cutShort(ctx)
	}
	if name, _, killed := program.KilledBy(state); killed {
		return nil, x.unsure("", "%s was killed by a signal (%s)%s", x.program, name, x.limitReached())
	}
	code := state.ExitCode()
	if code == 0 {
		return x.value(), nil
	}
	said := ""
	if line := lastLine(x.stderr.text(x.secrets)); line != "" {
		said = ": " + line
	}
	failed := fmt.Errorf("%s ended with exit code %d%s", x.program, code, said)
	return nil, &tool.Error{Status: tool.Failed, Value: x.value(), Err: failed}
}

// cutShort is the failure of a command that was told to stop. Its exit code says nothing then: many programs that are told
// to stop end with 0.
func (x *execution) cutShort(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return x.unsure(tool.KindTimeout, "%s timed out after %s", x.spec.Name, tool.TimeoutOf(x.spec))
	}
	return x.unsure(tool.KindCancelled, "%s was cancelled", x.spec.Name)
}

// limitReached says that a killed command had used up its CPU time.
func (x *execution) limitReached() string {
	state := x.cmd.ProcessState
	if x.limits.cpu > 0 && state.UserTime()+state.SystemTime() >= x.limits.cpu {
		return fmt.Sprintf(", since it had used up its cpu time of %s", x.limits.cpu)
	}
	return ""
}

// unsure is the failure of a command that did not come to its own end: a read has failed, by the given kind of problem,
// and of anything else nobody knows how far it got.
func (x *execution) unsure(kind, format string, args ...any) error {
	e := &tool.Error{Status: tool.Failed, Kind: kind, Err: fmt.Errorf(format, args...)}
	if x.cmd.ProcessState != nil {
		e.Value = x.value()
	}
	if x.spec.Effect != machine.EffectRead {
		e.Status, e.Kind, e.Err = tool.Unknown, "", fmt.Errorf("%w, outcome unknown", e.Err)
	}
	return e
}

// value is what a call gives.
func (x *execution) value() machine.Values {
	code := x.cmd.ProcessState.ExitCode()
	if _, number, killed := program.KilledBy(x.cmd.ProcessState); killed {
		code = 128 + number
	}
	return machine.Values{"exit_code": int64(code), "stdout": x.stdout.text(x.secrets), "stderr": x.stderr.text(x.secrets)}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const (
	// patience is how long a command that was told to stop may take for it, and how long one that has ended may leave its
	// output open to others.
	patience = 2 * time.Second

	// closePatience is how long Close waits for commands that were told to stop; more than patience.
	closePatience = 5 * time.Second
)

// Options say what flows may do.
type Options struct {
	// Allow lets flows run commands. Without it New refuses to make a tool, so that a run stops before its first state;
	// flows can be checked and shown all the same.
	Allow bool
}

// Kind makes command tools. It knows the commands under way, and is safe for concurrent use.
type Kind struct {
	allow    bool
	patience time.Duration
	life     context.Context // ends with Close
	end      context.CancelFunc

	mu       sync.Mutex
	closed   bool
	attempts map[string]chan struct{} // the attempts under way by their key, each closed when its processes are gone
	running  sync.WaitGroup           // the same; it is added to under mu, and not any more after closed
}

var _ tool.Kind = (*Kind)(nil)

// New makes the kind.
func New(o Options) *Kind {
	k := &Kind{allow: o.Allow, patience: patience, attempts: map[string]chan struct{}{}}
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// more stands below the keys in the flow reference.
const more = "The program is started directly, without a shell: each item of `args` is one argument, and no value can become two. " +
	"A value that begins with `-` may still be read as an option: put it behind the option that it belongs to " +
	"(`[grep, -e, \"{{ args.word }}\"]`), or write `--` before it where the program knows that " +
	"(`[git, log, --, \"{{ args.path }}\"]`). A list or an object in an argument is JSON text.\n\n" +
	"The environment is PATH, HOME, LANG, LC_ALL, TZ and TMPDIR, the call's key in `FLOWCTL_IDEMPOTENCY_KEY`, and what `env` says. " +
	"stdout and stderr are cut after 1 MiB each. When the tool's `timeout` is over, the program and what it has started in its process group get SIGTERM " +
	"and 2 s later SIGKILL. On Linux it is killed when flowctl is. A flow with commands runs with `--allow-commands` only.\n"

// Spec says how `command: {…}` is decoded.
func (k *Kind) Spec() machine.ToolKind {
	return machine.ToolKind{
		Doc: "one program with its arguments, without a shell; it gives {exit_code, stdout, stderr}, and fails where the exit " +
			"code is not 0",
		More:   more,
		Config: func() machine.ToolConfig { return &Config{} },
	}
}

// Config is the kind's part of a declaration.
type Config struct {
	Args   []machine.Template                `yaml:"args" flow:"required" doc:"the program and its arguments, one item each; a program with a slash is a path that starts from the flow's folder"`
	Dir    string                            `yaml:"dir" doc:"folder that it runs in, relative to the flow file; the flow's folder if left out"`
	Stdin  machine.Tree                      `yaml:"stdin" doc:"what it reads: text as it is, any other value as JSON; nothing if left out"`
	Env    machine.Ordered[machine.Template] `yaml:"env" flow:"free,env" doc:"environment variables by name; env(\"NAME\") stands for one of flowctl's own"`
	Memory string                            `yaml:"memory" doc:"how much memory each of its processes may use, such as 512MiB; on Linux only"`
	CPU    machine.Duration                  `yaml:"cpu" doc:"how much CPU time each of its processes may use, in whole seconds; on Linux only"`
}

// result is the schema of what a call gives.
const result = `{"type":"object","properties":{"exit_code":{"type":"integer"},"stdout":{"type":"string"},"stderr":{"type":"string"}},` +
	`"required":["exit_code","stdout","stderr"],"additionalProperties":false}`

// Uses checks the command as far as it can be known before a call.
func (c *Config) Uses(machine.ToolScope) machine.ToolUses {
	uses := machine.ToolUses{Result: []byte(result)}
	problem := func(path, format string, args ...any) {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if len(c.Args) == 0 {
		problem("args", "args needs the program at least, as in [git, status]")
	} else if _, err := c.program(); err != nil {
		problem("args[0]", "%v", err)
	}
	for _, v := range c.Env {
		switch {
		case !envName.MatchString(v.Name):
			problem("env."+v.Name, "%q is no name of an environment variable: letters, digits and _, as in SHOP_KEY", v.Name)
		case v.Name == keyVariable:
			problem("env."+v.Name, "%s cannot be set: flowctl gives the call's own key, the same on every attempt", keyVariable)
		}
	}
	if _, err := c.memory(); err != nil {
		problem("memory", "%v", err)
	}
	return uses
}

// envName is what names of environment variables look like.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// program gives the program as it is written.
func (c *Config) program() (string, error) {
	text := ""
	for _, part := range c.Args[0].Parts() {
		if part.Expr != nil {
			return "", errors.New("the program must be fixed text, so that no value can choose what runs; " +
				"a value stands in the arguments behind it")
		}
		text += part.Fixed
	}
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		return "", errors.New("the program is empty; write its name or its path, such as git or ./check")
	}
	return text, nil
}

// New makes the tool of one declaration.
func (k *Kind) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	config, ok := spec.Config.(*Config)
	if !ok || len(config.Args) == 0 {
		return tool.Tool{}, fmt.Errorf("the tool %s is not of the kind command", spec.Name)
	}
	program, err := config.program()
	if err != nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: %w", spec.Name, err)
	}
	if !k.allow {
		if len(config.Args) > 1 {
			program += " …"
		}
		return tool.Tool{}, fmt.Errorf("the flow runs commands (tool %s: %s); allow it with --allow-commands", spec.Name, program)
	}
	limits, err := config.limits()
	if err != nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: %w", spec.Name, err)
	}
	flow, err := filepath.Abs(env.Dir)
	if err != nil {
		return tool.Tool{}, fmt.Errorf("the tool %s: the flow's folder cannot be found: %w", spec.Name, err)
	}
	c := &command{kind: k, spec: spec, config: config, program: program, flow: flow, limits: limits, getenv: env.Getenv}
	return tool.Tool{Spec: spec, Run: c.run}, nil
}

// begin takes note of an attempt at a call, which calls end when its processes are gone. Where an attempt before it was
// given up and its processes are still ending, it waits for them: two attempts never work beside each other.
func (k *Kind) begin(ctx context.Context, name, key string) (end func(), err error) {
	for {
		before, end, err := k.enter(key)
		if before == nil {
			return end, err
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, tool.Undone(ctx, name)
		}
	}
}

// enter takes note of an attempt, or gives the one that is to be waited for.
func (k *Kind) enter(key string) (before <-chan struct{}, end func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, nil, errClosed
	}
	if other, ok := k.attempts[key]; ok && key != "" {
		return other, nil, nil
	}
	gone := make(chan struct{})
	k.attempts[key] = gone
	k.running.Add(1)
	return nil, func() {
		k.mu.Lock()
		delete(k.attempts, key)
		k.mu.Unlock()
		close(gone)
		k.running.Done()
	}, nil
}

// errClosed is the failure of a call after Close.
var errClosed = tool.Unavailablef("commands are not run any more: flowctl is shutting down")

// Close stops the commands that are still under way, such as those of calls whose time was up, and waits until they are
// gone. Calls that come later are unavailable.
func (k *Kind) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.end()
	gone := make(chan struct{})
	go func() {
		k.running.Wait()
		close(gone)
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-timer.C:
		return errors.New("a command does not end, though it was killed; look for it among the processes of the system")
	}
}

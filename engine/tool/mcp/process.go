package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"flowctl/engine/tool"
	"flowctl/engine/tool/program"
)

const (
	maxMessage = 16 << 20 // bytes of one message of a server
	maxLogLine = 64 << 10 // bytes of one line of the log

	maxTail = 20 // lines of stderr that are kept to say why a process ended

	// maxNoise is how many lines that are no messages a program may print on its stdout. Above it is no MCP server.
	maxNoise = 100
)

// process is a server that was started, and the connection to it: one message per line on its stdin and stdout.
//
// The connection is not the library's, because that one loses the session at the first line which is no message, does
// not end what its program has started, and cannot be left when the program does not read.
type process struct {
	cmd     *exec.Cmd
	stdin   *os.File
	log     zerolog.Logger
	secrets secrets

	writing  chan struct{} // holds the one that writes
	incoming chan jsonrpc.Message
	stopped  chan struct{} // closed by Close: no more is read or written
	gone     chan struct{} // closed when the process has ended
	stop     sync.Once

	mu    sync.Mutex // of all below
	noise int        // lines of stdout that are no messages
	heard string     // the first of them
	tail  []string   // the last lines of stderr
	flaw  error      // why the connection was given up from here
}

var _ sdk.Connection = (*process)(nil)

// startProcess starts the program of a server. Where it cannot, nothing is left behind, and the error is for people.
func startProcess(d definition, log zerolog.Logger) (*process, error) {
	path, err := d.find()
	if err != nil {
		return nil, err
	}
	dir, err := program.Folder(d.flow, d.dir, "the MCP server "+d.name)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, tool.Unavailablef("the MCP server %s could not be started: %w", d.name, err)
	}
	p := &process{cmd: exec.Command(path), stdin: out, log: log, secrets: d.secrets, writing: make(chan struct{}, 1),
		incoming: make(chan jsonrpc.Message), stopped: make(chan struct{}), gone: make(chan struct{})}
	stdout, stderr := &splitter{limit: maxMessage, line: p.message}, &splitter{limit: maxLogLine, marks: true, line: p.logged}
	p.cmd.Args = append([]string{d.command[0]}, d.command[1:]...)
	p.cmd.Dir, p.cmd.Env = dir, d.environment()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, stdout, stderr
	p.cmd.WaitDelay = patience // a process that has left the group may hold the output open
	program.OwnGroup(p.cmd)
	err = p.cmd.Start()
	_ = in.Close() // the program has its own by now
	if err != nil {
		_ = out.Close() // nobody reads it
		return nil, d.notStarted(err)
	}
	log.Info().Int("pid", p.cmd.Process.Pid).Msg("the MCP server was started")
	go p.watch(stdout, stderr)
	return p, nil
}

// find gives the path of the program.
func (d definition) find() (string, error) {
	name := d.command[0]
	isPath := filepath.Base(name) != name
	if isPath && !filepath.IsAbs(name) {
		name = filepath.Join(d.flow, name)
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil && program.BatchFile(runtime.GOOS, path):
		return "", tool.Unavailablef("%s, which the MCP server %s needs, is a batch file, which cannot keep its arguments apart; name the "+
			"program that it starts", d.command[0], d.name)
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", tool.Unavailablef("the program %s of the MCP server %s was found only by way of a relative folder in the PATH, which is "+
			"not used; write its path, as in ./%s", d.command[0], d.name, d.command[0])
	case errors.Is(err, fs.ErrPermission):
		return "", tool.Unavailablef("the program %s of the MCP server %s cannot be run: its rights do not allow it", d.command[0], d.name)
	case isPath:
		return "", tool.Unavailablef("there is no program %s, which the MCP server %s needs (its path starts from the flow's folder)",
			d.command[0], d.name)
	}
	return "", tool.Unavailablef("there is no program %s in the PATH, which the MCP server %s needs; install it, or write its path, as in ./%s",
		d.command[0], d.name, filepath.Base(name))
}

func (d definition) notStarted(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Unavailablef("the MCP server %s could not be started: what %s runs with is missing, such as the program that its "+
			"first line names", d.name, d.command[0])
	}
	return tool.Unavailablef("the MCP server %s could not be started: %w", d.name, program.Cause(err))
}

// watch waits for the end of the process, and ends what it has left behind in its group.
func (p *process) watch(outputs ...*splitter) {
	err := p.cmd.Wait()
	program.Kill(p.cmd)
	for _, output := range outputs {
		_ = output.flush() // it is the last line; there is nothing more to stop
	}
	if state := p.cmd.ProcessState; state == nil {
		p.log.Error().Err(err).Msg("how the MCP server ended cannot be found out")
	} else {
		p.log.Info().Int("pid", state.Pid()).Msg("the MCP server " + p.ended() + p.lastWords())
	}
	close(p.gone)
	_ = p.stdin.Close() // Close may have done it
}

// ends says whether the process has ended.
func (p *process) ends() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// left says whether the connection has been given up, or has ended with the process.
func (p *process) left() bool {
	select {
	case <-p.stopped:
		return true
	default:
		return p.ends()
	}
}

// ended says how the process ended, once it is gone.
func (p *process) ended() string {
	state := p.cmd.ProcessState
	if state == nil {
		return "was lost"
	}
	if name, _, killed := program.KilledBy(state); killed {
		return "was killed by a signal (" + name + ")"
	}
	return fmt.Sprintf("ended (exit code %d)", state.ExitCode())
}

// lastWords gives the line of stderr that most likely says why the process ended, behind a colon: the last one that tells
// of an error, for a stack or a version often stands behind it; else the last one, if the process did not end well.
func (p *process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := ""
	if n := len(p.tail); n > 0 && (p.cmd.ProcessState == nil || !p.cmd.ProcessState.Success()) {
		line = p.tail[n-1]
	}
	for _, one := range p.tail {
		if lower := strings.ToLower(one); strings.Contains(lower, "error") || strings.Contains(lower, "panic:") {
			line = one
		}
	}
	if line == "" {
		return ""
	}
	return ": " + shorten(p.secrets.mask(line))
}

// message takes one line of stdout. A line that is no message is passed over: many programs greet, and the library of the
// protocol for other languages does the same.
func (p *process) message(line []byte) error {
	if len(line) == maxMessage {
		return p.giveUp(fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20))
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return p.noisy(line)
	}
	select {
	case p.incoming <- msg:
		return nil
	case <-p.stopped:
		return io.ErrClosedPipe
	}
}

// noisy takes note of a line of stdout that is no message.
func (p *process) noisy(line []byte) error {
	p.log.Warn().Str("line", shorten(string(line))).Msg("the MCP server printed text on its stdout, which is for messages only")
	p.mu.Lock()
	p.noise++
	if p.heard == "" {
		p.heard = shorten(p.secrets.mask(string(line)))
	}
	enough, heard := p.noise > maxNoise, p.heard
	p.mu.Unlock()
	if !enough {
		return nil
	}
	return p.giveUp(fmt.Errorf("it prints text on its stdout, which is for messages only (%q, and %d lines more); it is no MCP server, "+
		"or its log must go to stderr", heard, maxNoise))
}

// hint tells of text on stdout, where that may be why nothing else was understood.
func (p *process) hint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == "" {
		return ""
	}
	return fmt.Sprintf("; it printed text on its stdout, which is for messages only: %q", p.heard)
}

// giveUp ends the connection for a reason that the process does not know.
func (p *process) giveUp(flaw error) error {
	p.mu.Lock()
	if p.flaw == nil {
		p.flaw = flaw
	}
	p.mu.Unlock()
	_ = p.Close() // it has no error
	return flaw
}

// givenUp gives the reason of giveUp, nil where there was none.
func (p *process) givenUp() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flaw
}

// logged takes one line of stderr.
func (p *process) logged(line []byte) error {
	text := string(line)
	p.log.Info().Msg(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tail) == maxTail {
		p.tail = slices.Delete(p.tail, 0, 1)
	}
	p.tail = append(p.tail, text)
	return nil
}

// Read gives the next message, and io.EOF when the process has ended and all that it said was read.
func (p *process) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-p.incoming:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.stopped:
	case <-p.gone:
	}
	return nil, io.EOF
}

// Write sends a message. It does not wait longer than ctx for a process that does not read.
func (p *process) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-p.stopped:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case p.left():
		return io.ErrClosedPipe
	case ctx.Err() != nil:
		return ctx.Err()
	}
	n, err := p.write(ctx, append(data, '\n'))
	if n > 0 {
		carried(ctx).sent.Store(true)
	}
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil:
		return ctx.Err()
	}
	_ = p.Close() // half a message is in the pipe, or nobody reads it
	return err
}

// write writes until ctx ends, where the system can be told so.
func (p *process) write(ctx context.Context, data []byte) (int, error) {
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.stdin.SetWriteDeadline(time.Unix(1, 0)) // a system that cannot waits for the process
		close(late)
	})
	n, err := p.stdin.Write(data)
	if !stop() {
		<-late
		_ = p.stdin.SetWriteDeadline(time.Time{}) // as above
	}
	return n, err
}

// Close ends the connection at once and the process soon: gone tells when. It always gives nil.
func (p *process) Close() error {
	p.stop.Do(func() {
		close(p.stopped)
		go p.end()
	})
	return nil
}

// end makes the process end: politely, by a signal, by force.
func (p *process) end() {
	_ = p.stdin.Close() // watch may have done it
	for _, harder := range []func(*exec.Cmd){politely, program.Kill} {
		timer := time.NewTimer(patience)
		select {
		case <-p.gone:
			timer.Stop()
			return
		case <-timer.C:
			harder(p.cmd)
		}
	}
}

// politely asks for the end; an error says that there is nothing left to end.
func politely(cmd *exec.Cmd) { _ = program.Terminate(cmd) }

// SessionID gives "", since a process has one session only.
func (p *process) SessionID() string { return "" }

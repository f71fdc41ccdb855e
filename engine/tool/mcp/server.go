package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"flowctl/engine/tool"
)

// maxRest is the longest time that a server which keeps failing is left alone before it is started again.
const maxRest = 30 * time.Second

// server is one server of the process, with at most one session at a time. It is started when it is needed, and again when
// it is needed after it has ended.
type server struct {
	definition
	kind *Kind
	log  zerolog.Logger

	mu       sync.Mutex // of all below
	current  *session   // nil: it does not run
	starting *start     // nil: it is not being started
	failures int        // starts in a row that came to nothing, or to an end without an answer to a call
	again    time.Time  // it is not started before
	last     string     // how it failed the last time, for people
}

// start is a start under way, which several calls may wait for.
type start struct {
	done    chan struct{} // closed at its end; the rest is set then
	session *session
	err     error
}

// patience is how long the server may take to start.
func (s *server) patience() time.Duration {
	if s.timeout > 0 {
		return s.timeout
	}
	return s.kind.options.Connect
}

// session gives the server's session, and starts the server where it does not run. A start goes on when the call that
// waits for it has to stop. No tool has been called when it fails.
func (s *server) session(ctx context.Context, caller string) (*session, error) {
	s.mu.Lock()
	if s.current != nil {
		defer s.mu.Unlock()
		return s.current, nil
	}
	if s.starting == nil {
		if err := s.rest(); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		if !s.kind.begin() {
			s.mu.Unlock()
			return nil, errClosed
		}
		s.starting = &start{done: make(chan struct{})}
		go s.start(s.starting)
	}
	st := s.starting
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.session, st.err
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, late("the MCP server %s is still starting, and %s was not called; it will be ready for a later call, or give the "+
			"tool a longer timeout", s.label(), caller)
	}
	return nil, tool.Undone(ctx, caller)
}

// use does something in the server's session. Where the server has ended unnoticed since the last call, or does not know the
// session any more, it has not seen this one, which is made again then, once. The session is nil where there was none; an
// error beside a session is that of do.
func (s *server) use(ctx context.Context, caller string, do func(*session) (*exchange, error)) (*session, error) {
	for again := true; ; again = false {
		one, err := s.session(ctx, caller)
		if err != nil {
			return nil, err
		}
		x, err := do(one)
		if !again || ctx.Err() != nil || !one.missed(x, err) {
			return one, err
		}
		s.drop(one)
		one.end()
	}
}

// late is the failure of a call whose time was up, where it is certain that it can be made again.
func late(format string, args ...any) error {
	return &tool.Error{Status: tool.Unavailable, Kind: tool.KindTimeout, Err: fmt.Errorf(format, args...)}
}

// rest refuses to start a server that has just failed several times.
func (s *server) rest() error {
	left := s.again.Sub(s.kind.options.Now())
	if left <= 0 {
		return nil
	}
	return tool.Unavailablef("the MCP server %s failed %d times in a row and is left alone for %s; the last time: %s", s.label(),
		s.failures, left.Round(time.Millisecond), s.last)
}

// failed takes note of a failure: the first one is forgiven, then the server is left alone for 1 s, 2 s, 4 s … Connecting
// to a url costs nothing, so that is never put off.
func (s *server) failed(how string) {
	s.failures++
	s.last = how
	if s.failures > 1 && s.url == "" {
		s.again = s.kind.options.Now().Add(min(maxRest, time.Second<<min(s.failures-2, 10)))
	}
}

// start makes a session, and looks after it.
func (s *server) start(st *start) {
	ctx, stop := context.WithTimeout(s.kind.life, s.patience())
	one, err := s.open(ctx)
	stop()
	st.session, st.err = one, err
	s.mu.Lock()
	s.starting = nil
	if err != nil {
		s.failed(err.Error())
		s.log.Warn().Err(err).Msg("the MCP server could not be started")
	} else {
		s.current = one
	}
	s.mu.Unlock()
	close(st.done)
	if err == nil {
		s.look(one)
	}
	s.kind.running.Done()
}

// look waits for the end of a session, or of the kind.
func (s *server) look(one *session) {
	stop := context.AfterFunc(s.kind.life, one.end)
	defer stop()
	err := one.client.Wait()
	s.drop(one)
	one.end()
	if one.proc != nil {
		<-one.proc.gone
	}
	one.reason = s.secrets.mask(one.lost(err))
	s.mu.Lock()
	s.failed(one.reason)
	s.mu.Unlock()
	s.log.Info().Msgf("the session with the MCP server is over: it %s", one.reason)
	close(one.over)
}

// drop makes the next call start the server anew.
func (s *server) drop(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == one {
		s.current = nil
	}
}

// heard takes note that a call was answered.
func (s *server) heard(one *session) {
	one.silent.Store(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = 0
}

// unheard takes note that a call got no answer in its time. A server that seems to hang is ended.
func (s *server) unheard(one *session) {
	if one.silent.Add(1) < maxSilent {
		return
	}
	s.drop(one)
	one.end()
	s.log.Warn().Msgf("the MCP server gave no answer to %d calls in a row and is ended", maxSilent)
}

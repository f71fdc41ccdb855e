package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Handler is Go code that does a state's work. One value serves all runs, so it keeps no state of its own.
type Handler interface {
	// Spec gives the handler's description with a fresh config to decode a state's `with` into.
	Spec() machine.HandlerSpec
	// Handle does the work of one step and returns its outcome. It may be called again for the same step, from its top,
	// after a crash or a pause: then the effects that it had are answered from the journal. It must therefore do nothing
	// to the world but through step, and reach the same effects in the same order from the same answers: no clock, no
	// randomness, no order of maps of its own.
	//
	// An error beside an outcome is the reason, kept as last.error: a machine.Problem gives its kind, any other error is
	// kind failed. An error without outcome stops the run. When an effect of step has failed, Handle returns that error,
	// and both are ignored.
	Handle(ctx context.Context, step *Step) (machine.Outcome, error)
}

// Config is what an Engine works with. The engine uses the values until Close and never changes them.
type Config struct {
	// Store keeps the runs. Required. The engine does not close it.
	Store store.Store

	// Compile makes the machine of a stored flow source whose relative paths start from dir. It is asked at start, on
	// resume and for child flows; it must not apply lint rules, or a new rule would strand old runs. Required.
	Compile func(source []byte, dir string) (*machine.Machine, error)

	// Handlers by the name that a state's `handler` gives. Required.
	Handlers map[string]Handler

	// Tools by the key of their kind in a tool's declaration. The engine does not close them.
	Tools map[string]tool.Kind

	// Models makes the models of flows. Nil: a declared model is missing.
	Models Models

	// Stream is given the text of models as it comes, without the values of secret variables, from the goroutine of each run's Advance. A try that fails is
	// observed as an event, and what it gave is given again. Nil: nobody watches.
	Stream func(run, state, text string)

	// ApproveAll answers every approval with yes. It is recorded when a step is entered.
	ApproveAll bool

	// Secrets is taken out of everything that is stored. Nil: nothing is.
	Secrets *secret.Redactor

	// Getenv reads the environment for texts that may. Nil: the environment is empty.
	Getenv func(string) (string, bool)

	// Observe is called after every event that this engine commits, in the order of each run's history, from several
	// goroutines at once for different runs. The values of secret variables are taken out of what it is given. It must be quick and must not call the engine. Nil: nobody looks.
	Observe func(run string, ev history.Event)

	// Log takes what is no part of a run: lost leases, retried take-ups. Zero: nothing is logged.
	Log zerolog.Logger

	// Now is the clock. Nil: time.Now.
	Now func() time.Time

	// NewID makes run ids, unique and in rising order. Nil: ULIDs of the clock and crypto/rand.
	NewID func() string

	// Worker says who this process is. Zero: the present process.
	Worker store.Worker

	// Beat is the time between two heartbeats, Stale the age at which another's heartbeat is a dead worker's. 0: 1 s, 15 s.
	Beat, Stale time.Duration

	// Gone says whether a worker's process is known to be gone. Nil: it asks the operating system about processes of
	// this boot and process namespace.
	Gone func(store.Worker) bool

	// Sleep waits before a tool is called again; an error when ctx ends before. Nil: a timer.
	Sleep func(ctx context.Context, d time.Duration) error

	// Grace is how long calls in flight may take to end when a run is cancelled or interrupted. 0: 5 s.
	Grace time.Duration
}

// Engine runs flows. It is safe for concurrent use; different runs advance independently, one run in one goroutine.
type Engine struct {
	cfg Config

	mu       sync.Mutex
	sessions map[string]*session // runs that this process holds
	machines map[string]*machine.Machine
	breakers tool.Breakers

	beaten      time.Time          // newest stored heartbeat
	stopBeating context.CancelFunc // nil while nothing beats
	beats       sync.WaitGroup
}

// New checks the config and makes an engine.
func New(cfg Config) (*Engine, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("engine: Config.Store is required")
	case cfg.Compile == nil:
		return nil, errors.New("engine: Config.Compile is required")
	case len(cfg.Handlers) == 0:
		return nil, errors.New("engine: Config.Handlers is required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newULID(cfg.Now)
	}
	if cfg.Getenv == nil {
		cfg.Getenv = func(string) (string, bool) { return "", false }
	}
	if cfg.Worker.ID == "" {
		cfg.Worker = thisProcess()
	}
	if cfg.Gone == nil {
		cfg.Gone = processGone(cfg.Worker)
	}
	setDefault(&cfg.Beat, time.Second)
	setDefault(&cfg.Stale, 15*time.Second)
	setDefault(&cfg.Grace, 5*time.Second)
	return &Engine{cfg: cfg, sessions: map[string]*session{}, machines: map[string]*machine.Machine{}}, nil
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// stepRandom is the generator of a step: the same for every re-entry.
func stepRandom(run string, step int64) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s/%d", run, step))))
}

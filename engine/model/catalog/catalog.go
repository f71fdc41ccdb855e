package catalog

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"flowctl/engine/model"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/script"
	"flowctl/flows/machine"
)

// Options is what models are made with. The zero value is ready to use.
type Options struct {
	// Getenv reads the environment, for keys and for what a flow leaves open. It is asked when a model is made and not
	// again. Nil: it is empty.
	Getenv openai.Getenv
	// Transport sends requests. Nil: http.DefaultTransport.
	Transport http.RoundTripper
	// Redact takes secrets out of errors. The key of a model is taken out of its own errors in any case. Nil: there are none.
	Redact func(string) string
	// Clock is the time of waits and limits. The zero value is the real one.
	Clock model.Clock
}

// Catalog makes models and keeps them. It is safe for concurrent use.
type Catalog struct {
	opt Options

	mu       sync.Mutex
	kept     map[choice]*kept
	uses     uint64 // counts the calls of Open, to find what has not been used for longest
	limiters map[bounds]*model.Limiter
}

// choice is a model of a flow as it was chosen. The folder belongs to it, since scripts lie beside the flow.
type choice struct {
	hash, dir string
	use       model.Use
}

type kept struct {
	opened model.Opened
	used   uint64
}

// maxKept bounds how many models are kept. One that was dropped is made again when it is asked for.
const maxKept = 256

// New makes a catalog. Nothing is read or sent before a model is asked for.
func New(opt Options) *Catalog {
	return &Catalog{opt: opt, kept: map[choice]*kept{}, limiters: map[bounds]*model.Limiter{}}
}

// scriptID is the name of a model that answers from a script.
const scriptID = "script"

// Case says whether a model of a flow can be called here and now, itself or one that stands in for it, and the name by
// which its endpoint knows it: "" where it cannot be called itself, or where nothing says its name. A script can always be
// called.
func (c *Catalog) Case(m *machine.Machine, name string) (ready machine.ModelCase, id string) {
	spec, _ := m.Models.Get(name)
	switch cfg := spec.Config.(type) {
	case *openai.Config:
		if cfg.Ready(c.opt.Getenv) {
			return machine.ModelReady, cfg.ID(c.opt.Getenv)
		}
		if slices.ContainsFunc(cfg.Fallback, func(other string) bool { return c.Ready(m, other) }) {
			return machine.ModelReady, ""
		}
	case *script.Config:
		return machine.ModelReady, scriptID
	}
	return machine.ModelMissing, ""
}

// Ready says whether a model can be called itself.
func (c *Catalog) Ready(m *machine.Machine, name string) bool {
	spec, _ := m.Models.Get(name)
	switch cfg := spec.Config.(type) {
	case *openai.Config:
		return cfg.Ready(c.opt.Getenv)
	case *script.Config:
		return true
	}
	return false
}

// KeyNames lists the variables of the environment that may hold the key of a model; nil for one without.
func (c *Catalog) KeyNames(m *machine.Machine, name string) []string {
	spec, _ := m.Models.Get(name)
	if cfg, ok := spec.Config.(*openai.Config); ok {
		return cfg.KeyNames()
	}
	return nil
}

// Open gives a model with all its wrappers. Of the same flow in the same folder, the same choice gives the same model, as
// long as it is among those used last. Errors are *model.Error: authentication where the key is missing or spoilt, script
// where the script cannot be read or is wrong (every mistake with its place), bad request for the rest.
func (c *Catalog) Open(m *machine.Machine, use model.Use) (model.Opened, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	as := choice{hash: m.Hash, dir: m.Dir, use: use}
	if k, ok := c.kept[as]; ok {
		k.used = c.uses
		return k.opened, nil
	}
	opened, incomplete, err := c.open(m, use)
	if err != nil {
		return model.Opened{}, err
	}
	if incomplete { // a key that is set later counts then
		return opened, nil
	}
	if len(c.kept) >= maxKept {
		c.dropOldest()
	}
	c.kept[as] = &kept{opened: opened, used: c.uses}
	return opened, nil
}

// Check says why a model cannot be made here and now, whatever stands in for it. Errors are those of Open.
func (c *Catalog) Check(m *machine.Machine, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.one(m, model.Use{Name: name})
	return err
}

// dropOldest forgets the model that has not been used for longest. Whoever has it can go on with it.
func (c *Catalog) dropOldest() {
	var oldest choice
	used := c.uses
	for as, k := range c.kept {
		if k.used < used {
			oldest, used = as, k.used
		}
	}
	delete(c.kept, oldest)
}

func badRequest(format string, args ...any) error {
	return &model.Error{Class: model.BadRequest, Err: fmt.Errorf(format, args...)}
}

// classed gives an error as a *model.Error, which it is in all cases but a mistake in this program.
func classed(err error) *model.Error {
	var e *model.Error
	if errors.As(err, &e) {
		return e
	}
	return &model.Error{Class: model.BadRequest, Err: err}
}

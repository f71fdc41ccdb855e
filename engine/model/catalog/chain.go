package catalog

import (
	"context"
	"path/filepath"

	"flowctl/engine/model"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/script"
	"flowctl/flows/machine"
)

// open makes a model as the flow declares it, from the outside: Fallback, Retry, Limit, Cost, JSONProtocol, the endpoint. A
// script that stands for it is given the same window. incomplete says that a model of a chain cannot be made at present.
func (c *Catalog) open(m *machine.Machine, use model.Use) (opened model.Opened, incomplete bool, err error) {
	spec, _ := m.Models.Get(use.Name)
	cfg, _ := spec.Config.(*openai.Config)
	switch {
	case use.Script != "":
		opened, err = c.scripted(use.Script)
	case cfg != nil && len(cfg.Fallback) > 0:
		opened, incomplete = c.chain(m, use, cfg.Fallback)
	default:
		opened, err = c.one(m, use)
	}
	if err == nil && cfg != nil {
		opened.Window, opened.Reply, opened.SendsReasoning = cfg.Window, cfg.MaxTokens, cfg.Reasoning == openai.ReasoningSendBack
	}
	return opened, incomplete, err
}

// chain makes a model with those that stand in for it. It is incomplete where some of them cannot be made.
func (c *Catalog) chain(m *machine.Machine, use model.Use, names []string) (opened model.Opened, incomplete bool) {
	opened, err := c.one(m, use)
	if incomplete = err != nil; incomplete { // then those that stand in for it are asked
		opened = model.Opened{Model: failing{classed(err)}}
	}
	chain := []model.Named{{Name: use.Name, Model: opened.Model}}
	for _, name := range names {
		last := &chain[len(chain)-1] // it has one to go to, and may rest when it fails
		last.Model = &model.Rest{Model: last.Model, Clock: c.opt.Clock}
		other := c.fallback(m, name)
		if _, fails := other.(failing); fails {
			incomplete = true
		}
		chain = append(chain, model.Named{Name: name, Model: other})
	}
	opened.Model = &model.Fallback{Models: chain}
	return opened, incomplete
}

// fallback makes a model that stands in for another. Its own fallbacks do not count, so that a chain is what one list says
// and has an end. One that cannot be made is a model that fails, and only when its turn comes.
func (c *Catalog) fallback(m *machine.Machine, name string) model.Model {
	opened, err := c.one(m, model.Use{Name: name})
	if err != nil {
		return failing{classed(err)}
	}
	return opened.Model
}

// failing is a model that could not be made.
type failing struct{ err *model.Error }

// Generate implements model.Model.
func (f failing) Generate(ctx context.Context, _ model.Request) (model.Response, error) {
	if ctx.Err() != nil {
		return model.Response{}, context.Cause(ctx)
	}
	return model.Response{}, f.err
}

// one makes a model with its own wrappers, without fallbacks.
func (c *Catalog) one(m *machine.Machine, use model.Use) (model.Opened, error) {
	spec, ok := m.Models.Get(use.Name)
	if !ok {
		return model.Opened{}, badRequest("the flow %s has no model %s", m.Name, use.Name)
	}
	switch cfg := spec.Config.(type) {
	case *openai.Config:
		return c.endpoint(*cfg, use.ID)
	case *script.Config:
		file := cfg.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(m.Dir, file)
		}
		return c.scripted(file)
	}
	return model.Opened{}, badRequest("the model %s is of the provider %s, which is not known here", use.Name, spec.Provider)
}

// endpoint makes a model behind an endpoint. id is its name there; "": as the config or the environment says.
func (c *Catalog) endpoint(cfg openai.Config, id string) (model.Opened, error) {
	if id != "" {
		cfg.Model = id
	}
	bare, err := openai.New(cfg, openai.Options{Getenv: c.opt.Getenv, Transport: c.opt.Transport, Redact: c.opt.Redact, Now: c.opt.Clock.Now})
	if err != nil {
		return model.Opened{}, classed(err)
	}
	var opened model.Opened
	address, name := bare.Endpoint()
	opened.Endpoint = address
	wrapped := model.Model(&estimate{model: bare, id: name, reasoning: cfg.Reasoning == openai.ReasoningSendBack})
	if cfg.Protocol == openai.ProtocolJSON {
		opened.InText, wrapped = true, &model.JSONProtocol{Model: wrapped}
	}
	if cfg.Prices != nil {
		wrapped = &model.Cost{Model: wrapped, Prices: *cfg.Prices}
	}
	if cfg.Concurrency > 0 || cfg.RPM > 0 {
		wrapped = &model.Limit{Model: wrapped, Limiter: c.limiter(bare, cfg)}
	}
	opened.Model = &model.Retry{Model: wrapped, Clock: c.opt.Clock}
	return opened, nil
}

// bounds is a model at an endpoint with the limits that a flow sets for it. What flows declare alike is limited together;
// of two flows that set different limits, each keeps its own.
type bounds struct {
	address, id      string
	concurrency, rpm int64
}

// limiter gives the limiter that all uses of the same bounds share. It is kept for good: a request may hold it for long,
// and a second one beside it would let too much through.
func (c *Catalog) limiter(bare *openai.Model, cfg openai.Config) *model.Limiter {
	b := bounds{concurrency: cfg.Concurrency, rpm: cfg.RPM}
	b.address, b.id = bare.Endpoint()
	l, ok := c.limiters[b]
	if !ok {
		l = model.NewLimiter(b.concurrency, b.rpm, c.opt.Clock)
		c.limiters[b] = l
	}
	return l
}

// scripted makes a model that answers from a file. What its script gives as an error that can pass is tried again at once.
func (c *Catalog) scripted(file string) (model.Opened, error) {
	s, err := script.Read(file, file)
	if err != nil {
		return model.Opened{}, &model.Error{Class: model.Script, Err: err}
	}
	return model.Opened{Model: &model.Retry{Model: s, AtOnce: true, Clock: c.opt.Clock}, Leftovers: s.Leftovers}, nil
}

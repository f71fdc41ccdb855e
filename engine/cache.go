package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"flowctl/engine/model"
	"flowctl/flows/machine"
	"flowctl/store"
)

// cacheTime is how long an answer stands for the same request.
const cacheTime = 24 * time.Hour

// cache is the store's ability to keep answers, where the state wants it and the store has it.
func (x *exchange) cache() (store.Cache, bool) {
	if !x.st.state.Cache || x.open.Leftovers != nil { // a script answers by the turn, not by what it is asked
		return nil, false
	}
	c, ok := x.st.s.eng.cfg.Store.(store.Cache)
	return c, ok
}

// cacheKey names a request with all that decides its answer, but not the run that makes it.
func (x *exchange) cacheKey(p prompt) (string, error) {
	env := x.st.snap.Now.Env
	spec, _ := x.st.s.m.Models.Get(x.st.state.ModelName)
	data, err := machine.EncodeValue(struct {
		Provider, Name, ID, Endpoint string
		Config                       any
		HowTo                        string
		Messages                     []model.Message
		Tools                        []model.Tool
		Answer                       json.RawMessage
	}{spec.Provider, spec.Name, env.ModelID, x.open.Endpoint, spec.Config, p.request.HowTo, p.request.Messages, p.request.Tools, p.request.Answer})
	return blobHash(string(data)), err
}

// cached finds an earlier answer to a request. A cache that fails is none.
func (x *exchange) cached(p prompt) (model.Response, bool) {
	c, ok := x.cache()
	if !ok {
		return model.Response{}, false
	}
	key, err := x.cacheKey(p)
	var data []byte
	if err == nil {
		data, err = c.Cached(x.st.ctx, key, x.st.s.eng.now())
	}
	var resp model.Response
	if err == nil {
		err = json.Unmarshal(data, &resp)
	}
	if err != nil {
		x.cacheFailed(err)
		return model.Response{}, false
	}
	return resp, true
}

// putCached keeps a good answer for the next one who makes the same request.
func (x *exchange) putCached(p prompt, resp model.Response) {
	c, ok := x.cache()
	if !ok {
		return
	}
	key, err := x.cacheKey(p)
	if err == nil {
		var data []byte
		if data, err = machine.EncodeValue(resp); err == nil {
			now := x.st.s.eng.now()
			err = c.PutCached(context.WithoutCancel(x.st.ctx), key, x.st.s.eng.cfg.Secrets.JSON(data), now, now.Add(cacheTime))
		}
	}
	x.cacheFailed(err)
}

func (x *exchange) cacheFailed(err error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		x.st.s.eng.cfg.Log.Warn().Err(err).Str("run", x.st.s.id).Msg("the cache of answers cannot be used")
	}
}

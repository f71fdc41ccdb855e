package catalog

import (
	"context"

	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
)

// estimate counts what an answer used where its endpoint does not say: limits of tokens and cost would otherwise never be
// reached with such an endpoint.
type estimate struct {
	model     model.Model
	id        string // as the endpoint calls it
	reasoning bool   // earlier reasoning is sent back
}

// Generate implements model.Model.
func (e *estimate) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	resp, err := e.model.Generate(ctx, req)
	if err == nil && resp.Usage == (model.Usage{}) {
		c := tokens.For(e.id)
		resp.Usage.PromptTokens = tokens.Request(c, req, e.reasoning)
		resp.Usage.CompletionTokens = tokens.Message(c, resp.Message, true)
		resp.Estimated = true
	}
	return resp, err
}

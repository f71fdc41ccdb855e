package model

import (
	"context"
	"errors"
)

// Prices are what a million tokens cost, in any currency, the same for all models of a flow.
type Prices struct {
	Prompt     float64  `yaml:"prompt" flow:"required" doc:"Price of a million tokens of the request"`
	Completion float64  `yaml:"completion" flow:"required" doc:"Price of a million tokens of the answer, reasoning among them"`
	Cached     *float64 `yaml:"cached" doc:"Price of a million tokens of the request that the endpoint had in its cache; that of prompt if left out"`
}

// Of gives what a use costs.
func (p Prices) Of(u Usage) float64 {
	cached := p.Prompt
	if p.Cached != nil {
		cached = *p.Cached
	}
	hits := min(max(u.CachedTokens, 0), u.PromptTokens)
	return (float64(u.PromptTokens-hits)*p.Prompt + float64(hits)*cached + float64(u.CompletionTokens)*p.Completion) / 1e6
}

// Cost puts the cost of each answer into its response, and of one that failed into its error, where the endpoint says what
// was used.
type Cost struct {
	Model  Model
	Prices Prices
}

// Generate implements Model.
func (c *Cost) Generate(ctx context.Context, req Request) (Response, error) {
	resp, err := c.Model.Generate(ctx, req)
	if err == nil && resp.Usage != (Usage{}) {
		cost := c.Prices.Of(resp.Usage)
		resp.Cost = &cost
	}
	var failed *Error
	if errors.As(err, &failed) && failed.Usage != (Usage{}) {
		priced, cost := *failed, c.Prices.Of(failed.Usage)
		priced.Cost = &cost
		return resp, &priced
	}
	return resp, err
}

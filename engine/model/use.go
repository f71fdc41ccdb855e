package model

// Use is the recorded choice of a model that a flow declares.
type Use struct {
	Name   string // key under models
	ID     string // name at its endpoint, as it was when the choice was made; "" for the present one
	Script string // file whose answers stand for the model and its fallbacks; "" for the model itself
}

// Opened is a model in use.
type Opened struct {
	Model

	// Window is how many tokens request and answer may have together, Reply how many of them are kept free for the answer.
	// 0: what is known of the model by its name, and of its window a quarter, at most 4,096.
	Window, Reply int64

	// SendsReasoning says that the reasoning of earlier turns goes back to the endpoint.
	SendsReasoning bool

	// InText says that the model makes its calls in text, by JSONProtocol. Endpoint is where it is asked.
	InText   bool
	Endpoint string

	// Leftovers lists the answers of a script that none of a run's requests got. Nil: it is no script.
	Leftovers func(asked []Origin) []string
}

// Package model is the contract for asking a language model, and what is the same for every one of them.
//
// A Model answers one Request with one Response or one Error, whose Class says what can be done about it. The packages
// below give models: openai speaks to an endpoint, script replays a file of answers, catalog makes either for a flow that
// declares it. Around a model go wrappers, each a Model itself, in this order from the outside:
//
//	Fallback      the next model, when one is out of order
//	  Retry       another try, for what can pass
//	    Limit     how many requests at once and per minute
//	      Cost    what an answer costs
//	        JSONProtocol   tool calls as text, for models that have none of their own
//	          the model itself
//
// Nothing else tries again: not a wrapper inside another, not the models.
//
// Object and SplitReasoning read the text of an answer. They know no protocol and guess nothing: where a text can be read
// in two ways, it is an error whose words a model understands that is asked again.
//
// The package imports nothing of the project but the values of flows/machine. Read model.go first, then answer.go and
// retry.go.
package model

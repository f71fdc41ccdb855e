// Package tokens counts the tokens of texts, messages and requests before they are sent, without a network.
//
// For gives the Counter of a model. OpenAI's models are counted by their own encodings, o200k and cl100k, which are part of
// the program and read once, when the first text is counted: until then they cost neither time nor memory. Every other
// model is counted by an estimate from the kinds of characters, which is seldom below the true count and never below one
// token for each Chinese, Japanese or Korean character (estimate.go says how it counts, its test how near it comes).
//
// Nothing here is exact. What a chat format puts around a text is documented where it is added (request.go), and an endpoint
// may put in more. Correction learns from what endpoints report. The same texts give the same counts on every machine, and
// a Correction depends on nothing but the counts that went into it, so that a resumed run cuts where the unbroken one did.
//
// Cut shortens one text to a number of tokens. Window says how many tokens a model takes.
//
// The package imports the contract of engine/model and nothing else of the project. Read tokens.go first.
package tokens

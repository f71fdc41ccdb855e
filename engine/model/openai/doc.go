// Package openai asks models behind any endpoint that speaks OpenAI's chat completions.
//
// The requests are built and sent by github.com/sashabaranov/go-openai. What that library cannot say or loses, one
// http.RoundTripper adds (transport.go): a temperature of 0, the content of every message as a string, the extra fields of
// the flow; the headers of an answer, its size and its silence bounded, and the answer as it came. Answers are then read
// here, more patiently than the library does (reply.go, stream.go): endpoints differ in what they leave out, put into
// lists, give another name, or send with status 200.
//
// What an endpoint or the network does wrong becomes a *model.Error of the right class (fail.go). Nothing is tried again
// here, but for one thing: a field that the endpoint says it does not know (a JSON Schema for the answer, the request for
// usage in a stream) is left out, once, and a note of the response says so.
//
// The key is sent to the endpoint and stands nowhere else: no error, note or log holds it, also where the endpoint
// repeats it.
//
// The package imports engine/model and flows/machine of the project. Read config.go first, then openai.go.
package openai

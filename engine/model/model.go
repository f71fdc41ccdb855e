package model

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Model answers requests. A request carries everything, so one value serves all runs and goroutines.
type Model interface {
	// Generate makes one exchange. Failures are an *Error, but for the end of ctx: then the error is its cause
	// (context.Cause), which is no failure of the model and is never tried again.
	Generate(ctx context.Context, req Request) (Response, error)
}

// Role says who speaks in a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// FinishTool is the name of the reserved tool by which a model that has tools gives the answer object of its state.
const FinishTool = "finish"

// Request is one exchange. The message list is legal as it stands: every call has its one tool message directly behind
// the message that made it, and call ids are unique. A Model reads a request and never changes what it points to.
type Request struct {
	Messages []Message
	Tools    []Tool
	// HowTo says how to answer, in words for models that have calls of their own: it is the end of the system text, where
	// Native puts it. A protocol in text has words of its own for it.
	HowTo string
	// Answer is the JSON Schema of the whole answer, for endpoints that can hold to one; nil: any text.
	Answer json.RawMessage
	// NoSchema says that the endpoint has refused a schema before (NoteNoSchema), so that none is sent with the request.
	NoSchema    bool
	Temperature *float64 // nil: the model's own
	MaxTokens   int64    // of the answer; 0: the endpoint's own

	// Origin says which turn of which run asks. It is not sent: scripts answer by it, and logs name it.
	Origin Origin

	// Stream is given the text of the answer as it comes, from the goroutine of Generate. Text of an attempt that fails
	// is given again by the next one; Failed stands between them. Nil: nobody watches.
	Stream func(text string)

	// Failed is told of each failed attempt that another one follows, before the wait, from the goroutine of Generate.
	// The last failure is what Generate returns. Nil: nobody asks.
	Failed func(Attempt)
}

// Origin is the place of a request in its run.
type Origin struct {
	Run, State  string
	Visit, Turn int64 // from 1; Turn counts the requests of the step
	Attempt     int64 // from 1: Retry counts the tries of one request; 0 where nobody counts
}

// Attempt is one failed try of a request that is tried again.
type Attempt struct {
	Model  string        // that failed, where it is another than the one that was asked
	Number int64         // from 1
	Err    *Error        // why it failed
	Wait   time.Duration // until the next try
	Next   string        // the model that is asked next, where it is another one
}

// Native gives the messages of a request as a model with calls of its own is sent them.
func (r Request) Native() []Message {
	if r.HowTo == "" {
		return r.Messages
	}
	return withInstructions(slices.Clone(r.Messages), r.HowTo)
}

// Message is one message of a request or, from an assistant, of a response.
type Message struct {
	Role      Role
	Text      string
	Reasoning string // what the endpoint gave beside the text, kept verbatim; only some endpoints want it back
	Calls     []Call // of an assistant
	CallID    string // of a tool message: the call that it answers
}

// Call is a tool call as a model made it. Args is the text as it came, which need not be JSON; "" stands for no
// arguments. In a response the id is the endpoint's, which may be empty or stand there twice.
type Call struct {
	ID, Name string
	Args     string
}

// Tool is a tool as a model is told of it. Parameters is the JSON Schema of an object.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// Finish says why an answer ended.
type Finish string

// The reasons. The presence of calls counts, not what the endpoint says of them.
const (
	Stop   Finish = "stop"
	Length Finish = "length" // cut: nothing of it may run
)

// NoteNoSchema is the note of a response whose endpoint refused the schema of the answer: the request was sent a second
// time without. Whoever reads it sets Request.NoSchema from then on, and saves the refused try.
const NoteNoSchema = "the endpoint refused a JSON Schema for the answer; the request was sent again without it"

// Response is an answer.
type Response struct {
	Message Message
	Finish  Finish
	Usage   Usage
	Cost    *float64 // in the currency of the model's prices; nil where there are none, or no usage is known
	Model   string   // as the endpoint names it
	// Notes say what did not go as asked for, such as a schema that the endpoint did not take, for the run's history.
	Notes []string
	// Thought is why the model gives its final answer, where its protocol asks for that apart from the text. See Why.
	Thought string
	// Aloud says that Message.Reasoning stood in the text of the answer, so that no endpoint wants it back.
	Aloud bool
	// By names the model that answered, where it is another than the one that was asked; InText says that it made the answer
	// by JSONProtocol.
	By     string
	InText bool
	// Estimated says that the endpoint did not say what was used: Usage is counted here.
	Estimated bool
	// Problem says what is wrong with the form of the answer, in words for the model that is asked again; "" if nothing
	// is. Message.Text is then the answer as it came, without calls.
	Problem string
}

// Why gives the model's reason for what it does: the text beside its calls, or the thought of its final answer.
func (r Response) Why() string {
	if r.Thought == "" && len(r.Message.Calls) > 0 {
		return r.Message.Text
	}
	return r.Thought
}

// Usage is what the endpoint counts, in tokens; 0 where it does not say. CachedTokens are part of PromptTokens,
// ReasoningTokens of CompletionTokens.
type Usage struct {
	PromptTokens, CompletionTokens, CachedTokens, ReasoningTokens int64
}

// Class tells errors apart by what can be done about them.
type Class string

// The classes of errors.
const (
	Authentication Class = "authentication" // the key is missing, wrong, or may not do this
	Quota          Class = "quota"          // the account has nothing left; waiting does not help
	Rate           Class = "rate"           // too much at once; waiting helps
	BadRequest     Class = "bad_request"    // the endpoint does not take this request, now or later
	Server         Class = "server"         // the endpoint is out of order
	Network        Class = "network"        // it was not reached, or did not answer in time
	Blocked        Class = "blocked"        // the provider refused to answer this
	Malformed      Class = "malformed"      // the endpoint gave what is no answer
	Script         Class = "script"         // a script has no answer for the request
)

// Classes lists the classes of errors.
func Classes() []Class {
	return []Class{Authentication, Quota, Rate, BadRequest, Server, Network, Blocked, Malformed, Script}
}

// Error is a failed exchange.
type Error struct {
	Class      Class
	Status     int           // of HTTP, 0 if there was none
	RetryAfter time.Duration // as the endpoint asks, 0 if it does not
	Err        error         // what happened, for people; never with a key

	// Until is when the endpoint wants to be asked again, where that is later than anybody waits for; else zero.
	Until time.Time
	// Usage is what the failed exchange has used all the same, as far as the endpoint says, and Cost what that costs; ID is how
	// it calls the model. By names the model that failed, where it is another than the one that was asked.
	Usage  Usage
	Cost   *float64
	ID, By string
	InText bool // the request was put as JSONProtocol puts it
	// Resting says that nothing was sent: the model is left alone, since it failed before.
	Resting bool
	// Attempts is how often the request was tried by Retry, so that nothing around it tries again; 0: not counted.
	Attempts int64
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Passing says whether the same request may succeed later.
func (e *Error) Passing() bool {
	return e.Class == Rate || e.Class == Server || e.Class == Network
}

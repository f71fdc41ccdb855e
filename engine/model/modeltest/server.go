package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Options say how a server behaves. The zero value is strict in everything that most endpoints are strict in.
type Options struct {
	// Answer makes the reply to a request, from several goroutines at once. Nil: replies come from the queue (Push).
	Answer func(Request) Reply
	// CallsWithoutTools allows tool calls in the history of a request that offers no tools.
	CallsWithoutTools bool
	// Reasoning is what the endpoint wants of reasoning_content in the history.
	Reasoning Reasoning
	// NoSchema refuses requests with a response_format of type json_schema, NoUsage those with stream_options.
	NoSchema, NoUsage bool
}

// Reasoning is a rule for reasoning_content in a history.
type Reasoning string

// The rules. The zero value takes it or leaves it.
const (
	ReasoningRequired  Reasoning = "required"  // each assistant message with calls carries back what came with it
	ReasoningForbidden Reasoning = "forbidden" // none does
)

// Request is a request as it came.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte // byte for byte
	Chat         Chat   // what the body says
	Refused      string // why it was answered with 400; "" if it was taken
}

// Server is an endpoint at a local address. It is safe for concurrent use.
type Server struct {
	// URL is the base URL, which ends in /v1.
	URL string

	opt  Options
	http *httptest.Server

	mu       sync.Mutex
	queue    []Reply
	requests []Request
	reasons  map[string]bool // reasoning that this server has given
	ended    chan struct{}   // closed by Close: stalled replies end
}

// New starts a server. The caller closes it.
func New(opt Options) *Server {
	s := &Server{opt: opt, reasons: map[string]bool{}, ended: make(chan struct{})}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL + "/v1"
	return s
}

// Close ends stalled replies and the server.
func (s *Server) Close() {
	close(s.ended)
	s.http.Close()
}

// Push adds replies to the queue.
func (s *Server) Push(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, replies...)
}

// Left gives the number of replies that nobody has asked for yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Requests gives all requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refused gives the reasons of all refusals so far. A history that is always legal leaves none.
func (s *Server) Refused() []string {
	var out []string
	for _, r := range s.Requests() {
		if r.Refused != "" {
			out = append(out, r.Refused)
		}
	}
	return out
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		req.Refused = fmt.Sprintf("there is no %s %s here", r.Method, r.URL.Path)
	} else if req.Chat, err = parse(body); err != nil {
		req.Refused = err.Error()
	} else {
		req.Refused = s.check(req.Chat)
	}
	reply := s.take(req)
	reply.write(w, r, req.Chat, s.ended)
}

// take keeps a request and finds its reply. Those to refused requests stay in the queue.
func (s *Server) take(req Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	switch {
	case req.Refused != "":
		return Reply{Status: http.StatusBadRequest, Body: errorBody(req.Refused)}
	case s.opt.Answer != nil:
		s.mu.Unlock()
		reply := s.opt.Answer(req)
		s.mu.Lock()
		s.reasons[reply.Reasoning] = true
		return reply
	case len(s.queue) == 0:
		return Reply{Status: http.StatusBadRequest, Body: errorBody("the test has no reply for this request")}
	}
	reply := s.queue[0]
	s.queue = s.queue[1:]
	s.reasons[reply.Reasoning] = true
	return reply
}

func errorBody(message string) string {
	body, _ := json.Marshal(map[string]map[string]string{"error": {"message": message, "type": "invalid_request_error"}})
	return string(body)
}

package tool

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"flowctl/flows/machine"
)

// When a tool is left alone, and for how long.
const (
	breakAfter = 5                // unavailable results in a row
	breakRest  = 30 * time.Second // until one call may try again
)

// Breakers leave tools alone that are out of order: after 5 calls in a row that were unavailable to the last try nobody calls
// the tool for 30 s, then one call tries whether it works again. They belong to a process, serve all of its runs, and never
// stand in a history. The zero value is ready; it is safe for concurrent use.
type Breakers struct {
	mu    sync.Mutex
	byKey map[string]*breaker
}

// breaker is the breaker of one tool.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[[]Outcome]
	mu      sync.Mutex
	until   time.Time // when it was last opened: the end of its rest
}

// errOutOfOrder and errNoWord tell a circuit how a call went. What was cut off by its caller says nothing about the tool.
var (
	errOutOfOrder = errors.New("the tool is out of order")
	errNoWord     = errors.New("the call was cut off")
)

// do makes a request of one tool unless the tool is left alone. A request counts once, however many calls are in it.
func (b *Breakers) do(jobs []Job, request func() []Outcome) []Outcome {
	br := b.breaker(jobs[0].Breaker)
	var made []Outcome // whatever the circuit gives back beside an error is lost
	_, err := br.circuit.Execute(func() ([]Outcome, error) {
		made = request()
		return made, wordOf(made)
	})
	if made != nil {
		return made
	}
	left := Outcome{Result: Result{Status: Unavailable, Problem: machine.Problem{Kind: string(Unavailable),
		Message: br.says(jobs[0].Prepared.Tool.Spec.Name, err)}}}
	return slices.Repeat([]Outcome{left}, len(jobs))
}

// wordOf says what a request tells of its tool: one call that got through is enough for it to be in order.
func wordOf(outcomes []Outcome) error {
	word := errNoWord
	for _, out := range outcomes {
		switch {
		case out.Result.Status == Unavailable, out.Result.Status == Unknown: // no answer is no better than none at all
			word = errOutOfOrder
		case out.Result.Problem.Kind != KindCancelled:
			return nil
		}
	}
	return word
}

func (b *Breakers) breaker(key string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br, ok := b.byKey[key]; ok {
		return br
	}
	br := &breaker{}
	br.circuit = gobreaker.NewCircuitBreaker[[]Outcome](gobreaker.Settings{
		Name: key, MaxRequests: 1, Timeout: breakRest,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNoWord) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			br.mu.Lock()
			defer br.mu.Unlock()
			if to == gobreaker.StateOpen {
				br.until = time.Now().Add(breakRest)
			}
		},
	})
	if b.byKey == nil {
		b.byKey = map[string]*breaker{}
	}
	b.byKey[key] = br
	return br
}

func (br *breaker) says(name string, err error) string {
	if errors.Is(err, gobreaker.ErrTooManyRequests) {
		return fmt.Sprintf("%s was out of order, and another call is trying just now whether it works again", name)
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	return fmt.Sprintf("%s was out of order %d times in a row and is left alone until %s", name, breakAfter, br.until.UTC().Format(time.RFC3339))
}

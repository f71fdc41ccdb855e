package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
)

// failing is a model that fails.
type failing struct{ err model.Error }

func (m failing) Generate(context.Context, model.Request) (model.Response, error) {
	err := m.err
	return model.Response{}, &err
}

// The ways in which a model cannot be called.
var (
	outOfOrder = failing{model.Error{Class: model.Server, Attempts: 5, Err: errors.New("it is down")}}
	keyless    = failing{model.Error{Class: model.Authentication, Err: errors.New("LLM_API_KEY is not set")}}
)

// A key that is gone when a run is taken up after an outage does not lead a handler another way: not to the human, and not to a
// past that is not its own. With the key it goes on where it was.
func TestAKeyThatIsGoneAfterAnOutage(t *testing.T) {
	for name, test := range map[string]struct {
		world  func() *world
		inputs string
		path   string
	}{
		"collect": {func() *world { return withModel(t, extracted("order_id: A1001, amount: 4")) }, `{"message": "a handful of the usual"}`, "details check"},
		"intent": {func() *world {
			return intentWorld(t, true, true).scripted("{state: understand, answer: {intent: refund}}")
		},
			`{"message": "hm"}`, "understand done"},
		"plan": {func() *world { return draftWorld(t, draft("x", `{tool: lookup, args: {id: A1}}`)) }, `{}`, "propose"},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.world()
			w.models.model = outOfOrder
			w.start(test.inputs).status("stopped outage")
			w.model, w.models.model = machine.ModelMissing, keyless
			for range 2 {
				w.restart()
				w.advance().status("stopped no_key")
				if !strings.Contains(w.snap.Stop.Message, "LLM_API_KEY") || len(w.snap.Pending) > 0 {
					t.Errorf("stop says %q, pending %+v", w.snap.Stop.Message, w.snap.Pending)
				}
			}
			w.model, w.models.model = machine.ModelReady, nil
			w.restart()
			w.advance().path(test.path)
			if w.snap.Stop != nil {
				t.Errorf("stopped for %+v", w.snap.Stop)
			}
		})
	}
}

// huge is a text of 200 kB whose ends can be told.
func huge() string { return "FIRST-WORDS " + strings.Repeat("and so on ", 20_000) + " LAST-WORDS" }

// wantWhole wants the newest request to fit the window of a model that nothing is known of, its task to stand there whole, and
// what it is about to be cut in its middle.
func (w *world) wantWhole(task ...string) {
	w.t.Helper()
	evs, err := w.e.History(context.Background(), "run")
	if err != nil {
		w.t.Fatal(err)
	}
	var made *history.ModelCalled
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ModelCalled); ok {
			made = d
		}
	}
	const reply = tokens.DefaultWindow / 4
	if made == nil || made.Counted > tokens.DefaultWindow-reply || made.Counted < tokens.DefaultWindow/8 {
		w.t.Fatalf("the request is %+v, with room for %d tokens", made, tokens.DefaultWindow-reply)
	}
	text := w.task(len(w.models.sent) - 1)
	for _, want := range task {
		if !strings.Contains(text, want) {
			w.t.Errorf("%q is missing in the task\n%s", want, text)
		}
	}
	for _, want := range []string{"FIRST-WORDS and so on", "tokens left out", "and so on  LAST-WORDS"} {
		if !strings.Contains(text, want) {
			w.t.Errorf("%q is missing of what the task is about:\n%s", want, text)
		}
	}
}

// However much a human writes, or a plan holds: the model is asked, and what it is to do stands whole in the request.
func TestWhatIsTooLongForAModel(t *testing.T) {
	input := fmt.Sprintf(`{"message": %q}`, huge())
	t.Run("intent", func(t *testing.T) {
		w := intentWorld(t, true, false).scripted("{state: understand, answer: {intent: refund}}").start(input).path("understand done")
		w.wantWhole("Decide which of these intents", "refund: Wants money back", "exchange: Wants another article", "question: Asks something", words{}.onlyData())
	})
	t.Run("collect", func(t *testing.T) {
		w := withModel(t, extracted("order_id: null, amount: null"), `{state: details, text: They said hello.}`, // a summary of what has no room
			extracted("order_id: A1001, amount: 4")).start(`{"message": "hello"}`)
		w.say(huge()).asks("4 of A1001?")
		w.wantWhole("Read the values of the fields", "order_id", "amount", "The human was asked for: order_id, amount.")
	})
	t.Run("plan", func(t *testing.T) {
		long := draft("x", fmt.Sprintf(`{description: %q}`, huge()))
		w := draftWorld(t, long, onVisit(2, draft("y", `{tool: lookup, args: {id: A1}}`))).start(`{}`).no("")
		w.asks("The plan: y\n1. lookup: id = A1, limit = 5\nShall I go ahead?")
		w.wantWhole("There is a plan so far.", "- lookup: Look up an order.", "- refund: Refund an order.", "Goal: Refund A1001", "The plan so far: ")
	})
}

// What a human says of a plan reaches the model that makes the next one, also where the flow keeps it nowhere and the view
// shows nothing; a bare no tells that the plan was rejected.
func TestARejectionReachesTheNextPlan(t *testing.T) {
	flow := strings.NewReplacer("    view: {vars: [remark]}\n", "", ", comment: remark", "", "    MODEL\n", "",
		"  waste: {handler: call, with: {tool: other}, transitions: {else: done}}\n", "").Replace(draftFlow)
	if strings.Contains(flow, "comment:") || strings.Contains(flow, "view:") {
		t.Fatal("the flow keeps what is said")
	}
	w := newWorld(t, flow).scripted(draft("x", `{tool: refund, args: {id: A1}}`), onVisit(2, draft("y", `{tool: lookup, args: {id: A1}}`)),
		onVisit(3, draft("z", `{tool: lookup, args: {id: A1}}`)), onVisit(4, draft("zz", `{tool: lookup, args: {id: A1}}`)))
	const told = `The human rejected a plan and said: `
	w.start(`{}`).no("only look it up")
	if got := w.task(1); strings.Count(got, told) != 1 || !strings.Contains(got, told+`"only look it up"`) {
		t.Errorf("the second task is %q", got)
	}
	w.no("")
	if got := w.task(2); strings.Count(got, told) != 2 || !strings.Contains(got, told+`"only look it up"`+"\n"+told+`"no"`) {
		t.Errorf("the third task is %q", got)
	}
	w.no("and be quick")
	first, second := strings.Index(w.task(3), told+`"only look it up"`), strings.Index(w.task(3), told+`"and be quick"`)
	if first < 0 || second < first {
		t.Errorf("the fourth task is %q", w.task(3))
	}
	w.status("waiting").asked(4)
}

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// emptyAccount is what an endpoint says whose account has nothing left: nobody waits for it.
var emptyAccount = modeltest.Reply{Status: 429, Body: `{"error":{"code":"insufficient_quota","message":"nothing left"}}`}

// answered is an endpoint of a chain, which keeps what it was sent and has answered.
type answered struct {
	*modeltest.Server
	cfg openai.Config
	opt modeltest.Options

	mu     sync.Mutex
	queue  []modeltest.Reply
	bodies []string // of the requests that were answered
}

func newAnswered(t testing.TB, cfg openai.Config, opt modeltest.Options, replies ...modeltest.Reply) *answered {
	t.Helper()
	a := &answered{cfg: cfg, opt: opt, queue: replies}
	live := opt
	live.Answer = func(req modeltest.Request) modeltest.Reply {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.queue) == 0 {
			return modeltest.Reply{Status: 400, Body: `{"error":{"message":"the test has no reply for this request"}}`}
		}
		reply := a.queue[0]
		a.queue = a.queue[1:]
		if reply.Status == 0 {
			a.bodies = append(a.bodies, string(req.Body))
		}
		return spoken(req, reply)
	}
	a.Server = serve(t, live)
	a.cfg.BaseURL = a.URL
	return a
}

// mirrored sends requests to an endpoint like this one and gives the bodies that came there.
func (a *answered) mirrored(t testing.TB, requests []model.Request) []string {
	t.Helper()
	var came []string
	opt := a.opt
	opt.Answer = func(req modeltest.Request) modeltest.Reply {
		came = append(came, string(req.Body))
		return modeltest.Reply{Text: "ok"}
	}
	mirror := serve(t, opt)
	cfg := a.cfg
	cfg.BaseURL = mirror.URL
	to, err := openai.New(cfg, openai.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range requests {
		if _, err := to.Generate(context.Background(), req); err != nil {
			t.Fatal(err)
		}
	}
	return came
}

// fallbackRun is a run of several turns whose model has no account in every other one, so that a spare one answers, which
// makes its calls in text and has an endpoint that takes no schemas.
func fallbackRun(t *testing.T) (e *engine.Engine, snap *history.Snapshot, first, spare *answered) {
	t.Helper()
	use := func(name, args string, prompt int64) modeltest.Reply {
		reply := calls("I go on.", modeltest.Call{ID: "a", Name: name, Args: args})
		reply.Prompt, reply.Output = prompt, 10
		return reply
	}
	first = newAnswered(t, openai.Config{Model: "test-1", Fallback: []string{"spare"}}, modeltest.Options{},
		use("look", arg("a"), 5000), emptyAccount, use("look", arg("c"), 5000), emptyAccount, emptyAccount)
	spare = newAnswered(t, openai.Config{Model: "test-2", Protocol: openai.ProtocolJSON}, modeltest.Options{NoSchema: true},
		modeltest.Reply{Status: 503, Body: "down"}, use("look", arg("b"), 3000), use("finish", `{"answr":"x"}`, 3000), use("finish", `{"answer":"x"}`, 3000))
	r := catalogRig(t, talkFlow(), nil, behind("default", first.cfg), behind("spare", spare.cfg))
	r.tools["look"] = func(context.Context, tool.Call) (machine.Value, error) {
		r.clock.advance(10 * time.Minute) // so that the account may have been filled
		return "seen", nil
	}
	task := finishing
	task.Text = "Do all of it. " + strings.Repeat("Take the numbers from the list, and leave none of them out. ", 60)
	r.on("start", thinking(task, nil))
	e = r.engine("w")
	snap = r.run(e)
	wantStatus(t, snap, store.Succeeded)
	return e, snap, first, spare
}

// Who answered is recorded, and what goes by a model is booked on that one.
func TestAFallbackAnswersUnderItsName(t *testing.T) {
	e, snap, _, _ := fallbackRun(t)
	var by []string
	for _, d := range all[*history.ModelCalled](t, e) {
		by = append(by, fmt.Sprintf("%s by %q %s", d.Name, d.By, d.Model))
	}
	if want := []string{`default by "" test-1`, `default by "spare" test-2`, `default by "" test-1`, `default by "spare" test-2`, `default by "spare" test-2`}; !slices.Equal(by, want) {
		t.Errorf("answers %q, want %q", by, want)
	}
	var failed []string
	for _, d := range all[*history.AttemptFailed](t, e) {
		failed = append(failed, fmt.Sprintf("%s by %q %s", d.Model, d.By, d.Problem.Kind))
	}
	// The last time the first model rests: nobody asked it.
	if want := []string{`default by "" quota`, `default by "spare" server`, `default by "" quota`}; !slices.Equal(failed, want) {
		t.Errorf("attempts %q, want %q", failed, want)
	}
	if !slices.Equal(snap.NoSchema, []string{"spare"}) {
		t.Errorf("no schemas are taken by %q", snap.NoSchema)
	}
	reports := map[string]int{}
	for name, c := range snap.Corrections {
		for _, ratio := range c.Recent {
			if ratio > 0 {
				reports[name]++
			}
		}
	}
	if reports["default"] != 2 || reports["spare"] != 3 || len(reports) != 2 {
		t.Errorf("reports of usage are booked on %v", reports)
	}
}

// What a chain was sent can be put together again for whoever answered.
func TestWhatAFallbackWasSent(t *testing.T) {
	e, _, first, spare := fallbackRun(t)
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	sent := map[*answered][]model.Request{}
	for _, ev := range evs {
		d, ok := ev.Data.(*history.ModelCalled)
		if !ok {
			continue
		}
		s, err := e.Sent(context.Background(), "run", ev.Seq)
		if err != nil {
			t.Fatal(err)
		}
		to := first
		if d.By != "" {
			to = spare
		}
		sent[to] = append(sent[to], s.Request)
	}
	for name, a := range map[string]*answered{"the first": first, "the spare": spare} {
		if problem := sameBodies(a.bodies, a.mirrored(t, sent[a])); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if !strings.Contains(spare.bodies[0], `\"action\": \"use_tool\"`) || strings.Contains(first.bodies[1], `\"action\"`) {
		t.Errorf("the spare was sent\n%s\nthe first\n%s", spare.bodies[0], first.bodies[1])
	}
}

// What another model has answered is not kept for this one.
func TestCacheKeepsNoAnswerOfAFallback(t *testing.T) {
	f := talkFlow()
	f.at("start").Cache = true
	first := serve(t, modeltest.Options{}, emptyAccount, modeltest.Reply{Text: "from the first"})
	spare := serve(t, modeltest.Options{}, modeltest.Reply{Text: "from the spare"})
	r := catalogRig(t, f, nil, behind("default", openai.Config{Model: "test-1", BaseURL: first.URL, Fallback: []string{"spare"}}),
		behind("spare", openai.Config{Model: "test-2", BaseURL: spare.URL}))
	for _, test := range []struct {
		id, want string
		cached   bool
	}{{"one", "from the spare", false}, {"two", "from the first", false}, {"three", "from the first", true}} {
		e := r.engine(test.id)
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: test.id}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Advance(context.Background(), test.id); err != nil {
			t.Fatal(err)
		}
		if made := called(t, e, test.id); len(made) != 1 || made[0].Text != test.want || made[0].Cached != test.cached {
			t.Errorf("%s: %s, want %s, cached %v", test.id, texts(made), test.want, test.cached)
		}
	}
}

// A refusal by a model that stands in for another is booked on that one, with what it cost.
func TestABlockedAnswerOfAFallback(t *testing.T) {
	first := serve(t, modeltest.Options{}, emptyAccount)
	spare := serve(t, modeltest.Options{}, modeltest.Reply{Body: `{"model":"test-2","usage":{"prompt_tokens":700,"completion_tokens":5},"choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"no"},"finish_reason":"content_filter"}]}`})
	r := catalogRig(t, talkFlow(), nil, behind("default", openai.Config{Model: "test-1", BaseURL: first.URL, Fallback: []string{"spare"}}),
		behind("spare", openai.Config{Model: "test-2", BaseURL: spare.URL, Prices: &model.Prices{Prompt: 1000, Completion: 2000}}))
	long := doIt
	long.Text = strings.Repeat("Look at it. ", 100) // enough for a correction
	r.on("start", thinking(long, nil))
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	d := all[*history.ModelCalled](t, e)[0]
	if d.Problem.Kind != "blocked" || d.By != "spare" || d.Model != "test-2" || d.Cost == nil || *d.Cost != 0.71 {
		t.Errorf("stored as %+v", *d)
	}
	if _, ok := snap.Corrections["spare"]; !ok || len(snap.Corrections) != 1 {
		t.Errorf("its report is booked on %v", snap.Corrections)
	}
	if c := snap.Spent.Usage.Cost; c == nil || *c != 0.71 {
		t.Errorf("the run has cost %v", c)
	}
}

// A request that one that stands in for another does not take is told under its name too.
func TestARequestThatAFallbackDoesNotTake(t *testing.T) {
	first := serve(t, modeltest.Options{}, emptyAccount)
	spare := serve(t, modeltest.Options{}, modeltest.Reply{Status: 404, Body: `{"error":{"message":"no such model"}}`})
	r := catalogRig(t, talkFlow(), nil, behind("default", openai.Config{Model: "test-1", BaseURL: first.URL, Fallback: []string{"spare"}}),
		behind("spare", openai.Config{Model: "test-2", BaseURL: spare.URL}))
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeOutage, "no such model")
	var failed []string
	for _, d := range all[*history.AttemptFailed](t, e) {
		failed = append(failed, fmt.Sprintf("%s by %q %s", d.Model, d.By, d.Problem.Kind))
	}
	if want := []string{`default by "" quota`, `default by "spare" bad_request`}; !slices.Equal(failed, want) {
		t.Errorf("attempts %q, want %q", failed, want)
	}
}

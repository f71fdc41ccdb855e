package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/flows/machine"
	"flowctl/store"
)

// header is a header with one line.
func header(name, value string) map[string]string { return map[string]string{name: value} }

// What can pass is tried again after a wait, each try an event; what cannot stops the run at once. Either way the run goes
// on from there.
func TestTriesOfAModel(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply modeltest.Reply
		tries int
		wait  time.Duration // at least, between two tries
		class string
	}{
		{"bad request", modeltest.Reply{Status: 400, Body: `{"error":{"message":"no","type":"invalid_request_error"}}`}, 1, 0, "bad_request"},
		{"wrong key", modeltest.Reply{Status: 401, Body: `{"error":{"message":"no"}}`}, 1, 0, "authentication"},
		{"no quota", modeltest.Reply{Status: 429, Body: `{"error":{"message":"no","code":"insufficient_quota"}}`}, 1, 0, "quota"},
		{"rate", modeltest.Reply{Status: 429, Body: `{}`, Header: header("Retry-After", "2")}, 5, 2 * time.Second, "rate"},
		{"rate with a date", modeltest.Reply{Status: 429, Body: `{}`, Header: map[string]string{"Date": "Fri, 02 Jan 2026 10:00:00 GMT",
			"Retry-After": "Fri, 02 Jan 2026 10:00:03 GMT"}}, 5, 3 * time.Second, "rate"},
		{"conflict", modeltest.Reply{Status: 409, Body: `{}`}, 5, 0, "server"},
		{"slow", modeltest.Reply{Status: 408, Body: `{}`}, 5, 0, "network"},
		{"out of order", modeltest.Reply{Status: 503, Body: "down"}, 5, 0, "server"},
		{"cut", modeltest.Reply{Text: "half", Cut: true, Header: header("Content-Length", "100000")}, 5, 0, "network"},
		{"error in a success", modeltest.Reply{Body: `{"error":{"message":"upstream","code":502}}`}, 5, 0, "server"},
		{"no choices", modeltest.Reply{Body: `{"choices":[]}`}, 1, 0, "malformed"},
		{"null choices", modeltest.Reply{Body: `{"choices":null}`}, 1, 0, "malformed"},
		{"no message", modeltest.Reply{Body: `{"choices":[{"message":null}]}`}, 1, 0, "malformed"},
		{"a page", modeltest.Reply{Body: "<html>Welcome</html>"}, 1, 0, "malformed"},
		{"nothing", modeltest.Reply{Body: "\n\n"}, 1, 0, "malformed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				for range test.tries {
					x.push(test.reply)
				}
				got := x.act(doIt)
				e := x.engine("w")
				wantStop(t, x.run(e), history.CodeOutage, "model default", "flowctl resume run")
				failed := all[*history.AttemptFailed](t, e)
				if len(failed) != test.tries || len(x.server.Requests()) != test.tries {
					t.Fatalf("%d tries are recorded of %d, want %d", len(failed), len(x.server.Requests()), test.tries)
				}
				for i, d := range failed {
					last := i == test.tries-1
					if d.Problem.Kind != test.class || d.Attempt != int64(i+1) || d.Turn != 1 || d.Model != "default" || (d.WaitMS == 0) != last {
						t.Errorf("try %d is recorded as %+v", i+1, d)
					}
					if wait := time.Duration(d.WaitMS) * time.Millisecond; !last && (wait < test.wait || wait != x.waits[i]) {
						t.Errorf("try %d says that it waits %v, and waited %v, want %v at least", i+1, wait, x.waits[i], test.wait)
					}
				}
				x.push(test.reply, modeltest.Reply{Body: "\n\n\n" + goodBody})
				if test.tries == 1 {
					wantStop(t, advance(t, e), history.CodeOutage)
				}
				snap := advance(t, e)
				wantStatus(t, snap, store.Succeeded)
				if got.Text == "" || snap.Spent.Usage.ModelCalls != 1 {
					t.Errorf("the answer is %+v, with %d calls counted", got, snap.Spent.Usage.ModelCalls)
				}
				x.wantSame(e, "run")
			})
		})
	}
}

// goodBody is an answer in either protocol of a state with tools.
const goodBody = `{"model":"test-1","choices":[{"index":0,"message":{"role":"assistant","content":"{\"thought\":\"so\",\"action\":\"finish\",\"final_answer\":\"Done.\"}"},"finish_reason":"stop"}]}`

// Nobody waits longer than a minute: the run stops and says until when.
func TestALongWaitStopsTheRun(t *testing.T) {
	x := newDialog(t, talkFlow(), modelSetup{})
	x.push(modeltest.Reply{Status: 429, Body: `{}`, Header: header("Retry-After", "61")}, modeltest.Reply{Text: "Done."})
	x.act(doIt)
	e := x.engine("w")
	wantStop(t, x.run(e), history.CodeOutage, "until 2026-01-02T03:05:0", "flowctl resume run")
	if len(x.waits) > 0 {
		t.Errorf("waited %v", x.waits)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
}

// A process that dies between two tries leaves nothing that a later one would answer from.
func TestDeathBetweenTries(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		for range 20 {
			x.push(modeltest.Reply{Status: 503, Body: "down"})
		}
		x.act(doIt)
		x.dieBefore(3) // the second try that failed
		x.queue = []modeltest.Reply{{Status: 503, Body: "down"}, spoken(x.request(0), modeltest.Reply{Text: "Done."})}
		e := x.heir("other")
		wantStatus(t, advance(t, e), store.Succeeded)
		failed := all[*history.AttemptFailed](t, e)
		if len(failed) != 2 || failed[0].Attempt != 1 || failed[1].Attempt != 1 {
			t.Errorf("%d failed tries are recorded, want one of each process: %+v", len(failed), failed)
		}
		x.wantSame(e, "run")
	})
}

// An outage goes by the state's line for error, where it has one.
func TestAnOutageGoesByTheLineForError(t *testing.T) {
	f := talkFlow().state("other", "next", "end")
	f.at("start").Transitions[machine.Error] = []machine.Branch{{To: "other"}}
	x := newDialog(t, f, modelSetup{})
	x.push(modeltest.Reply{Status: 401, Body: `{"error":{"message":"no"}}`})
	x.act(doIt)
	x.on("other", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if last := step.Last(); last.Outcome != machine.Error || last.Error.Kind != "outage" {
			t.Errorf("last is %+v", last)
		}
		return "next", nil
	})
	wantStatus(t, x.run(x.engine("w")), store.Succeeded)
}

// The run's limits stop it before a call, and raised they let it go on.
func TestLimitsOfModels(t *testing.T) {
	for _, test := range []struct {
		limit string
		set   func(*machine.Limits)
		by    float64
	}{
		{"model_calls", func(l *machine.Limits) { l.ModelCalls = 2 }, 5},
		{"tokens", func(l *machine.Limits) { l.Tokens = 25 }, 100},
		{"cost", func(l *machine.Limits) { l.Cost = 0.05 }, 0.5},
	} {
		t.Run(test.limit, func(t *testing.T) {
			for _, w := range []wire{native, inText} {
				f := talkFlow()
				test.set(&f.m.Limits)
				x := newDialog(t, f, modelSetup{wire: w, prices: &model.Prices{Prompt: 2000, Completion: 5000}})
				look := calls("", modeltest.Call{ID: "a", Name: "look", Args: arg("a")})
				look.Prompt, look.Output = 10, 3
				x.push(look, look, modeltest.Reply{Text: "Done.", Prompt: 10, Output: 3})
				x.act(doIt)
				e := x.engine("w")
				wantStop(t, x.run(e), history.CodeLimit, test.limit, "--raise "+test.limit+"=")
				if n := len(x.server.Requests()); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
				wantStop(t, advance(t, e), history.CodeLimit, test.limit)
				raise(t, e, test.limit, test.by)
				snap := advance(t, e)
				wantStatus(t, snap, store.Succeeded)
				if u := snap.Spent.Usage; u.ModelCalls != 3 || u.PromptTokens != 30 || u.CompletionTokens != 9 || u.Cost == nil || *u.Cost < 0.104 || *u.Cost > 0.106 {
					t.Errorf("usage %+v", u)
				}
				x.wantRan("look a", "look a")
			}
		})
	}
}

// Answers that will not do count as well.
func TestAskingAgainCounts(t *testing.T) {
	f := talkFlow()
	f.m.Limits.ModelCalls = 2
	x := newDialog(t, f, modelSetup{})
	x.push(modeltest.Reply{}, modeltest.Reply{}, modeltest.Reply{Text: "Done."})
	x.act(doIt)
	e := x.engine("w")
	wantStop(t, x.run(e), history.CodeLimit, "model_calls: 2")
	raise(t, e, "model_calls", 1)
	wantStatus(t, advance(t, x.heir("other")), store.Succeeded)
	x.wantSame(e, "run")
}

// hanging is a run whose model has begun an answer and then says nothing.
func hanging(t *testing.T, change func(*flow)) (x *dialog, e, other *engine.Engine, stop context.CancelFunc, end chan *history.Snapshot) {
	t.Helper()
	f := talkFlow()
	change(f)
	reached := make(chan struct{}, 10)
	hang := true
	answer := func(req modeltest.Request) modeltest.Reply {
		reached <- struct{}{}
		if hang {
			hang = false
			return modeltest.Reply{Text: "I beg", Stall: true, Header: header("Content-Length", "100000")}
		}
		return modeltest.Reply{Text: "Done."}
	}
	x = newDialog(t, f, modelSetup{server: modeltest.Options{Answer: answer}})
	x.act(doIt)
	before := x.config
	x.config = func(cfg *engine.Config) {
		before(cfg)
		cfg.Beat = time.Millisecond
	}
	e, other = x.engine("w"), x.engine("other")
	x.start(e)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	end = make(chan *history.Snapshot, 1)
	go func() {
		snap, err := e.Advance(ctx, "run")
		if err != nil {
			t.Error(err)
		}
		end <- snap
	}()
	await(t, reached, "the request")
	return x, e, other, stop, end
}

func TestCancelWhileAModelHangs(t *testing.T) {
	_, e, other, _, end := hanging(t, func(*flow) {})
	if err := other.Cancel(context.Background(), "run"); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, await(t, end, "the run"), store.Cancelled)
	if got := trace(t, e, "run"); got != "run_started start run_finished" {
		t.Errorf("history %s", got)
	}
}

func TestInterruptWhileAModelHangs(t *testing.T) {
	_, e, other, stop, end := hanging(t, func(*flow) {})
	stop()
	wantStop(t, await(t, end, "the run"), history.CodeInterrupted, "flowctl resume run")
	wantStatus(t, advance(t, other), store.Succeeded)
	if got := trace(t, e, "run"); got != "run_started start run_stopped run_resumed model_called transition end run_finished" {
		t.Errorf("history %s", got)
	}
}

func TestTimeOfAStateWhileAModelHangs(t *testing.T) {
	x, e, _, _, end := hanging(t, func(f *flow) {
		f.at("start").Limits.Time = machine.Duration(50 * time.Millisecond)
		f.at("start").Transitions[machine.Timeout] = []machine.Branch{{To: "end"}}
	})
	x.clock.advance(time.Minute)
	wantStatus(t, await(t, end, "the run"), store.Succeeded)
	if d := all[*history.Transition](t, e); len(d) != 1 || d[0].Outcome != machine.Timeout || d[0].Problem.Kind != "timeout" {
		t.Errorf("moved %+v", d)
	}
}

// An endpoint that takes no schema says so once in a run, also over a crash.
func TestAnEndpointWithoutSchemas(t *testing.T) {
	for _, w := range []wire{native, inText} {
		t.Run(string(w), func(t *testing.T) {
			x := newDialog(t, talkFlow(), modelSetup{wire: w, server: modeltest.Options{NoSchema: true}, illegal: true})
			x.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				for i, task := range []engine.Task{choosing(""), doIt, choosing("")} {
					if _, err := step.Generate(task); err != nil {
						return "", err
					}
					if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: fmt.Sprint("Well? ", i)}); err != nil {
						return "", err
					}
				}
				return "next", nil
			})
			confirm := modeltest.Reply{Text: `{"outcome":"confirm"}`}
			x.push(confirm, modeltest.Reply{Text: "Done."}, confirm)
			e := x.engine("w")
			snap := x.run(e)
			for range 3 {
				wantStatus(t, snap, store.Waiting)
				answer(t, e, engine.Reply{Ask: ids(snap), Text: "x"})
				e = x.heir(fmt.Sprint("heir", len(x.server.Requests())))
				snap = advance(t, e)
			}
			wantStatus(t, snap, store.Succeeded)
			if refused := x.server.Refused(); len(refused) != 1 || len(x.server.Requests()) != 4 {
				t.Errorf("%d of %d requests were refused, want 1 of 4: %v", len(refused), len(x.server.Requests()), refused)
			}
			made := all[*history.ModelCalled](t, e)
			if !made[0].NoSchema || made[1].NoSchema || made[2].NoSchema || len(made[0].Notes) != 1 || made[0].Request.NoSchema || !made[2].Request.NoSchema {
				t.Errorf("stored as %+v, %+v, %+v", made[0], made[1], made[2])
			}
			if system := x.request(-1).Chat.Messages[0].Text(); !strings.Contains(system, `"enum":["confirm","cancel"]`) {
				t.Errorf("the schema does not stand in the system text: %s", system)
			}
			x.wantSame(e, "run")
		})
	}
}

// Where there is no model or no key, nothing is sent and the run says what to do.
func TestAModelWithoutKey(t *testing.T) {
	x := newDialog(t, talkFlow(), modelSetup{})
	ready := machine.ModelMissing
	x.opened.ready = func() machine.ModelCase { return ready }
	x.opened.keys = []string{"LLM_API_KEY", "OPENAI_API_KEY"}
	x.push(modeltest.Reply{Text: "Done."})
	x.act(doIt)
	e := x.engine("w")
	wantStop(t, x.run(e), history.CodeNoKey, "LLM_API_KEY or OPENAI_API_KEY", "flowctl resume run")
	ready = machine.ModelReady
	wantStatus(t, advance(t, e), store.Succeeded)
	if len(x.server.Requests()) != 1 || x.request(0).Method != http.MethodPost {
		t.Errorf("%d requests", len(x.server.Requests()))
	}
}

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/catalog"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// behind declares a model behind an endpoint.
func behind(name string, cfg openai.Config) machine.ModelSpec {
	return machine.ModelSpec{Name: name, Provider: "openai", Config: &cfg}
}

// catalogRig is a rig whose models are made by a real catalog, of which each process has its own. env is what the environment
// is then.
func catalogRig(t testing.TB, f *flow, env map[string]string, models ...machine.ModelSpec) *rig {
	t.Helper()
	f.m.Models = nil
	for _, spec := range models {
		f.m.Models = append(f.m.Models, machine.Item[machine.ModelSpec]{Name: spec.Name, Value: spec})
	}
	r := newRig(t, f)
	for _, item := range f.m.Tools {
		r.tools[item.Name] = func(_ context.Context, call tool.Call) (machine.Value, error) { return call.Args["text"], nil }
	}
	r.config = func(cfg *engine.Config) {
		cfg.Models = catalog.New(catalog.Options{
			Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			Clock: model.Clock{Now: r.clock.Now, Random: func() float64 { return 0 },
				Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		})
	}
	r.on("start", thinking(doIt, nil))
	return r
}

// serve starts an endpoint for the time of a test.
func serve(t testing.TB, opt modeltest.Options, replies ...modeltest.Reply) *modeltest.Server {
	t.Helper()
	s := modeltest.New(opt)
	t.Cleanup(s.Close)
	s.Push(replies...)
	return s
}

// A run that exists goes on only by the scripts that it was started with: a real model is never asked in the place of one that
// was to be played, nor the other way round.
func TestARunIsNotTakenUpWithOtherScripts(t *testing.T) {
	x, file := scriptedDialog(t, looksOnce+"  - {state: start, turn: 2, text: Done.}\n")
	think := thinking(doIt, nil)
	x.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
		if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"}); err != nil {
			return "", err
		}
		return think(ctx, step)
	})
	e := x.engine("w")
	begin := func(id string, scripts map[string]string) (bool, error) {
		_, exists, err := e.Start(context.Background(), engine.StartRequest{Machine: x.flow, ID: id, Scripts: scripts})
		return exists, err
	}
	played := map[string]string{"default": file}
	for id, scripts := range map[string]map[string]string{"real": nil, "played": played} {
		if exists, err := begin(id, scripts); exists || err != nil {
			t.Fatalf("%s: %v, %v", id, exists, err)
		}
		before := trace(t, e, id)
		other := map[string]string{"default": filepath.Join(t.TempDir(), "other.yaml")}
		if _, err := begin(id, other); err == nil {
			t.Errorf("%s is taken up with a script of another", id)
		}
		_, err := begin(id, played)
		if id == "played" && err != nil {
			t.Errorf("the same scripts are refused: %v", err)
		}
		if id == "real" {
			wantUsage(t, err, "run real exists", "not played by these scripts", "choose another id", "flowctl resume real")
		}
		if exists, err := begin(id, nil); !exists || err != nil {
			t.Errorf("%s cannot be taken up as it is: %v", id, err)
		}
		if after := trace(t, e, id); after != before {
			t.Errorf("%s: recorded %s, before %s", id, after, before)
		}
	}
}

// A step that was on its way with a model keeps to it, also when its key is gone on a resume: a handler that would ask the
// human where there is no model must not find another past than its own.
func TestAKeyThatIsGoneAfterAnOutage(t *testing.T) {
	for _, before := range []int{0, 1} { // exchanges before the outage
		t.Run(fmt.Sprint(before, " exchanges"), func(t *testing.T) {
			server := serve(t, modeltest.Options{})
			env := map[string]string{"KEY": "sk-test-AAAA1111"}
			r := catalogRig(t, talkFlow(), env, behind("default", openai.Config{Model: "test-1", BaseURL: server.URL, APIKeyEnv: "KEY"}))
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				for range 2 {
					if step.Model() != machine.ModelReady {
						if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Then you?"}); err != nil {
							return "", err
						}
						continue
					}
					if _, err := step.Generate(engine.Task{Label: "say", Text: "Say.", Aside: true}); err != nil {
						return "", err
					}
				}
				return "next", nil
			})
			for range before {
				server.Push(modeltest.Reply{Text: "One."})
			}
			for range model.DefaultAttempts {
				server.Push(modeltest.Reply{Status: 503, Body: "down"})
			}
			e := r.engine("w")
			wantStop(t, r.run(e), history.CodeOutage)
			delete(env, "KEY")
			requests := len(server.Requests())
			for n := range 2 {
				wantStop(t, advance(t, r.heir(fmt.Sprint("heir", n))), history.CodeNoKey, "KEY", "flowctl resume run")
			}
			if n := len(server.Requests()); n != requests {
				t.Errorf("%d requests were made without a key", n-requests)
			}
			if asked := all[*history.Asked](t, e); len(asked) > 0 {
				t.Errorf("the human was asked: %+v", asked[0])
			}
			env["KEY"] = "sk-test-BBBB2222"
			for range 2 - before {
				server.Push(modeltest.Reply{Text: "Two."})
			}
			wantStatus(t, advance(t, r.heir("last")), store.Succeeded)
			if made := all[*history.ModelCalled](t, e); len(made) != 2 || server.Left() > 0 {
				t.Errorf("%d answers, %d are left", len(made), server.Left())
			}
		})
	}
}

// A resume that says more than to go on takes the model that is there now as well.
func TestResumeWithMoreTakesTheModelThatIsThereNow(t *testing.T) {
	for name, request := range map[string]func(r *rig) engine.ResumeRequest{
		"nothing": func(*rig) engine.ResumeRequest { return engine.ResumeRequest{} },
		"dir":     func(r *rig) engine.ResumeRequest { return engine.ResumeRequest{Dir: r.t.(*testing.T).TempDir()} },
		"raise":   func(*rig) engine.ResumeRequest { return engine.ResumeRequest{Raise: map[string]float64{"steps": 3}} },
		"flow": func(r *rig) engine.ResumeRequest {
			return engine.ResumeRequest{Flow: r.edited(func(f *flow) { f.at("end").Digest = "another" })}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newDialog(t, talkFlow(), modelSetup{})
			ready := machine.ModelMissing
			x.opened.ready = func() machine.ModelCase { return ready }
			for _, item := range x.flow.States {
				item.Value.Digest = "as it was"
			}
			x.push(modeltest.Reply{Text: "Done."})
			x.act(doIt)
			e := x.engine("w")
			wantStop(t, x.run(e), history.CodeNoKey)
			ready = machine.ModelReady
			if err := e.Resume(context.Background(), "run", request(x.rig)); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, advance(t, e), store.Succeeded)
			if len(x.server.Requests()) != 1 {
				t.Errorf("%d requests", len(x.server.Requests()))
			}
		})
	}
}

// recordScript lets a model of its own do the work of bigResults, and gives what it said as a script.
func recordScript(t *testing.T) string {
	t.Helper()
	m := &talker{}
	script := "answers:\n"
	work := working(8, func(model.Request) model.Response { return saying("SUMMARY: all was looked at.") })
	m.answer = func(req model.Request) (model.Response, error) {
		resp, err := work(req)
		script += fmt.Sprintf("  - {state: start, visit: 1, turn: %d, text: %s", req.Origin.Turn, quoted(resp.Message.Text))
		for _, c := range resp.Message.Calls {
			script += fmt.Sprintf(", calls: [{tool: %s, args: %s}]", c.Name, strings.Replace(c.Args, ":", ": ", 1))
		}
		script += "}\n"
		return resp, err
	}
	r := bigResults(t, m)
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	if len(all[*history.Summarised](t, e)) == 0 {
		t.Fatal("the run made no summary")
	}
	return script
}

// A summary takes a turn of the script, and is no answer that nobody asked for.
func TestAScriptWithSummariesHasNothingLeft(t *testing.T) {
	script := recordScript(t)
	for more, want := range map[string]string{"": "", "  - {state: start, visit: 1, turn: 99, text: More.}\n": "turn 99"} {
		file := filepath.Join(t.TempDir(), "script.yaml")
		write(t, file, script+more)
		r := bigResults(t, &talker{})
		r.flow.Models[0].Value.Config = &openai.Config{Model: "test-1", APIKeyEnv: "NO_SUCH_KEY", Window: 1600}
		r.config = func(cfg *engine.Config) { cfg.Models = catalog.New(catalog.Options{}) }
		e := r.engine("w")
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Scripts: map[string]string{"default": file}}); err != nil {
			t.Fatal(err)
		}
		snap := advance(t, e)
		if len(all[*history.Summarised](t, e)) == 0 {
			t.Error("the run made no summary")
		}
		if want == "" {
			wantStatus(t, snap, store.Succeeded)
			continue
		}
		wantStop(t, snap, history.CodeOutage, want)
		if strings.Contains(snap.Stop.Message, ";") {
			t.Errorf("more than one answer is left: %s", snap.Stop.Message)
		}
	}
}

// resting is a run whose call stands between two tries.
type resting struct {
	*rig
	l             *ledger
	worker, other *engine.Engine
	stop          context.CancelFunc
	end           chan *history.Snapshot
	closed        *bool
}

func newResting(t *testing.T, effect machine.Effect, direct bool) *resting {
	t.Helper()
	r, l := writing(t, func(spec *machine.ToolSpec) {
		tries := int64(2)
		spec.Effect, spec.Retry = effect, &tries
	})
	x := &resting{rig: r, l: l, end: make(chan *history.Snapshot, 1), closed: new(bool)}
	*x.closed = true
	r.tools["write"] = shut(l, x.closed)
	waits := make(chan struct{}, 1)
	r.config = func(cfg *engine.Config) {
		cfg.Beat = time.Millisecond
		cfg.Sleep = func(ctx context.Context, _ time.Duration) error {
			waits <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: direct})
		switch {
		case err != nil:
			return "", err
		case res.Status == tool.Unavailable && direct:
			return machine.Error, res.Problem
		case res.Status != tool.OK:
			return machine.Fail, res.Problem
		}
		return "next", nil
	})
	x.worker, x.other = r.engine("worker"), r.engine("other")
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	x.stop = stop
	x.start(x.worker)
	go func() {
		snap, err := x.worker.Advance(ctx, "run")
		if err != nil {
			t.Error(err)
		}
		x.end <- snap
	}()
	await(t, waits, "the wait")
	return x
}

// eachResting runs a test for the calls that are tried again.
func eachResting(t *testing.T, test func(t *testing.T, x *resting)) {
	for _, effect := range []machine.Effect{machine.EffectRead, machine.EffectIdempotent} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s direct %v", effect, direct), func(t *testing.T) { test(t, newResting(t, effect, direct)) })
		}
	}
}

// A process that is asked to stop between two tries of a call leaves no result: the call is made again under its key.
func TestInterruptBetweenTwoTriesOfACall(t *testing.T) {
	eachResting(t, func(t *testing.T, x *resting) {
		x.stop()
		wantStop(t, await(t, x.end, "the run"), history.CodeInterrupted)
		if got := all[*history.ToolFinished](t, x.other); len(got) > 0 {
			t.Errorf("the call has a result: %+v", got[0].Result)
		}
		*x.closed = false
		wantStatus(t, advance(t, x.other), store.Succeeded)
		if got := all[*history.ToolFinished](t, x.other); len(got) != 1 || got[0].Result.Status != tool.OK {
			t.Errorf("recorded %+v", got)
		}
		if x.l.String() != "run/1.0, run/1.0" {
			t.Errorf("ran %s", x.l)
		}
	})
}

// Nor is there a result of such a call in a run that is cancelled: nothing is known of it, or nothing was done.
func TestCancelBetweenTwoTriesOfACall(t *testing.T) {
	eachResting(t, func(t *testing.T, x *resting) {
		if err := x.other.Cancel(context.Background(), "run"); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, await(t, x.end, "the run"), store.Cancelled)
		if got := all[*history.ToolFinished](t, x.other); len(got) > 0 {
			t.Errorf("the call has a result: %+v", got[0].Result)
		}
		if x.l.String() != "run/1.0" {
			t.Errorf("ran %s", x.l)
		}
	})
}

// refusing is a model whose errors have no class: it breaks its contract.
type refusing struct{ err error }

func (m refusing) Generate(context.Context, model.Request) (model.Response, error) {
	return model.Response{}, m.err
}

// A model that breaks its contract stops the run with what it said, and is not taken for a process that was asked to stop.
func TestAModelThatBreaksItsContract(t *testing.T) {
	x := newDialog(t, talkFlow(), modelSetup{})
	good := x.opened.model
	x.opened.model = refusing{errors.New("the table of models is empty")}
	x.push(modeltest.Reply{Text: "Done."})
	x.act(doIt)
	e := x.engine("w")
	wantStop(t, x.run(e), history.CodeHandler, "state start", "model default", "the table of models is empty", "flowctl resume run")
	x.opened.model = good
	wantStatus(t, advance(t, x.engine("other")), store.Succeeded)
}

// A stream that ends without a reason was cut on its way, so that it is asked for again.
func TestAStreamThatEndsTooEarlyIsTriedAgain(t *testing.T) {
	half := modeltest.Reply{Header: header("Content-Type", "text/event-stream"), Lines: []string{
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Half an "}}]}`, ``}}
	done := half
	done.Lines = append(done.Lines[:2:2], `data: [DONE]`, ``)
	x := newDialog(t, talkFlow(), modelSetup{})
	x.push(half, done, modeltest.Reply{Text: "A whole answer."})
	got := x.act(doIt)
	before := x.config
	x.config = func(cfg *engine.Config) {
		before(cfg)
		cfg.Stream = func(_, _, _ string) {}
	}
	e := x.engine("w")
	wantStatus(t, x.run(e), store.Succeeded)
	if got.Text != "A whole answer." {
		t.Errorf("the answer is %q", got.Text)
	}
	failed := all[*history.AttemptFailed](t, e)
	if len(failed) != 2 || failed[0].Problem.Kind != string(model.Network) || !strings.Contains(failed[1].Problem.Message, "no finish reason") {
		t.Errorf("the attempts are told as %+v", failed)
	}
}

// bare is a store that has lost the texts of a run.
type bare struct {
	store.Store
	run string
}

func (s bare) Blob(ctx context.Context, run, hash string) ([]byte, error) {
	if run == s.run {
		return nil, store.ErrNotFound
	}
	return s.Store.Blob(ctx, run, hash)
}

// A run whose summary is missing from the store is damaged. That is no matter of the store itself, nor of other runs.
func TestAMissingSummaryStopsItsRunOnly(t *testing.T) {
	m, down := &talker{}, true
	work := working(12, func(model.Request) model.Response { return saying("SUMMARY: all was looked at.") })
	m.answer = func(req model.Request) (model.Response, error) {
		if down && req.Origin.Turn > 10 {
			return model.Response{}, &model.Error{Class: model.Server, Err: errors.New("down")}
		}
		return work(req)
	}
	r := bigResults(t, m)
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeOutage)
	if len(all[*history.Summarised](t, e)) == 0 {
		t.Fatal("the run made no summary")
	}
	down = false
	r.store = bare{r.store, "run"}
	other := r.engine("other")
	wantStop(t, advance(t, other), history.CodeCorrupt, "missing", "summarised")
	if _, _, err := other.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "second"}); err != nil {
		t.Fatal(err)
	}
	snap, err := other.Advance(context.Background(), "second")
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, snap, store.Succeeded)
}

// An entry of the memory that somebody wrote past flowctl is left aside; the others are shown.
func TestAMemoryEntryThatIsNoJSON(t *testing.T) {
	f := memoryFlow(template{"shop"})
	f.at("start").View.Memory = &machine.MemoryView{Keys: []string{"likes.*"}}
	r := memoryRig(t, f)
	keep(t, r.store, "shop", "likes.bread", `"rye"`, "shop", "likes.cake", `{"sort": `, "shop", "likes.tea", `"green"`)
	shown := ""
	r.thinks("Help.", func(req model.Request) model.Message {
		shown = req.Messages[len(req.Messages)-1].Text
		return model.Message{Text: "Done."}
	})
	wantStatus(t, r.run(r.engine("w")), store.Succeeded)
	if want := "What is remembered:\n- likes.bread: \"rye\"\n- likes.tea: \"green\""; !strings.HasSuffix(shown, want) {
		t.Errorf("shown is\n%s\nwant\n%s", shown, want)
	}
}

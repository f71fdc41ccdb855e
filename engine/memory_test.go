package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// template is a text whose odd parts name inputs: "customer/", "customer".
type template []string

func (t template) Source() string  { return strings.Join(t, "|") }
func (t template) Reads() []string { return nil }

func (t template) Parts() []machine.TextPart {
	var parts []machine.TextPart
	for i, part := range t {
		if i%2 == 0 {
			if part != "" {
				parts = append(parts, machine.TextPart{Fixed: part})
			}
			continue
		}
		parts = append(parts, machine.TextPart{Expr: fn(func(f machine.Facts) (machine.Value, error) { return f.Values[part], nil })})
	}
	return parts
}

func (t template) Value(f machine.Facts) (machine.Value, error) { return t.Render(f) }

func (t template) Render(f machine.Facts) (string, error) {
	var text strings.Builder
	for i, part := range t {
		if i%2 == 1 {
			part = machine.FormatValue(f.Values[part])
		}
		text.WriteString(part)
	}
	return text.String(), nil
}

// memoryFlow is a flow with a memory, whose state start has the three tools for it and the inputs customer and topic.
func memoryFlow(namespace machine.Text) *flow {
	f := newFlow()
	f.m.Memory = namespace
	for _, name := range []string{"customer", "topic"} {
		f.m.Inputs = append(f.m.Inputs, machine.Item[machine.Variable]{Name: name, Value: machine.Variable{Schema: mustSchema(`{}`), Input: true, HasDefault: true}})
	}
	for _, name := range []string{"remember", "recall", "forget"} {
		config := builtin.New().Spec().Config().(*builtin.Config)
		config.Name = name
		uses := config.Uses(machine.ToolScope{Machine: f.m})
		f.tool(name, uses.Effect, func(spec *machine.ToolSpec) {
			spec.Kind, spec.Config, spec.Description, spec.Parameters = "builtin", config, uses.Description, mustSchema(string(uses.Parameters))
		})
	}
	return f.state("start", "next", "end", "fail", "end").state("end")
}

// memoryRig is a rig with the builtin tools.
func memoryRig(t testing.TB, f *flow) *rig {
	r := newRig(t, f)
	r.config = func(cfg *engine.Config) { cfg.Tools["builtin"] = builtin.New() }
	return r
}

// thinks gives the state start a model that says what the given function says.
func (r *rig) thinks(task string, say func(model.Request) model.Message) {
	start := r.flow.States[0].Value
	start.Model, start.ModelName = machine.ModelDeclared, "default"
	r.flow.Models = machine.Ordered[machine.ModelSpec]{{Name: "default", Value: machine.ModelSpec{Name: "default", Provider: "test"}}}
	before := r.config
	r.config = func(cfg *engine.Config) {
		before(cfg)
		cfg.Models = models{model: speaker(say)}
	}
	r.on("start", thinking(engine.Task{Label: "act", Text: task, Tools: true}, nil))
}

// speaker is a model that is a function.
type speaker func(model.Request) model.Message

func (s speaker) Generate(_ context.Context, req model.Request) (model.Response, error) {
	msg := s(req)
	msg.Role = model.Assistant
	return model.Response{Message: msg, Finish: model.Stop}, nil
}

// calling is what a model says that calls tools: name, arguments, name, arguments …
func calling(calls ...string) model.Message {
	var msg model.Message
	for i := 0; i < len(calls); i += 2 {
		msg.Calls = append(msg.Calls, model.Call{ID: fmt.Sprint("c", i), Name: calls[i], Args: calls[i+1]})
	}
	return msg
}

// wantMemory wants all entries of a store, as namespace key=value@version.
func wantMemory(t testing.TB, s store.Store, want ...string) {
	t.Helper()
	entries, err := s.(store.Memory).Memories(context.Background(), store.MemoryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s=%s@%d", e.Namespace, e.Key, e.Value, e.Version))
	}
	if !slices.Equal(got, want) {
		t.Errorf("remembered is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// keep writes to a store outside of a run: namespace, key, value, namespace …
func keep(t testing.TB, s store.Store, entries ...string) {
	t.Helper()
	var writes []store.MemoryWrite
	for i := 0; i < len(entries); i += 3 {
		writes = append(writes, store.MemoryWrite{Namespace: entries[i], Key: entries[i+1], Value: []byte(entries[i+2])})
	}
	if err := s.(store.Memory).Memorize(context.Background(), writes); err != nil {
		t.Fatal(err)
	}
}

// brain is a world whose run remembers, recalls and forgets.
type brain struct {
	store *memory.Store
	flow  *machine.Machine
}

func (b *brain) Store() store.Store { return b.store }
func (b *brain) Close() error       { return nil }

func (b *brain) Engine(_ int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	cfg.Store, cfg.Now = s, newClock().Now
	cfg.Tools = map[string]tool.Kind{"builtin": builtin.New()}
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return b.flow, nil }
	cfg.Handlers = map[string]engine.Handler{"start": scripted{do: remembers},
		"end": scripted{do: func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			return "", step.End(store.Succeeded, nil)
		}}}
	return engine.New(cfg)
}

func (b *brain) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: b.flow, ID: "run"})
	return id, err
}

func remembers(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	batches := [][]engine.Call{
		{{Tool: "remember", Args: machine.Values{"key": "n", "value": int64(1)}, Direct: true}},
		{{Tool: "recall", Args: machine.Values{"key": "n"}},
			{Tool: "remember", Args: machine.Values{"key": "n", "value": int64(2), "version": int64(1)}},
			{Tool: "remember", Args: machine.Values{"key": "gone", "value": "x", "version": int64(0)}},
			{Tool: "remember", Args: machine.Values{"key": "n", "value": int64(9), "version": int64(1)}}, // by now it is 2
			{Tool: "recall", Args: machine.Values{"key": "*"}}},
		{{Tool: "forget", Args: machine.Values{"key": "gone", "version": int64(1)}}, {Tool: "forget", Args: machine.Values{"key": "never"}}},
	}
	want := []string{"ok", "ok ok ok failed ok", "ok ok"}
	for i, batch := range batches {
		results, err := step.Call(batch...)
		if err != nil {
			return "", err
		}
		var got []string
		for _, r := range results {
			got = append(got, string(r.Status))
		}
		if s := strings.Join(got, " "); s != want[i] {
			return "", fmt.Errorf("batch %d ended %s, want %s: %v", i, s, want[i], results)
		}
	}
	return "next", nil
}

// What is remembered stands in the commit of the call's result: whichever commit is lost, or its answer, nothing is written
// twice, and nothing is missing.
func TestMemoryIsWrittenWithTheResult(t *testing.T) {
	f := memoryFlow(value("shop"))
	f.m.Seal()
	res, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			at := newClock().Now()
			return &brain{store: memory.New(memory.Options{Now: func() time.Time { return at }}), flow: f.m}, nil
		},
		Answer: func(crash.World, history.Question) engine.Reply { return engine.Reply{} },
		Check: func(w crash.World) error {
			entries, err := w.Store().(store.Memory).Memories(context.Background(), store.MemoryFilter{})
			if err != nil {
				return err
			}
			if len(entries) != 1 || entries[0].Key != "n" || string(entries[0].Value) != "2" || entries[0].Version != 2 {
				return fmt.Errorf("remembered is %+v", entries)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Commits < 12 {
		t.Errorf("%+v", res)
	}
}

func TestACallThatIsNotGoodRemembersNothing(t *testing.T) {
	f := memoryFlow(value("shop"))
	f.tool("odd", machine.EffectWrite, nil).state("more", "next", "end")
	f.at("start").Transitions["next"][0].To = "more"
	for i := range f.m.Tools {
		f.m.Tools[i].Value.Approval.Required = f.m.Tools[i].Name == "remember"
	}
	r := memoryRig(t, f)
	r.tools["odd"] = func(_ context.Context, call tool.Call) (machine.Value, error) {
		return nil, errors.Join(call.Memory.Write("odd", "x", nil), errors.New("no"))
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		got, err := call(step, engine.Call{Tool: "remember", Args: machine.Values{"key": "k", "value": "x"}})
		if err == nil && got.Status != tool.Refused {
			err = fmt.Errorf("the denied call ended %+v", got)
		}
		return "next", err
	})
	r.on("more", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for _, c := range []engine.Call{{Tool: "odd", Args: text("x")}, {Tool: "remember", Args: machine.Values{"key": "", "value": "x"}}} {
			if got, err := call(step, c); err != nil || got.Status == tool.OK {
				return "", fmt.Errorf("%s ended %+v, %w", c.Tool, got, err)
			}
		}
		return "next", nil
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Waiting)
	no := false
	answer(t, e, engine.Reply{Ask: "1.0/approval", Yes: &no})
	wantStatus(t, advance(t, e), store.Succeeded)
	wantMemory(t, r.store)
}

// rival is a store in which somebody else writes right before each commit with memory.
type rival struct {
	*memory.Store
	before func(c store.Commit)
}

func (s *rival) Commit(ctx context.Context, c store.Commit) error {
	if len(c.Memory) > 0 {
		s.before(c)
	}
	return s.Store.Commit(ctx, c)
}

// The one who comes second is told what there is now, and the run goes on: nothing of the commit that was refused is lost,
// nothing stands twice, and the history has no gap.
func TestAConflictIsToldToTheModel(t *testing.T) {
	f := memoryFlow(value("shop")).variable("seen", `{"type":"string"}`)
	r := memoryRig(t, f)
	inner := memory.New(memory.Options{})
	keep(t, inner, "shop", "n", `"one"`)
	once := sync.OnceFunc(func() { keep(t, inner, "shop", "n", `"theirs"`) })
	r.store = &rival{inner, func(store.Commit) { once() }}
	turn := 0
	r.thinks("Count.", func(req model.Request) model.Message {
		turn++
		last := req.Messages[len(req.Messages)-1]
		switch turn {
		case 1:
			return calling("remember", `{"key": "n", "value": "mine", "version": 1}`)
		case 2:
			for _, want := range []string{"not successful (failed): n was changed by somebody else: its version is 2 now", `{"key":"n","value":"theirs","version":2}`} {
				if last.Role != model.ToolRole || !strings.Contains(last.Text, want) {
					t.Errorf("the model reads %q, want %q in it", last.Text, want)
				}
			}
			return calling("remember", `{"key": "n", "value": "theirs and mine", "version": 2}`, "recall", `{"key": "n"}`)
		}
		return model.Message{Text: "Done."}
	})
	think := r.handlers["start"]
	r.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
		if err := errors.Join(step.Set("seen", "yes"), step.Note("I count")); err != nil {
			return "", err
		}
		if _, err := call(step, engine.Call{Tool: "forget", Args: machine.Values{"key": "n", "version": int64(7)}}); err != nil {
			return "", err
		}
		return think.Handle(ctx, step)
	})
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	wantMemory(t, r.store, `shop n="theirs and mine"@3`)
	if notes := all[*history.NoteAdded](t, e); len(notes) != 1 || turn != 3 {
		t.Errorf("%d notes, %d turns", len(notes), turn)
	}
	wantNoGap(t, e, "run")
	again := r.heir("x")
	if got := trace(t, again, "run"); got != trace(t, e, "run") {
		t.Errorf("another process reads %s", got)
	}
}

// What a handler has pending when a conflict is found goes with the conflict's result.
func TestAConflictKeepsWhatWasPending(t *testing.T) {
	f := memoryFlow(value("shop")).variable("seen", `{"type":"string"}`)
	r := memoryRig(t, f)
	r.tools["count"] = func(_ context.Context, call tool.Call) (machine.Value, error) {
		return "counted", call.Memory.Write("n", "mine", new(int64))
	}
	f.tool("count", machine.EffectRead, nil)
	f.at("start").Tools = append(f.at("start").Tools, "count")
	inner := memory.New(memory.Options{})
	r.store = &rival{inner, func(store.Commit) { keep(t, inner, "shop", "n", `"theirs"`) }}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if err := errors.Join(step.Set("seen", "yes"), step.Note("I count")); err != nil {
			return "", err
		}
		got, err := call(step, engine.Call{Tool: "count", Args: text("x")})
		if err != nil {
			return "", err
		}
		if got.Problem.Kind != "conflict" || !reflect.DeepEqual(got.Value, machine.Values{"key": "n", "version": int64(1), "value": "theirs"}) {
			return "", fmt.Errorf("got %+v", got)
		}
		return "next", nil
	})
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	if snap.Vars["seen"] != machine.Value("yes") || len(all[*history.NoteAdded](t, e)) != 1 || len(all[*history.VarSet](t, e)) != 1 {
		t.Errorf("variables %v, history %s", snap.Vars, trace(t, e, "run"))
	}
	wantNoGap(t, e, "run")
	wantMemory(t, r.store, `shop n="theirs"@1`)
}

// wantNoGap wants events that count on from 1.
func wantNoGap(t testing.TB, e *engine.Engine, run string) {
	t.Helper()
	evs, err := e.History(context.Background(), run)
	if err != nil || len(evs) == 0 {
		t.Fatalf("%d events, %v", len(evs), err)
	}
	for i, ev := range evs {
		if ev.Seq != int64(i)+1 {
			t.Fatalf("event %d has seq %d", i, ev.Seq)
		}
	}
}

// Runs that count up one key, each by what it has read, lose none of their counts.
func TestRunsThatRaceLoseNoUpdate(t *testing.T) {
	const runs, counts = 6, 5
	f := memoryFlow(value("shop"))
	f.m.Limits.ToolCalls = 10000
	r := memoryRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for done := 0; done < counts; {
			got, err := call(step, engine.Call{Tool: "recall", Args: machine.Values{"key": "n"}})
			if err != nil {
				return "", err
			}
			n, version := int64(0), int64(0)
			if list := got.Value.([]machine.Value); len(list) == 1 {
				n, version = list[0].(machine.Values)["value"].(int64), list[0].(machine.Values)["version"].(int64)
			}
			got, err = call(step, engine.Call{Tool: "remember", Args: machine.Values{"key": "n", "value": n + 1, "version": version}})
			switch {
			case err != nil:
				return "", err
			case got.Status == tool.OK:
				done++
			case got.Problem.Kind != "conflict":
				return "", fmt.Errorf("got %+v", got)
			}
		}
		return "next", nil
	})
	e := r.engine("w")
	var wg sync.WaitGroup
	for i := range runs {
		id := fmt.Sprint("run", i)
		wg.Go(func() {
			_, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: id})
			if err != nil {
				t.Error(err)
				return
			}
			snap, err := e.Advance(context.Background(), id)
			if err != nil || snap.Status != store.Succeeded {
				t.Errorf("%s: %v, %+v", id, err, snap)
			}
		})
	}
	wg.Wait()
	for i := range runs {
		wantNoGap(t, e, fmt.Sprint("run", i))
	}
	wantMemory(t, r.store, fmt.Sprintf("shop n=%d@%d", runs*counts, runs*counts))
}

func TestAStateIsShownItsPartOfTheMemory(t *testing.T) {
	f := memoryFlow(template{"customer/", "customer"})
	f.at("start").View.Memory = &machine.MemoryView{Keys: []string{"likes.*", "name"}, Search: value("Where are my blue shoes?"), Top: 2}
	r := memoryRig(t, f)
	keep(t, r.store, "customer/ann", "likes.tea", `{"sort":"green"}`, "customer/ann", "name", `"Ann ]] {{ x }}"`, "customer/ann", "likesnot", `"dogs"`,
		"customer/ann", "order.1", `"blue shoes, size 39"`, "customer/ann", "order.2", `"shoes"`, "customer/ann", "order.3", `"blue"`, "customer/ann", "order.4", `"hats"`,
		"customer/anna", "name", `"Anna"`, "customer/anna", "likes.cats", `"blue shoes"`, "customer", "name", `"nobody"`)
	r.thinks("Help.", func(model.Request) model.Message { return model.Message{Text: "Done."} })
	e := r.engine("w")
	start := func(id string, inputs machine.Values) string {
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: id, Inputs: inputs}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Advance(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		sent, err := e.Sent(context.Background(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, m := range sent.Request.Messages {
			if m.Role != model.System {
				all = append(all, m.Text)
			}
		}
		return strings.Join(all, "\n")
	}
	want := "Help.\n\nWhat is remembered:\n- likes.tea: {\"sort\":\"green\"}\n- name: \"Ann ]] {{ x }}\"\n- order.1: \"blue shoes, size 39\"\n- order.2: \"shoes\""
	if got := start("run", machine.Values{"customer": "ann"}); !strings.HasPrefix(got, want) || strings.Contains(got, "order.3") {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
	for id, inputs := range map[string]machine.Values{"none": nil, "empty": {"customer": ""}, "other": {"customer": "bob"}} {
		if got := start(id, inputs); strings.Contains(got, "remembered") || strings.Contains(got, "nobody") {
			t.Errorf("%s is shown\n%s", id, got)
		}
	}
}

func TestTheNamespace(t *testing.T) {
	for _, tc := range []struct {
		text   machine.Text
		inputs machine.Values
		want   string // "": no memory
	}{
		{value("shop"), nil, "shop"},
		{value(" "), nil, ""},
		{template{"shop"}, nil, "shop"},
		{template{"customer/", "customer"}, machine.Values{"customer": "ann"}, "customer/ann"},
		{template{"customer/", "customer"}, machine.Values{"customer": int64(7)}, "customer/7"},
		{template{"customer/", "customer"}, machine.Values{"customer": "ann/../bob%2F\n猫"}, "customer/ann%2F..%2Fbob%252F%0A猫"},
		{template{"customer/", "customer", "/", "topic"}, machine.Values{"customer": "ann", "topic": "x/y"}, "customer/ann/x%2Fy"},
		{template{"", "customer"}, machine.Values{"customer": "all/ann"}, "all/ann"},
		{template{"", "customer"}, nil, ""},
		{template{"", "customer", "/", "topic"}, machine.Values{"customer": "a/b", "topic": "c"}, "a%2Fb/c"},
		{template{"customer/", "customer"}, nil, ""},
		{template{"customer/", "customer"}, machine.Values{"customer": ""}, ""},
		{template{"customer/", "customer"}, machine.Values{"customer": " \n"}, ""},
		{template{"customer/", "customer", "/", "topic"}, machine.Values{"customer": "ann"}, ""},
	} {
		r := memoryRig(t, memoryFlow(tc.text))
		var got tool.Result
		r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			var err error
			got, err = call(step, engine.Call{Tool: "remember", Args: machine.Values{"key": "k", "value": "x"}})
			return "next", err
		})
		e := r.engine("w")
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: tc.inputs}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, advance(t, e), store.Succeeded)
		if tc.want == "" {
			wantMemory(t, r.store)
			if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "not known yet whose memory") {
				t.Errorf("%v %v: %+v", tc.text, tc.inputs, got)
			}
			continue
		}
		wantMemory(t, r.store, tc.want+` k="x"@1`)
	}
}

// Whatever customers are called, none of them finds what another one has remembered; each finds their own.
func TestOneCustomersMemoryNeverReachesAnother(t *testing.T) {
	r := memoryRig(t, memoryFlow(template{"customer/", "customer", "/", "topic"}))
	var found []machine.Value
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		secret := step.RunID()
		results, err := step.Call(engine.Call{Tool: "recall", Args: machine.Values{"key": "*"}},
			engine.Call{Tool: "recall", Args: machine.Values{"query": "word"}},
			engine.Call{Tool: "remember", Args: machine.Values{"key": secret, "value": "word"}})
		if err != nil {
			return "", err
		}
		found = nil
		for _, result := range results[:2] {
			list, ok := result.Value.([]machine.Value)
			if !ok {
				return "", fmt.Errorf("recall gave %+v", result)
			}
			for _, item := range list {
				found = append(found, item.(machine.Values)["key"])
			}
		}
		return "next", nil
	})
	e := r.engine("w")
	n := 0
	part := rapid.SampledFrom([]string{"a", "A", "a ", "a/b", "b", "b/c", "c", "a%2Fb", "%", "猫", "/", "a.*"})
	rapid.Check(t, func(t *rapid.T) {
		n++
		before := map[[2]string][]string{}
		for i := range 4 {
			who := [2]string{fmt.Sprint(n) + part.Draw(t, "customer"), part.Draw(t, "topic")}
			id := fmt.Sprintf("run-%d-%d", n, i)
			if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: id,
				Inputs: machine.Values{"customer": who[0], "topic": who[1]}}); err != nil {
				t.Fatal(err)
			}
			if snap, err := e.Advance(context.Background(), id); err != nil || snap.Status != store.Succeeded {
				t.Fatalf("%v, %+v", err, snap)
			}
			var want []machine.Value
			for range 2 { // by key, and by words
				for _, own := range before[who] {
					want = append(want, own)
				}
			}
			if !slices.Equal(found, want) {
				t.Fatalf("%q finds %v, its own are %v", who, found, want)
			}
			before[who] = append(before[who], id)
		}
	})
}

// A tool that finds a secret of the environment does not carry it into the memory.
func TestNoSecretIsRemembered(t *testing.T) {
	f := memoryFlow(value("shop")).tool("odd", machine.EffectRead, nil)
	f.at("start").Tools = append(f.at("start").Tools, "odd")
	r := memoryRig(t, f)
	secrets, err := secret.New(map[string]string{"SHOP_KEY": "sk-test-AAAA1111"})
	if err != nil {
		t.Fatal(err)
	}
	before := r.config
	r.config = func(cfg *engine.Config) {
		before(cfg)
		cfg.Secrets = secrets
	}
	r.tools["odd"] = func(_ context.Context, call tool.Call) (machine.Value, error) {
		return "done", call.Memory.Write("key sk-test-AAAA1111", machine.Values{"k": "it is sk-test-AAAA1111"}, nil)
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Call(engine.Call{Tool: "odd", Args: text("x")}, engine.Call{Tool: "remember", Args: machine.Values{"key": "z", "value": "sk-test-AAAA1111"}})
		return "next", err
	})
	wantStatus(t, r.run(r.engine("w")), store.Succeeded)
	wantMemory(t, r.store, `shop key [secret:SHOP_KEY]={"k":"it is [secret:SHOP_KEY]"}@1`, `shop z="[secret:SHOP_KEY]"@1`)
}

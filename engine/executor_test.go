package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// proposing is a model that makes given calls, one batch after the other, and answers when it has had all results.
type proposing struct {
	mu      sync.Mutex
	batches [][]model.Call
	asked   []model.Request
}

func (p *proposing) Generate(_ context.Context, req model.Request) (model.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req)
	made := 0 // batches that the conversation holds already
	for _, m := range req.Messages {
		if len(m.Calls) > 0 {
			made++
		}
	}
	if made >= len(p.batches) {
		return model.Response{Message: model.Message{Role: model.Assistant, Text: "Done."}, Finish: model.Stop, Model: "test-1"}, nil
	}
	return model.Response{Message: model.Message{Role: model.Assistant, Text: "I try.", Calls: p.batches[made]}, Finish: model.Stop, Model: "test-1"}, nil
}

// last gives the newest request, and what its tool messages say.
func (p *proposing) last() (model.Request, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	req := p.asked[len(p.asked)-1]
	var results []string
	for _, m := range req.Messages {
		if m.Role == model.ToolRole {
			results = append(results, m.Text)
		}
	}
	return req, results
}

// proposed are calls as a model writes them, in pairs of tool and text argument.
func proposed(pairs ...string) []model.Call {
	var calls []model.Call
	for i := 0; i+1 < len(pairs); i += 2 {
		calls = append(calls, model.Call{ID: "x", Name: pairs[i], Args: fmt.Sprintf(`{"text":%q}`, pairs[i+1])})
	}
	return calls
}

// office is the test's kind of tools, some of which take several calls in one request.
type office struct {
	goTools
	together map[string]func(ctx context.Context, calls []tool.Call) ([]tool.BatchResult, error)
}

func (o office) New(spec machine.ToolSpec, env tool.Env) (tool.Tool, error) {
	made, err := o.goTools.New(spec, env)
	made.Batch = o.together[spec.Name]
	return made, err
}

// proposingRig is a run of the state start, whose model makes the given calls. before adds to its flow what the state has.
func proposingRig(t testing.TB, before func(*flow), batches ...[]model.Call) (*rig, *proposing, office) {
	t.Helper()
	f := newFlow()
	before(f)
	f.state("start", "next", "end", "fail", "end").state("end")
	f.at("start").Tools = slices.DeleteFunc(f.at("start").Tools, func(name string) bool { return name == "foreign" })
	asks(f, "start")
	r := newRig(t, f)
	p := &proposing{batches: batches}
	o := office{goTools: r.tools, together: map[string]func(context.Context, []tool.Call) ([]tool.BatchResult, error){}}
	r.config = func(cfg *engine.Config) {
		cfg.Models, cfg.Tools = models{model: p}, map[string]tool.Kind{"go": o}
	}
	r.on("start", thinking(doIt, nil))
	return r, p, o
}

// span is the time that a call took.
type span struct {
	what       string // the tool and its argument
	begin, end time.Time
}

func (s span) overlaps(o span) bool { return s.begin.Before(o.end) && o.begin.Before(s.end) }

// diary notes when calls ran.
type diary struct {
	mu       sync.Mutex
	spans    []span
	requests []string // of the tool list
}

// takes makes a tool that takes some time and gives its argument.
func (d *diary) takes(name string, long time.Duration) func(context.Context, tool.Call) (machine.Value, error) {
	return func(_ context.Context, c tool.Call) (machine.Value, error) {
		begin := time.Now()
		time.Sleep(long) // of the test's own time
		d.note(span{what: name + " " + machine.FormatValue(c.Args["text"]), begin: begin, end: time.Now()})
		return c.Args["text"], nil
	}
}

func (d *diary) note(s span) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spans = append(d.spans, s)
}

// ran says how often a call ran.
func (d *diary) ran(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.spans {
		if s.what == what {
			n++
		}
	}
	return n
}

// asked is one call of the property test.
type asked struct {
	tool, text string
	args       string // as written; "": {"text": text}
	yes        bool   // what a human says to pay
}

func (a asked) String() string {
	return cmp.Or(strings.TrimSpace(a.tool+" "+a.text+a.args), "(no name)")
}

// wants says how the call has to end.
func (a asked) wants() tool.Status {
	switch a.tool {
	case "look", "list", "add", "park":
		if a.args != "" {
			return tool.Refused
		}
		return tool.OK
	case "slow", "deaf", "boom":
		return tool.Failed
	case "lost":
		return tool.Unavailable
	case "bang":
		return tool.Unknown
	case "pay":
		if a.yes {
			return tool.OK
		}
	}
	return tool.Refused
}

// everyTool declares the tools of the property test.
func everyTool(f *flow) {
	for _, name := range []string{"look", "list", "slow", "deaf", "boom", "lost"} {
		f.tool(name, machine.EffectRead, func(spec *machine.ToolSpec) { spec.Timeout = 2 * time.Second })
	}
	f.tool("add", machine.EffectWrite, nil).tool("bang", machine.EffectWrite, nil).tool("foreign", machine.EffectWrite, nil)
	f.tool("pay", machine.EffectWrite, approval)
	f.tool("park", machine.EffectWrite, func(spec *machine.ToolSpec) {
		spec.Resource = fn(func(f machine.Facts) (machine.Value, error) { return f.Args["text"], nil })
	})
}

// everyRun gives the tools of the property test their work.
func everyRun(o office, d *diary) {
	for _, name := range []string{"look", "add", "pay", "park", "foreign"} {
		o.goTools[name] = d.takes(name, 10*time.Millisecond)
	}
	o.goTools["list"] = d.takes("list", 10*time.Millisecond)
	o.together["list"] = func(_ context.Context, calls []tool.Call) ([]tool.BatchResult, error) {
		begin := time.Now()
		time.Sleep(10 * time.Millisecond) // of the test's own time
		var texts []string
		results := make([]tool.BatchResult, len(calls))
		for i, c := range calls {
			results[i].Value = c.Args["text"]
			texts = append(texts, machine.FormatValue(c.Args["text"]))
			d.note(span{what: "list " + texts[i], begin: begin, end: time.Now()})
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.requests = append(d.requests, strings.Join(texts, " "))
		return results, nil
	}
	o.goTools["slow"] = func(ctx context.Context, _ tool.Call) (machine.Value, error) { <-ctx.Done(); return nil, ctx.Err() }
	o.goTools["deaf"] = func(context.Context, tool.Call) (machine.Value, error) { time.Sleep(time.Minute); return "late", nil }
	o.goTools["boom"] = func(context.Context, tool.Call) (machine.Value, error) { panic("boom") }
	o.goTools["lost"] = func(context.Context, tool.Call) (machine.Value, error) { return nil, tool.Unavailablef("closed") }
	o.goTools["bang"] = func(_ context.Context, c tool.Call) (machine.Value, error) {
		d.note(span{what: "bang " + machine.FormatValue(c.Args["text"]), begin: time.Now(), end: time.Now()})
		panic("bang")
	}
}

// anyCall draws a call; texts are few, so that equal calls come.
func anyCall() *rapid.Generator[asked] {
	return rapid.Custom(func(t *rapid.T) asked {
		a := asked{tool: rapid.SampledFrom([]string{"look", "list", "slow", "deaf", "boom", "lost", "add", "bang", "pay", "park", "foreign", "nowhere", ""}).Draw(t, "tool"),
			text: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text"), yes: rapid.Bool().Draw(t, "yes")}
		if (a.tool == "look" || a.tool == "add") && rapid.IntRange(0, 3).Draw(t, "spoil") == 0 {
			a.args = rapid.SampledFrom([]string{`{}`, `{"text":`, `{"text":{"a":1}}`, `{"Text":"a"}`, `[1]`}).Draw(t, "args")
			a.text = ""
		}
		return a
	})
}

// Whatever a model asks for in one turn: it gets one message for each call, in order; nothing runs twice or unasked; reads
// overlap in time, writes do not unless they change different things; and nothing of it stays behind.
func TestAnyBatchIsAnswered(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		calls := rapid.SliceOfN(anyCall(), 1, 8).Draw(rt, "calls")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = runBatch(t, calls) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// runBatch makes the calls in one turn of a model, and says what is wrong with how they went.
func runBatch(t *testing.T, calls []asked) string {
	var batch []model.Call
	for _, a := range calls {
		batch = append(batch, model.Call{ID: "same", Name: a.tool, Args: cmp.Or(a.args, fmt.Sprintf(`{"text":%q}`, a.text))})
	}
	r, p, o := proposingRig(t, everyTool, batch)
	d := &diary{}
	everyRun(o, d)
	e := r.engine("w")
	snap := r.run(e)
	for rounds := 0; snap.Status == store.Waiting; rounds++ {
		if rounds > len(calls) {
			return fmt.Sprintf("asked for ever: %s", ids(snap))
		}
		for _, q := range snap.Pending {
			if problem := replyTo(e, q, calls); problem != "" {
				return problem
			}
		}
		snap = advance(t, e)
	}
	if snap.Status != store.Succeeded {
		return fmt.Sprintf("the run is %s: %+v", snap.Status, snap.Stop)
	}
	problem := cmp.Or(checkMessages(p, calls), checkResults(t, e, calls), checkTimes(d, calls), checkTogether(d, calls))
	e.Close()
	time.Sleep(time.Hour) // of the test's own time: what is left behind by then stays, and the bubble says so
	return problem
}

// replyTo answers a question about one of the calls.
func replyTo(e *engine.Engine, q history.Question, calls []asked) string {
	reply := engine.Reply{Ask: q.ID, Verdict: history.GiveUp}
	if q.Kind == history.KindApproval {
		key, _, _ := strings.Cut(q.ID, "/")
		n := 0
		if parts := strings.Split(key, "."); len(parts) == 3 {
			n, _ = strconv.Atoi(parts[2])
		}
		reply = engine.Reply{Ask: q.ID, Yes: &calls[n].yes}
		if calls[n].tool != "pay" {
			return fmt.Sprintf("%s asks for an approval of %s", q.ID, calls[n])
		}
	}
	if err := e.Answer(context.Background(), "run", reply); err != nil {
		return err.Error()
	}
	return ""
}

// checkMessages wants one tool message for each call, right behind them and in their order.
func checkMessages(p *proposing, calls []asked) string {
	req, results := p.last()
	if len(results) != len(calls) {
		return fmt.Sprintf("%d tool messages for %d calls", len(results), len(calls))
	}
	at := slices.IndexFunc(req.Messages, func(m model.Message) bool { return len(m.Calls) > 0 })
	seen := map[string]bool{}
	for i, c := range req.Messages[at].Calls {
		msg := req.Messages[at+1+i]
		if msg.Role != model.ToolRole || msg.CallID != c.ID || c.ID == "" || seen[c.ID] || strings.TrimSpace(msg.Text) == "" {
			return fmt.Sprintf("call %d (%s) is answered by %+v", i, c.ID, msg)
		}
		seen[c.ID] = true
	}
	return ""
}

// checkResults holds the recorded results against the calls.
func checkResults(t *testing.T, e *engine.Engine, calls []asked) string {
	byKey := map[string]*history.ToolFinished{}
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		return err.Error()
	}
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ToolFinished); ok {
			if byKey[ev.Key] != nil {
				return "two results of " + ev.Key
			}
			byKey[ev.Key] = d
		}
	}
	for i, a := range calls {
		key := "1.1"
		if len(calls) > 1 {
			key = fmt.Sprintf("1.1.%d", i)
		}
		d := byKey[key]
		if d == nil {
			return fmt.Sprintf("call %d (%s) has no result", i, a)
		}
		if want := a.wants(); d.Result.Status != want || want == tool.OK && d.Result.Value != a.text {
			return fmt.Sprintf("call %d (%s) ended as %+v, want %s", i, a, d.Result, want)
		}
	}
	if len(byKey) != len(calls) {
		return fmt.Sprintf("%d results of %d calls", len(byKey), len(calls))
	}
	return ""
}

// checkTimes wants writes to have run as often as they were asked for, and nothing beside them but what may be.
func checkTimes(d *diary, calls []asked) string {
	want := map[string]int{}
	for _, a := range calls {
		what := a.tool + " " + a.text
		switch {
		case a.args != "":
		case a.tool == "bang":
			want[what] = 1 // an equal one after it is not run unasked
		case a.tool == "add" || a.tool == "park" || a.tool == "look" || a.tool == "list" || a.tool == "pay" && a.yes:
			want[what]++
		}
	}
	for what, n := range want {
		if got := d.ran(what); got != n {
			return fmt.Sprintf("%s ran %d times, want %d", what, got, n)
		}
	}
	for i, s := range d.spans {
		if want[s.what] == 0 {
			return s.what + " ran"
		}
		for _, other := range d.spans[:i] {
			if name, _, _ := strings.Cut(s.what, " "); s.overlaps(other) && !mayOverlap(name, s.what, other.what) {
				return fmt.Sprintf("%s ran beside %s", s.what, other.what)
			}
		}
	}
	return ""
}

func mayOverlap(name, what, other string) bool {
	otherName, _, _ := strings.Cut(other, " ")
	reads := []string{"look", "list"}
	return slices.Contains(reads, name) && slices.Contains(reads, otherName) || name == "park" && otherName == "park" && what != other
}

// checkTogether wants calls that nothing stands between to have run at once: reads, of which those of the tool list are one
// request, and writes of different things.
func checkTogether(d *diary, calls []asked) string {
	for i, a := range calls {
		if a.args != "" || i == 0 || calls[i-1].args != "" {
			continue
		}
		before := calls[i-1]
		reads := a.tool == "look" && before.tool == "look" && a.text != before.text
		parks := a.tool == "park" && before.tool == "park" && a.text != before.text
		if !reads && !parks || d.ran(a.tool+" "+a.text) != 1 || d.ran(before.tool+" "+before.text) != 1 {
			continue
		}
		// A park may belong to the group of the one after it, where an equal one stands before.
		if parks && i > 1 && calls[i-2].tool == "park" {
			continue
		}
		var two []span
		for _, s := range d.spans {
			if s.what == a.tool+" "+a.text || s.what == before.tool+" "+before.text {
				two = append(two, s)
			}
		}
		if !two[0].overlaps(two[1]) {
			return fmt.Sprintf("%s and %s did not run at once", before, a)
		}
	}
	alone := !slices.ContainsFunc(calls, func(a asked) bool { return a.tool != "list" })
	if alone && len(calls) > 1 && len(d.requests) != 1 {
		return fmt.Sprintf("%d calls of list were the requests %q", len(calls), d.requests)
	}
	return ""
}

// Arguments become one form, which is approved, recorded, told and run.
func TestArgumentsHaveOneForm(t *testing.T) {
	schema := `{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"},"files":{"type":"array","items":{"type":"object"}},
		"tags":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`
	for _, tc := range []struct{ args, want, refused string }{
		{`{"n":"5","tags":"a"}`, `{"n":5,"tags":["a"]}`, ""},
		{`{"n":9007199254740993}`, `{"n":9007199254740993}`, ""},
		{`{"files":[{"path":"a"}]}`, `{"files":[{"path":"a"}]}`, ""},
		{`{"files":{"path":"a"}}`, `{"files":[{"path":"a"}]}`, ""},
		{"", `{}`, ""}, {" ", `{}`, ""}, {"null", `{}`, ""}, {`""`, `{}`, ""},
		{`{"files":"[{\"path\":\"a\"}]"}`, "", "write files as JSON itself, without quotes around it"},
		{`{"Text":"a"}`, "", "did you mean text?"},
		{`{"text":"a","Text":"b"}`, "", "did you mean text?"},
		{`{"amount":1}`, "", `no parameter "amount"`},
		{`{"n":9223372036854775808}`, "", "too large"},
		{`{"n":1e40}`, "", "too large"},
		{`{"text":"a"`, "", "must be one JSON object"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			r, p, _ := proposingRig(t, func(f *flow) {
				f.tool("pay", machine.EffectWrite, func(spec *machine.ToolSpec) { spec.Approval.Required, spec.Parameters = true, mustSchema(schema) })
			}, []model.Call{{ID: "a", Name: "pay", Args: tc.args}})
			var ran []string
			r.tools["pay"] = func(_ context.Context, c tool.Call) (machine.Value, error) {
				ran = append(ran, machine.FormatValue(c.Args))
				return "paid", nil
			}
			e := r.engine("w")
			snap := r.run(e)
			if tc.refused != "" {
				wantStatus(t, snap, store.Succeeded)
				if _, got := p.last(); len(got) != 1 || !strings.Contains(got[0], tc.refused) || len(ran) > 0 {
					t.Errorf("the model is told %q, and %q ran", got, ran)
				}
				return
			}
			wantStatus(t, snap, store.Waiting)
			approved := machine.FormatValue(snap.Pending[0].Args)
			yes := true
			answer(t, e, engine.Reply{Ask: snap.Pending[0].ID, Yes: &yes})
			wantStatus(t, advance(t, e), store.Succeeded)
			started, finished := all[*history.ToolStarted](t, e)[0], all[*history.ToolFinished](t, e)[0]
			got := []string{approved, machine.FormatValue(started.Args), machine.FormatValue(finished.Args), strings.Join(ran, " ")}
			if !slices.Equal(got, slices.Repeat([]string{tc.want}, 4)) {
				t.Errorf("approved, started, recorded, run: %q, want %s", got, tc.want)
			}
		})
	}
}

// What a model reads of a result is text that it can be sent: never empty, never endless, without control characters.
func TestResultText(t *testing.T) {
	long := strings.Repeat("é", 20000)
	for _, tc := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"text", tool.Result{Status: tool.OK, Value: "a\tb\nc"}, "a\tb\nc"},
		{"value", tool.Result{Status: tool.OK, Value: machine.Values{"n": int64(9007199254740993), "s": "<&>"}}, `{"n":9007199254740993,"s":"<&>"}`},
		{"nothing", tool.Result{Status: tool.OK}, "(no output)"},
		{"empty text", tool.Result{Status: tool.OK, Value: ""}, "(no output)"},
		{"blanks", tool.Result{Status: tool.OK, Value: " \n\t"}, "(no output)"},
		{"empty list", tool.Result{Status: tool.OK, Value: []machine.Value{}}, "[]"},
		{"control characters", tool.Result{Status: tool.OK, Value: "a\x00b\x1b[31mc\x7f\r\u0085"}, "a␀b␛[31mc␡␍\uFFFD"},
		{"failure", tool.Result{Status: tool.Failed, Problem: machine.Problem{Kind: "exit", Message: "exit 2\x1b"}, Value: "out"},
			"The call was not successful (failed): exit 2␛\nout"},
		{"failure without a word", tool.Result{Status: tool.Unknown}, "The call was not successful (unknown)."},
	} {
		if got := history.ResultText(tc.result); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	for name, v := range map[string]machine.Value{"text": "x" + long, "list": []machine.Value{long}} {
		got := history.ResultText(tool.Result{Status: tool.OK, Value: v})
		if head, marker, ok := strings.Cut(got, "… [cut: "); !ok || len(head) > 16<<10 || len(head) < 16<<10-4 || !json.Valid([]byte(strconv.Quote(head))) ||
			!strings.HasSuffix(marker, " bytes]") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%s: %d bytes, ends in %q", name, len(got), got[max(len(got)-40, 0):])
		}
	}
	if got := history.ResultText(tool.Result{Status: tool.OK, Value: strings.Repeat("x", 16<<10)}); strings.Contains(got, "cut") {
		t.Error("a text of 16 KiB was cut")
	}
}

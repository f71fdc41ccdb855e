package history_test

import (
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// started is the mask of a run with two secret variables.
func started() *history.Mask {
	var none *history.Mask
	return none.After(&history.RunStarted{Secrets: []string{"key", "pin"}, Inputs: machine.Values{"key": "abcdef", "name": "Ada"}})
}

func TestMaskHidesByFieldAndByValue(t *testing.T) {
	m := started().After(&history.VarSet{Name: "pin", Value: "12", Secret: true}).
		After(&history.ToolStarted{Args: machine.Values{"code": "xx-123456", "n": int64(1)}, SecretArgs: []string{"code"}})
	for _, tc := range []struct {
		data history.Data
		want string
	}{
		{&history.RunStarted{Secrets: []string{"key"}, Inputs: machine.Values{"key": "abcdef", "name": "Ada"}, Vars: machine.Values{"pin": "12", "n": int64(12)}},
			`{"dir":"","flow":"","flow_hash":"","inputs":{"key":"***","name":"Ada"},"secrets":["key"],"vars":{"n":12,"pin":"***"}}`},
		{&history.FlowSwitched{Vars: machine.Values{"pin": "12"}},
			`{"dir":"","from":"","inputs":null,"state":"","to":"","vars":{"pin":"***"}}`},
		{&history.VarSet{Name: "pin", Value: "12"}, `{"name":"pin","value":"***"}`},
		{&history.VarSet{Name: "pin", Secret: true}, `{"name":"pin","secret":true,"value":null}`},
		{&history.VarSet{Name: "n", Value: "12 abcdef"}, `{"name":"n","value":"12 ***"}`},
		{&history.Answered{Value: "12", Text: "it is 12", Secret: true, By: history.ByPerson}, `{"by":"person","secret":true,"text":"***","value":"***"}`},
		{&history.Answered{Value: "12", Text: "it is 12", By: history.ByPerson}, `{"by":"person","text":"it is 12","value":"12"}`},
		{&history.DoubtResolved{Verdict: history.Done, Value: "12", Secret: true}, `{"by":"","secret":true,"value":"***","verdict":"done"}`},
		{&history.ToolStarted{Tool: "t", Args: machine.Values{"pin": "12", "n": int64(12)}, SecretArgs: []string{"pin"}},
			`{"args":{"n":12,"pin":"***"},"secret_args":["pin"],"tool":"t"}`},
		{&history.ToolFinished{Tool: "t", Args: machine.Values{"pin": "12"}, SecretArgs: []string{"pin"}, Secret: true,
			Result: tool.Result{Status: tool.OK, Value: "12"}},
			`{"args":{"pin":"***"},"ms":0,"result":{"status":"ok","value":"***"},"secret":true,"secret_args":["pin"],"tool":"t"}`},
		{&history.Asked{Kind: history.KindApproval, Question: "abcdef?", Args: machine.Values{"pin": "12"}, SecretArgs: []string{"pin"}},
			`{"args":{"pin":"***"},"kind":"approval","question":"***?","schema":null,"secret_args":["pin"]}`},
		{&history.Transition{Outcome: "fail", Problem: machine.Problem{Kind: "failed", Message: `no "xx-123456"`}},
			`{"branch":0,"error":{"kind":"failed","message":"no \"***\""},"from":"","outcome":"fail","to":""}`},
		{&history.RunFinished{Output: machine.Values{"abcdef": "YWJjZGVm"}}, `{"output":{"***":"***"},"status":""}`},
		{&history.Unknown{Name: "later", Raw: []byte(`{"a":["abcdef",12]}`)}, `{"a":["***",12]}`},
	} {
		ev := history.Event{Seq: 3, State: "s", Key: "1.0", Data: tc.data}
		row, err := history.Encode(ev, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := string(row.Data)
		got := m.Row(row)
		if string(got.Data) != tc.want || got.Seq != 3 || got.Key != "1.0" {
			t.Errorf("%s is shown as\n%s, want\n%s", tc.data.Type(), got.Data, tc.want)
		}
		again, err := history.Encode(m.Event(ev), nil)
		if v, _ := machine.DecodeValue(again.Data); err != nil || !strings.Contains(tc.want, "***") == strings.Contains(string(again.Data), "***") {
			t.Errorf("%s as an event is shown as %v (%v)", tc.data.Type(), v, err)
		}
		if after, _ := history.Encode(ev, nil); string(after.Data) != before {
			t.Errorf("%s was changed to %s", tc.data.Type(), after.Data)
		}
	}
}

// Numbers that are no values of the run stay numbers, though they look like a secret.
func TestMaskLeavesFigures(t *testing.T) {
	m := started().With(nil, "100000")
	ev := m.Event(history.Event{Seq: 1, Data: &history.ToolFinished{MS: 100000, Args: machine.Values{"n": int64(100000)}}})
	d, ok := ev.Data.(*history.ToolFinished)
	if !ok || d.MS != 100000 || !reflect.DeepEqual(d.Args, machine.Values{"n": "***"}) {
		t.Errorf("the event is shown as %+v", ev.Data)
	}
}

func TestMaskOfDamagedData(t *testing.T) {
	m := started()
	if got := m.Row(store.Event{Type: "said", Data: []byte(`{"text":"abcdef`)}); string(got.Data) != `{"text":"***` {
		t.Errorf("got %s", got.Data)
	}
	rows := []store.Event{{Type: "var_set", Data: []byte(`{`)}, {Type: "var_set", Data: []byte(`{"name":"x","value":"qwertz","secret":true}`)}}
	if got := (*history.Mask)(nil).AfterRows(rows).Text("a qwertz"); got != "a ***" {
		t.Errorf("behind a damaged event: %s", got)
	}
}

func TestNoMaskChangesNothing(t *testing.T) {
	var none *history.Mask
	if none.After(&history.VarSet{Name: "a", Value: "abcdef"}) != nil || none.With(nil) != nil {
		t.Error("a mask was made of nothing")
	}
	ev := history.Event{Data: &history.Said{Text: "abcdef"}}
	if got := none.Event(ev); !reflect.DeepEqual(got, ev) || none.Text("a") != "a" || none.Hides("a") {
		t.Errorf("got %+v", got)
	}
}

// A mask is part of the checkpoint, and so is which messages no model is shown.
func TestMaskInCheckpoint(t *testing.T) {
	events := []history.Event{
		{Seq: 1, Data: &history.RunStarted{Secrets: []string{"pin"}, Message: "message", Inputs: machine.Values{"message": "hello"}}},
		{Seq: 2, State: "s", Step: 1, Visit: 1, Data: &history.StateEntered{}},
		{Seq: 3, Key: "1.0", Data: &history.Asked{Kind: history.KindAsk, Question: "pin?", Secret: true}},
		{Seq: 4, Key: "1.0", Data: &history.Answered{Value: "hunter2", Text: "hunter2", Secret: true}},
		{Seq: 5, Data: &history.VarSet{Name: "pin", Value: "hunter2", Secret: true}},
		{Seq: 6, Data: &history.VarSet{Name: "pin", Value: nil, Secret: true}},
	}
	snap, err := history.Fold(history.New("run"), events)
	if err != nil {
		t.Fatal(err)
	}
	data, err := snap.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if snap, err = history.FromCheckpoint(data); err != nil {
		t.Fatal(err)
	}
	if got := snap.Mask.Text("it was hunter2"); got != "it was ***" || !snap.Mask.Hides("pin") {
		t.Errorf("out of the checkpoint comes %q", got)
	}
	var secrets []bool
	for _, msg := range snap.Talk.Messages {
		secrets = append(secrets, msg.Secret)
	}
	if !reflect.DeepEqual(secrets, []bool{false, false, true}) {
		t.Errorf("secret messages: %v", secrets)
	}
}

func TestMaskMinimum(t *testing.T) {
	m := started().With(nil, "short", "längst", "  padded  ")
	if got := m.Text("short längst padded"); got != "short *** ***" {
		t.Errorf("got %q (values from %d characters on are found)", got, secret.MinMasked)
	}
}

package engine

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

func (c *batchCall) denied() *tool.Result {
	return &tool.Result{Status: tool.Refused, Problem: machine.Problem{Kind: "denied", Message: c.words.denied(c.Tool, c.approved.Text)}}
}

// doubtful says whether the call may have happened already: a write that was started and has no result, or one equal to
// a call of this run whose result is unknown.
func (c *batchCall) doubtful(unknown []string) bool {
	switch {
	case c.redo || c.effect() != machine.EffectWrite:
		return false
	case c.open:
		return true
	}
	return slices.Contains(unknown, history.CallKey(c.Tool, c.prepared.Values))
}

// questions gives what has to be asked; waiting says that something is asked already.
func (b *batch) questions() (questions []history.Event, waiting bool, err error) {
	for _, c := range b.open() {
		if c.pending {
			waiting = true
			continue
		}
		if c.doubtful(b.st.snap.Unknown) && c.prepared.Tool.Spec.InDoubt != machine.InDoubtRetry {
			questions = append(questions, c.doubt(b.st.mask()))
			continue
		}
		needed, err := b.needsApproval(c)
		if err != nil {
			return nil, false, err
		}
		if !needed {
			continue
		}
		asked := c.approval(b.st.mask())
		if !b.st.snap.Now.Env.ApproveAll {
			questions = append(questions, asked)
			continue
		}
		yes := history.Event{Key: asked.Key, Data: &history.Answered{Value: true, By: history.ByFlag}}
		if err := b.record(asked, yes); err != nil {
			return nil, false, err
		}
	}
	return questions, waiting, nil
}

func (b *batch) needsApproval(c *batchCall) (bool, error) {
	a := c.prepared.Tool.Spec.Approval
	if c.approved != nil || c.started > 0 || !a.Required && a.When == nil {
		return false, nil
	}
	if a.When == nil {
		return true, nil
	}
	facts := b.st.facts()
	facts.Args, facts.Hidden = c.prepared.Values, len(c.SecretArgs) > 0
	v, err := a.When.Eval(facts)
	return err != nil || v == true, nil // what cannot be decided, such as of an argument that was left out, a human decides
}

func (c *batchCall) approval(mask *history.Mask) history.Event {
	return history.Event{Key: c.key + "/approval", Data: &history.Asked{Kind: history.KindApproval,
		Question: c.words.approve(c.Tool, mask.Args(c.prepared.Values, c.SecretArgs)),
		Schema:   machine.Values{"type": "boolean"}, Tool: c.Tool, Args: c.prepared.Values, SecretArgs: c.SecretArgs}}
}

func (c *batchCall) doubt(mask *history.Mask) history.Event {
	key := c.key + "/in_doubt"
	if c.doubts > 0 {
		key = fmt.Sprintf("%s%d", key, c.doubts+1)
	}
	question := c.words.doubt(c.Tool, mask.Args(c.prepared.Values, c.SecretArgs))
	if c.failed.Message != "" { // what is known of how it went
		question += "\n" + mask.Text(c.failed.Message)
	}
	return history.Event{Key: key, Data: &history.Asked{Kind: history.KindInDoubt,
		Question: question, Schema: machine.Values{"enum": []machine.Value{"done", "not_done", "give_up"}},
		Tool: c.Tool, Args: c.prepared.Values, SecretArgs: c.SecretArgs, Secret: c.SecretResult}}
}

// unseen is the refusal of arguments some of which nobody is shown: it says what it says of the masks in their place.
func (c *batchCall) unseen(set *tool.Set) *tool.Result {
	masked := c.Call
	if args, ok := c.Args.(machine.Values); ok {
		masked.Args = (*history.Mask)(nil).Args(args, c.SecretArgs)
	}
	if _, refusal := prepare(set, masked); refusal != nil {
		return refusal
	}
	return refusedResult("%s was not run: a secret argument (%s) does not fit", c.Tool, strings.Join(c.SecretArgs, ", "))
}

// mask is the run's, for the goroutines of calls.
func (b *batch) mask() *history.Mask {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.st.s.head.Mask
}

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/looplab/fsm"

	"flowctl/flows/machine"
)

// runFSM is the machine that runs: one looplab FSM, owned by the one goroutine that advances the run. machine.Next
// chooses the branch; the FSM fires it and commits the transition before it moves, so it stands where the store says the
// run stands.
type runFSM struct {
	fsm  *fsm.FSM
	move machine.Move // the move under way, for the callback
}

// newRunFSM builds the FSM of a compiled machine, placed in state. commit stores a transition.
//
// Its events are named outcome#branch, so that the guarded branches of one outcome stay apart.
func newRunFSM(m *machine.Machine, state string, commit func(machine.Move) error) *runFSM {
	r := &runFSM{}
	callbacks := fsm.Callbacks{"before_event": func(_ context.Context, ev *fsm.Event) {
		if err := commit(r.move); err != nil {
			ev.Cancel(err)
		}
	}}
	r.fsm = fsm.NewFSM(state, fsmEvents(m), callbacks)
	return r
}

func fsmEvents(m *machine.Machine) []fsm.EventDesc {
	var events []fsm.EventDesc
	for _, item := range m.States {
		s := item.Value
		for outcome, branches := range s.Transitions {
			for i, b := range branches {
				events = append(events, fsm.EventDesc{Name: machine.EventName(outcome, i), Src: []string{s.Name}, Dst: b.To})
			}
		}
		if s.End() {
			continue
		}
		for _, in := range m.Interrupts {
			events = append(events, fsm.EventDesc{Name: machine.EventName(machine.InterruptOutcome(in.Name), 0),
				Src: []string{s.Name}, Dst: in.Value.Branch.To})
		}
	}
	return events
}

// fire moves the machine along a transition, which is durable when fire returns nil. After an error the FSM is of no use
// any more and is thrown away with the rest of the run's memory.
//
// Two traits of looplab/fsm v1.0.3 are met here: a context that is cancelled during a transition leaves the FSM stuck for
// good, so it gets one that is never cancelled; and a transition of a state to itself returns a NoTransitionError, which
// is success when it wraps nothing.
func (r *runFSM) fire(move machine.Move) error {
	r.move = move
	err := r.fsm.Event(context.Background(), move.Event())
	var same fsm.NoTransitionError
	if errors.As(err, &same) {
		err = same.Err
	}
	var cancelled fsm.CanceledError
	if errors.As(err, &cancelled) && cancelled.Err != nil {
		err = cancelled.Err
	}
	if err != nil {
		return err
	}
	if at := r.fsm.Current(); at != move.To {
		return fmt.Errorf("the machine moved to %s by %s, expected %s", at, move.Event(), move.To)
	}
	return nil
}

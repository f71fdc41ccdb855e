package states

import (
	"flowctl/engine"
)

// The labels of exchanges with a model in the history. A run that waits finds its exchanges by them.
const (
	labelClassify = "classify"
	labelExtract  = "extract"
	labelPlan     = "plan"
	labelAct      = "act"
	labelConclude = "conclude"
)

// think lets a model call tools and read what they give until it answers, in at most the state's turns. Then it is asked
// once more, without tools: an answer counts, and without one the turns are used up (kind turns). A state without tools
// is asked once. The task's label and tools are set here.
func think(step *engine.Step, task engine.Task) (engine.Generation, error) {
	task.Label, task.Tools = labelAct, len(step.State().Tools) > 0
	if !task.Tools {
		return step.Generate(task)
	}
	for range step.Turns() {
		got, err := step.Generate(task)
		if err != nil || len(got.Calls) == 0 {
			return got, err
		}
		if _, err := step.Call(got.Calls...); err != nil { // what came of them is for the model to read
			return engine.Generation{}, err
		}
	}
	w := language(step)
	task.Label, task.Tools = labelConclude, false
	task.Text += "\n\n" + w.concludeNow()
	got, err := step.Generate(task)
	if err == nil && got.Problem.Kind == kindInvalid {
		got.Problem = problemf(kindTurns, "%s", w.turnsUsedUp(step.Turns()))
	}
	return got, err
}

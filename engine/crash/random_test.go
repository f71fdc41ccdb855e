package crash_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// A program is what a handler does: one letter is one thing.
//
//	s says, v sets a variable, n leaves a note, r reads, w and i call a tool that writes or is idempotent, d writes directly,
//	a needs an approval, x calls a tool that is not there, b makes a batch of all, q asks, c asks for yes or no
type program string

// handle does what the program says; what it does depends on what it was answered.
func (p program) handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	random := step.Random()
	heard := fmt.Sprint(step.Now().UnixMilli())
	for i, do := range p {
		got, err := p.do(step, do, fmt.Sprintf("%d-%d-%s", i, random.IntN(100), shortened(heard)))
		if err != nil {
			return "", err
		}
		heard += got
	}
	if err := step.Set("seen", shortened(heard)); err != nil {
		return "", err
	}
	if step.Visit() < 2 {
		return machine.Fail, fmt.Errorf("once more after %s", shortened(heard))
	}
	return machine.Success, nil
}

func shortened(s string) string {
	if len(s) > 20 {
		return s[len(s)-20:]
	}
	return s
}

func (p program) do(step *engine.Step, do rune, word string) (string, error) {
	args := machine.Values{"text": word}
	switch do {
	case 's':
		return "", step.Say(word)
	case 'v':
		return "", step.Set("seen", word)
	case 'n':
		return "", step.Note(word)
	case 'q':
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: word})
		return ans.Text, err
	case 'c':
		ans, err := step.Ask(engine.Question{Kind: history.KindConfirm, Text: word})
		return fmt.Sprint(ans.Yes()), err
	}
	names := map[rune]string{'r': "look", 'w': "write", 'i': "again", 'd': "write", 'a': "pay", 'x': "nowhere"}
	calls := []engine.Call{{Tool: names[do], Args: args, Direct: do == 'd'}}
	if do == 'b' {
		calls = nil
		for _, one := range "rwaxird" {
			calls = append(calls, engine.Call{Tool: names[one], Args: args, Direct: one == 'd'})
		}
	}
	results, err := step.Call(calls...)
	said := ""
	for _, res := range results {
		said += string(res.Status[0]) + machine.FormatValue(res.Value)
	}
	return said, err
}

// Whatever a handler does, and wherever its process dies, the run ends as if nothing had happened, and no write runs twice.
func TestRandomProgramsSurviveEveryCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := program(rapid.StringOfN(rapid.RuneFrom([]rune("svnrwidaxbqc")), 1, 6, -1).Draw(t, "program"))
		_, err := crash.Run(context.Background(), crash.Scenario{
			World: func() (crash.World, error) {
				w := newWorld()
				w.handle = p.handle
				state, _ := w.m.State(effects)
				state.Transitions[machine.Fail] = []machine.Branch{{To: effects}}
				return w, nil
			},
			Answer: func(w crash.World, q history.Question) engine.Reply {
				switch q.Kind {
				case history.KindConfirm, history.KindApproval:
					yes := len(q.Question)%3 != 0
					return engine.Reply{Yes: &yes}
				}
				return doubts(w, q)
			},
			Check: func(cw crash.World) error {
				for key, n := range cw.(*world).writes {
					if n != 1 {
						return fmt.Errorf("write %s ran %d times", key, n)
					}
				}
				return nil
			},
		})
		if err != nil {
			t.Fatalf("program %s: %v", p, err)
		}
	})
}

// A tool that is refused, fails or breaks down is a result as any other.
func TestTroubleOfToolsSurvivesEveryCrash(t *testing.T) {
	_, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			w := newWorld()
			w.fail = func(spec machine.ToolSpec) error {
				switch spec.Name {
				case "look":
					panic("it broke")
				case "again":
					return tool.Unavailablef("it is closed")
				}
				return nil
			}
			w.handle = func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				results, err := step.Call(engine.Call{Tool: "look", Args: machine.Values{"text": "a"}}, engine.Call{Tool: "write"},
					engine.Call{Tool: "again", Args: machine.Values{"text": "b"}})
				if err != nil {
					return "", err
				}
				var words []string
				for _, res := range results {
					words = append(words, string(res.Status))
				}
				if got := strings.Join(words, " "); got != "failed refused unavailable" {
					return "", fmt.Errorf("results %s", got)
				}
				return machine.Success, nil
			}
			return w, nil
		},
		Answer: doubts,
	})
	if err != nil {
		t.Fatal(err)
	}
}

package crash

import (
	"fmt"
	"strings"

	"flowctl/engine/history"
)

// compare says how the history of a broken run differs from the whole one, leaving aside what tells of the interruption
// itself, times and durations.
func compare(whole, broken []history.Event) error {
	a, err := lines(whole)
	if err != nil {
		return err
	}
	b, err := lines(broken)
	if err != nil {
		return err
	}
	for i := range max(len(a), len(b)) {
		if i < len(a) && i < len(b) && a[i] == b[i] {
			continue
		}
		return fmt.Errorf("the histories differ at entry %d:\nunbroken: %s\nbroken:   %s", i+1, at(a, i), at(b, i))
	}
	return nil
}

func at(lines []string, i int) string {
	if i >= len(lines) {
		return "(it ended)"
	}
	return lines[i]
}

// lines gives each event that counts as one line.
func lines(events []history.Event) ([]string, error) {
	var out []string
	started := map[string]bool{}
	doubt := false // the event before asked about a doubt
	for _, ev := range events {
		skip := false
		switch d := ev.Data.(type) {
		case *history.RunResumed, *history.DoubtResolved:
			skip = true
		case *history.Asked:
			doubt = d.Kind == history.KindInDoubt
			skip = doubt
		case *history.RunWaiting:
			skip, doubt = doubt, false
		case *history.ToolStarted:
			skip = started[ev.Key]
			started[ev.Key] = true
		case *history.ToolFinished:
			same := *d
			same.MS = 0
			ev.Data = &same
		case *history.ModelCalled:
			same := *d
			same.MS = 0
			ev.Data = &same
		case *history.AttemptFailed:
			skip = d.Model != "" || d.Attempt > 0 // another life may find things in order
		}
		if skip {
			continue
		}
		line, err := text(ev)
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

func text(ev history.Event) (string, error) {
	row, err := history.Encode(ev, nil)
	if err != nil {
		return "", err
	}
	data := string(row.Data)
	if d, ok := ev.Data.(*history.Asked); ok && d.Due != nil {
		data = strings.Replace(data, d.Due.Format("2006-01-02T15:04:05.999999999Z07:00"), "(due)", 1)
	}
	return fmt.Sprintf("%s %s#%d step %d %s %s", row.Type, ev.State, ev.Visit, ev.Step, ev.Key, data), nil
}

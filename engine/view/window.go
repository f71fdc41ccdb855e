package view

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
)

// Window is the room for the messages of a request.
type Window struct {
	Counter   tokens.Counter
	Limit     int64 // tokens
	Flat      bool  // calls are told as text
	Reasoning bool  // reasoning is sent back

	// Summary stands in the place of the messages of Covers, "" for none.
	Summary string
	Covers  []history.Range
}

// Fitted is what of the messages is sent.
type Fitted struct {
	Messages []history.Message // in their order; those of Cut are shortened
	Summary  string            // stands before them
	Covers   []history.Range   // by the summary that was there, where it still holds
	Cut      []Cut
	// Left are messages that do not fit any more, oldest first: they are not among Messages. A summary of them, and of what
	// the present one covers, may take their place.
	Left []history.Message
}

// Cut is a message that was shortened.
type Cut struct {
	N       int64
	Content history.Content
}

// BudgetError is a layer that cannot be made to fit.
type BudgetError struct {
	Layer       string // system, task or recent, as view.budget names them
	Need, Limit int64  // tokens: the least it takes, and what there is
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the %s layer of the request takes at least %d tokens, and there is room for %d", e.Layer, e.Need, e.Limit)
}

// Fit chooses what of the messages is sent. What has to go goes from the front, in whole exchanges: calls and their results
// stay or go together. The newest exchange and the human's last message stay in any case, shortened inside where they are
// too large. Once something has to go, half of the window is made free, so that it does not move with every turn. A
// *BudgetError says that not even the shortest form has room.
func Fit(messages []history.Message, w Window) (Fitted, error) {
	covered, ok := coveredBy(messages, w.Covers)
	if !ok {
		w.Summary, w.Covers, covered = "", nil, nil
	}
	rest := slices.DeleteFunc(slices.Clone(messages), func(m history.Message) bool { return covered[m.N] })
	groups := units(rest)
	costs := make([]int64, len(groups))
	total := w.summaryCost()
	for i, unit := range groups {
		costs[i] = w.Cost(unit)
		total += costs[i]
	}
	out := Fitted{Summary: w.Summary, Covers: w.Covers}
	if total <= w.Limit {
		out.Messages = rest
		return out, nil
	}
	keep := w.keep(groups, costs)
	for i, unit := range groups {
		if keep[i] {
			out.Messages = append(out.Messages, unit...)
		} else {
			out.Left = append(out.Left, unit...)
		}
	}
	return out, w.shorten(&out)
}

// coveredBy gives the numbers that a summary covers. It is not ok where the summary tells of a message that is not shown any
// more: then the summary must not be shown either.
func coveredBy(messages []history.Message, ranges []history.Range) (map[int64]bool, bool) {
	shown := make(map[int64]bool, len(messages))
	for _, msg := range messages {
		shown[msg.N] = true
	}
	covered := map[int64]bool{}
	for _, r := range ranges {
		for n := r.From; n <= r.To; n++ {
			if !shown[n] {
				return nil, false
			}
			covered[n] = true
		}
	}
	return covered, true
}

// SummaryPart is the part of the window, one of so many, that a summary may take.
const SummaryPart = 4

// keep says which units stay: the newest, the human's last message, and from the newest on what fits into half the window.
func (w Window) keep(groups [][]history.Message, costs []int64) []bool {
	keep := make([]bool, len(groups))
	used := int64(0)
	take := func(i int) {
		if !keep[i] {
			keep[i] = true
			used += costs[i]
		}
	}
	for i := len(groups) - 1; i >= 0; i-- {
		if msg := groups[i][0]; msg.Role == history.RoleHuman && strings.TrimSpace(msg.Text) != "" {
			take(i)
			break
		}
	}
	for i := len(groups) - 1; i >= 0; i-- {
		if i < len(groups)-1 && used+costs[i] > w.Limit/2 {
			break
		}
		take(i)
	}
	return keep
}

func (w Window) summaryCost() int64 {
	if w.Summary == "" {
		return 0
	}
	return tokens.Message(w.Counter, model.Message{Role: model.User, Text: w.Summary}, false)
}

// Cost gives the tokens of some messages as they are sent.
func (w Window) Cost(messages []history.Message) int64 {
	b := builder{flat: w.Flat}
	b.talk(messages)
	var n int64
	for _, m := range b.out {
		n += tokens.Message(w.Counter, m, w.Reasoning)
	}
	return n
}

// shorten cuts the texts of what stays until it fits. The summary goes first, where it leaves no room.
func (w Window) shorten(out *Fitted) error {
	limit := w.Limit - w.summaryCost()
	if w.Cost(out.Messages) <= limit {
		return nil
	}
	short := make([]history.Message, len(out.Messages))
	frame := func() int64 {
		for i, msg := range out.Messages {
			short[i] = shortened(msg, w.Counter, 0)
		}
		return w.Cost(short)
	}()
	if frame > limit {
		limit, out.Summary = w.Limit, ""
	}
	if frame > limit {
		return &BudgetError{Layer: "recent", Need: frame, Limit: w.Limit}
	}
	share := fairShare(w.sizes(out.Messages), limit-frame+w.marks(out.Messages))
	for ; ; share -= share/8 + 1 { // texts and their marks may have some tokens more than was reckoned
		for i, msg := range out.Messages {
			short[i] = shortened(msg, w.Counter, max(share, 0))
		}
		if share <= 0 || w.Cost(short) <= limit {
			break
		}
	}
	for i, msg := range out.Messages {
		if !sameContent(short[i].Content, msg.Content) {
			out.Cut = append(out.Cut, Cut{N: msg.N, Content: short[i].Content})
		}
		out.Messages[i] = short[i]
	}
	return nil
}

// marks gives the tokens that the marks of the shortest form take, which the texts themselves may have in their place.
func (w Window) marks(messages []history.Message) int64 {
	mark, n := w.Counter.Count(cutMark), int64(0)
	for _, size := range w.sizes(messages) {
		n += min(size, mark)
	}
	return n
}

// sizes gives the tokens of all texts of messages.
func (w Window) sizes(messages []history.Message) []int64 {
	var sizes []int64
	for _, msg := range messages {
		sizes = append(sizes, w.Counter.Count(msg.Text))
		if w.Reasoning {
			sizes = append(sizes, w.Counter.Count(msg.Reasoning))
		}
		for _, call := range msg.Made {
			sizes = append(sizes, w.Counter.Count(call.Args))
		}
	}
	return sizes
}

// fairShare gives the largest share such that all sizes, none counted for more than the share, fit into the room.
func fairShare(sizes []int64, room int64) int64 {
	slices.Sort(sizes)
	for i, size := range sizes {
		left := int64(len(sizes) - i)
		if size*left > room {
			return room / left
		}
		room -= size
	}
	return room
}

func sameContent(a, b history.Content) bool {
	return a.Text == b.Text && a.Reasoning == b.Reasoning && slices.Equal(a.Made, b.Made)
}

// cutMark is what is left of a text for which there is no room at all.
const cutMark = "[cut]"

// shortened gives a message whose texts have at most share tokens each. Arguments that are cut are an object still, since
// endpoints want one. Reasoning is left out where it is too long: it must go back as it came, or not at all.
func shortened(msg history.Message, c tokens.Counter, share int64) history.Message {
	out := msg
	out.Text = shortText(msg.Text, c, share)
	if c.Count(msg.Reasoning) > share {
		out.Reasoning = ""
	}
	out.Made = slices.Clone(msg.Made)
	for i, call := range out.Made {
		if c.Count(call.Args) <= share {
			continue
		}
		args, err := machine.EncodeValue(machine.Values{"cut": shortText(call.Args, c, share/2)})
		if err != nil || c.Count(string(args)) > share { // quoting may have made it longer
			args = []byte("{}")
		}
		out.Made[i].Args = string(args)
	}
	return out
}

func shortText(text string, c tokens.Counter, share int64) string {
	if text == "" || c.Count(text) <= max(share, c.Count(cutMark)) {
		return text
	}
	if cut, ok := tokens.Cut(c, text, share); ok {
		return cut
	}
	return cutMark
}

package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// startBeating makes sure that the heartbeat goroutine runs while this process holds a run. The caller holds e.mu.
func (e *Engine) startBeating() {
	if e.stopBeating != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stopBeating = cancel
	e.beats.Go(func() {
		ticker := time.NewTicker(e.cfg.Beat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				e.beat()
			}
		}
	})
}

// restIfIdle ends the heartbeat goroutine when this process holds no run any more. The caller holds e.mu.
func (e *Engine) restIfIdle() {
	if len(e.sessions) == 0 && e.stopBeating != nil {
		e.stopBeating()
		e.stopBeating = nil
	}
}

// beatAgain beats unless the newest heartbeat is younger than the time between two: before it makes a run this process
// must be known to be alive, and a process that makes many runs need not say so for each.
func (e *Engine) beatAgain() {
	e.mu.Lock()
	young := !e.beaten.IsZero() && e.now().Sub(e.beaten) < e.cfg.Beat
	e.mu.Unlock()
	if !young {
		e.beat()
	}
}

// beat tells the store that this process is alive and hands out the notices for its runs.
func (e *Engine) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Stale)
	defer cancel()
	worker := e.cfg.Worker
	worker.Beat = e.now()
	notices, err := e.cfg.Store.Beat(ctx, worker)
	if err != nil {
		e.cfg.Log.Warn().Err(err).Msg("the heartbeat was not stored")
		return
	}
	e.mu.Lock()
	e.beaten = worker.Beat
	e.mu.Unlock()
	for _, n := range notices {
		e.mu.Lock()
		s := e.sessions[n.Run]
		e.mu.Unlock()
		if s != nil {
			s.deliver([]store.Notice{n})
		}
	}
}

// deliver puts notices into the session's mail. A cancel ends the work under way.
func (s *session) deliver(notices []store.Notice) {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	for _, n := range notices {
		if s.seen[n.ID] {
			continue
		}
		s.seen[n.ID] = true
		s.mail = append(s.mail, n)
		if n.Kind == store.NoticeCancel && s.stop != nil {
			s.stop(errCancelled)
		}
	}
}

// cancelNotice gives the notice that cancels the run, nil if there is none. The caller holds mailMu.
func (s *session) cancelNotice() *store.Notice {
	for i := range s.mail {
		if s.mail[i].Kind == store.NoticeCancel {
			return &s.mail[i]
		}
	}
	return nil
}

// raiseNotice and signalNotice are the data of notices. Token tells the sender's event from others.
type raiseNotice struct {
	Limit string  `json:"limit"`
	By    float64 `json:"by"`
	Token string  `json:"token"`
}

type signalNotice struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	Token string          `json:"token"`
}

// takeMail gives the waiting notices that a commit takes up, and their ids. A cancel stays until the commit that ends
// the run, which takes up all there is.
func (s *session) takeMail(c change) (taken []store.Notice, consumed []int64) {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	ends := false
	for _, ev := range c.events {
		if _, ok := ev.Data.(*history.RunFinished); ok {
			ends = true
		}
	}
	var stay []store.Notice
	for _, n := range s.mail {
		if n.Kind == store.NoticeCancel && !ends {
			stay = append(stay, n)
			continue
		}
		taken, consumed = append(taken, n), append(consumed, n.ID)
	}
	s.mail = stay
	return taken, consumed
}

// putBack returns notices to the mail whose commit did not happen.
func (s *session) putBack(notices []store.Notice) {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	s.mail = append(notices, s.mail...)
}

// withNotices puts what notices say before the events of a commit, but behind the take-up that it may begin with.
func withNotices(events []history.Event, notices []store.Notice) []history.Event {
	if len(notices) == 0 {
		return events
	}
	at := 0
	if len(events) > 0 && events[0].Data.Type() == history.TypeRunResumed {
		at = 1
	}
	return slices.Concat(events[:at], noticeEvents(notices), events[at:])
}

func noticeEvents(notices []store.Notice) []history.Event {
	var events []history.Event
	for _, n := range notices {
		if ev, ok := noticeEvent(n); ok {
			events = append(events, ev)
		}
	}
	return events
}

// noticeEvent is what a notice says in the history; a notice that cannot be read is dropped.
func noticeEvent(n store.Notice) (history.Event, bool) {
	switch n.Kind {
	case store.NoticeRaise:
		var d raiseNotice
		if json.Unmarshal(n.Data, &d) == nil {
			return history.Event{Data: &history.LimitRaised{Limit: d.Limit, By: d.By, Notice: d.Token}}, true
		}
	case store.NoticeSignal:
		var d signalNotice
		if json.Unmarshal(n.Data, &d) != nil {
			return history.Event{}, false
		}
		var v machine.Value
		if len(d.Value) > 0 {
			var err error
			if v, err = machine.DecodeValue(d.Value); err != nil {
				return history.Event{}, false
			}
		}
		return history.Event{Data: &history.Signalled{Name: d.Name, Value: v, Notice: d.Token}}, true
	}
	return history.Event{}, false
}

// takeRaises takes up notices that wait, so that a raised limit counts before it is checked.
func (s *session) takeRaises() error {
	if !s.hasMail() {
		return nil
	}
	return s.commit(change{})
}

// hasMail says whether notices wait that the next commit takes up.
func (s *session) hasMail() bool {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	for _, n := range s.mail {
		if n.Kind != store.NoticeCancel {
			return true
		}
	}
	return false
}

// raising gives by how much notices that wait raise a limit.
func (s *session) raising(limit string) float64 {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	by := 0.0
	for _, ev := range noticeEvents(s.mail) {
		if d, ok := ev.Data.(*history.LimitRaised); ok && d.Limit == limit {
			by += d.By
		}
	}
	return by
}

// finishCancelled is the change that ends a run which somebody cancelled. Calls that are still open are recorded as
// unknown with it.
func (s *session) finishCancelled() change {
	events := append(s.roused(), s.openUnknown()...)
	events = append(events, history.Event{Data: &history.RunFinished{Status: store.Cancelled, Reason: "cancelled"}})
	return change{events: events, release: true}
}

// openUnknown records the calls that were started and have no result: nobody knows how they ended.
func (s *session) openUnknown() []history.Event {
	var events []history.Event
	for _, c := range s.head.Open {
		d := &history.ToolFinished{Tool: c.Tool, Args: c.Args, Call: c.Call, SecretArgs: c.SecretArgs,
			Result: *unknownResult(s.words(), c.Tool)}
		if s.m != nil {
			spec, _ := s.m.Tools.Get(c.Tool)
			d.Effect = spec.Effect
		}
		events = append(events, history.Event{Key: c.Key, Data: d})
	}
	return events
}

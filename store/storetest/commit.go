package storetest

import (
	"context"
	"time"

	"flowctl/store"
)

var commitTests = []test{
	{"creates a run", func(b *bench) {
		cost := 0.25
		c := creation("r")
		c.Run.Parent, c.Run.Owner, c.Run.Due = "parent", "ann", at(99)
		c.Run.Holder = worker("w", 0) // only its id is read
		c.Run.Usage = store.Usage{Steps: 1, ModelCalls: 2, ToolCalls: 3, PromptTokens: 4, CompletionTokens: 5, Cost: &cost}
		c.Epoch = 7
		c.Events = append(c.Events, store.Event{Seq: 2, At: at(20), Type: "asked", State: "talk", Visit: 3, Step: 4, Key: "4.0/x",
			Data: []byte(`{"a":"é 猫","b":[1,null]}`)})
		b.commit(c)
		want := c.Run
		want.Seq, want.Epoch, want.Updated, want.Holder = 2, 7, at(20), store.Worker{ID: "w"}
		b.same("row", b.run("r"), want)
		b.same("events", b.events("r"), c.Events)
	}},
	{"creates a run once", func(b *bench) {
		b.create("r")
		again := creation("r")
		again.Run.State, again.Epoch, again.Events = "other", 5, []store.Event{event(1), event(2)}
		b.refused(again, store.ErrExists)
	}},
	{"appends and replaces the row", func(b *bench) {
		r := b.create("r")
		cost := 1.5
		c := next(r, 3)
		c.Run.Flow, c.Run.FlowHash, c.Run.Dir, c.Run.State = "other", "sha256:g", "/elsewhere", "work"
		c.Run.Status, c.Run.Parent, c.Run.Owner, c.Run.Due = store.Waiting, "p", "bob", at(500)
		c.Run.Usage = store.Usage{Steps: 9, Cost: &cost}
		b.commit(c)
		want := c.Run
		want.Seq, want.Updated = 4, at(4)
		b.same("row", b.run("r"), want)
		b.same("events", b.events("r"), []store.Event{event(1), event(2), event(3), event(4)})
		c = next(want, 1) // and back: nothing of the old row stays behind
		c.Run.Status, c.Run.Parent, c.Run.Owner, c.Run.Due, c.Run.Usage = store.Running, "", "", time.Time{}, store.Usage{}
		b.commit(c)
		want = c.Run
		want.Seq, want.Updated = 5, at(5)
		b.same("row", b.run("r"), want)
	}},
	{"keeps id, creation, holder and epoch", func(b *bench) {
		b.create("r")
		before := b.claim("r", "w", 10).Run
		c := next(before, 1)
		c.Run.Created, c.Run.Holder, c.Run.Epoch, c.Run.Seq = at(12345), worker("thief", 0), 99, 99
		b.commit(c)
		want := before
		want.Seq, want.Updated = 2, at(2)
		b.same("row", b.run("r"), want)
	}},
	{"wants the exact seq", func(b *bench) {
		r := b.create("r")
		b.commit(next(r, 2))
		for _, seq := range []int64{1, 2, 4, 100} {
			r.Seq = seq
			b.refused(next(r, 1), store.ErrConflict)
			b.refused(bare(r), store.ErrConflict)
		}
	}},
	{"wants the exact epoch", func(b *bench) {
		r := b.create("r")
		for _, epoch := range []int64{0, 2, -1} {
			r.Epoch = epoch
			b.refused(next(r, 1), store.ErrConflict)
			b.refused(bare(r), store.ErrConflict)
		}
	}},
	{"of a run that is not there is a conflict", func(b *bench) {
		b.refused(next(store.Run{ID: "nobody", Seq: 3, Epoch: 1}, 1), store.ErrConflict)
		b.refused(bare(store.Run{ID: "nobody"}), store.ErrConflict)
		b.same("runs", len(b.list(store.Filter{})), 0)
	}},
	{"numbers events without gaps", func(b *bench) {
		r := b.create("r")
		for _, seqs := range [][]int64{{3}, {1}, {2, 4}, {2, 2}, {0}} {
			c := bare(r)
			for _, seq := range seqs {
				c.Events = append(c.Events, event(seq))
			}
			b.refused(c, nil)
		}
		c := creation("other")
		c.Events[0].Seq = 2
		b.refused(c, nil)
	}},
	{"is all or nothing", func(b *bench) {
		r := b.create("r")
		b.create("friend")
		c := next(r, 1)
		one := int64(1)
		c.Blobs = []store.Blob{{Hash: "h", Data: []byte("x")}}
		c.Post = []store.Notice{{Run: "friend", Kind: store.NoticeChild, At: at(1), Data: []byte(`{}`)}}
		c.Checkpoint = []byte("point")
		c.Memory = []store.MemoryWrite{
			{Namespace: "n", Key: "new", Value: []byte(`1`)},
			{Namespace: "n", Key: "k", Value: []byte(`2`), Expect: &one},
		}
		b.refused(c, nil) // the second memory write expects a version that is not there
		_, err := b.s.Blob(b.ctx, "r", "h")
		b.is("blob of a refused commit", err, store.ErrNotFound)
		b.same("notices of a refused commit", len(b.claim("friend", "w", 1).Notices), 0)
		b.same("checkpoint of a refused commit", b.claim("r", "w", 1).Checkpoint, []byte(nil))
		zero := int64(0)
		c = bare(b.run("r"))
		c.Memory = []store.MemoryWrite{{Namespace: "n", Key: "new", Value: []byte(`1`), Expect: &zero}} // it is still new
		b.commit(c)
	}},
	{"without events keeps the row", func(b *bench) {
		b.create("r")
		b.post("r", `{"a":1}`)
		claimed := b.claim("r", "w", 10)
		c := bare(claimed.Run)
		c.Run = store.Run{ID: "r", Flow: "x", Status: store.Failed, State: "x", Created: at(77), Updated: at(77), Due: at(77),
			Owner: "x", Parent: "x", Seq: 5, Usage: store.Usage{Steps: 3}}
		c.Checkpoint = []byte("point")
		c.Consumed = []int64{claimed.Notices[0].ID}
		c.Post = []store.Notice{{Run: "r", Kind: store.NoticeRaise, At: at(5), Data: []byte(`{"b":2}`)}}
		c.Blobs = []store.Blob{{Hash: "h", Data: []byte("x")}}
		b.commit(c)
		b.same("row", b.run("r"), claimed.Run)
		c.Checkpoint, c.Consumed, c.Post, c.Blobs, c.Release = nil, nil, nil, nil, true
		b.commit(c)
		want := claimed.Run
		want.Holder = store.Worker{}
		b.same("row after the release", b.run("r"), want)
		again := b.claim("r", "other", 11)
		b.same("checkpoint", string(again.Checkpoint), "point")
		b.same("notices", texts(again.Notices), []string{`{"b":2}`})
		blob, err := b.s.Blob(b.ctx, "r", "h")
		b.is("blob", err, nil)
		b.same("blob", string(blob), "x")
	}},
	{"releases together with events", func(b *bench) {
		b.create("r")
		c := next(b.claim("r", "w", 10).Run, 1)
		c.Run.Status, c.Release = store.Waiting, true
		b.commit(c)
		b.same("holder", b.run("r").Holder, store.Worker{})
		b.same("status", b.run("r").Status, store.Waiting)
		b.same("epoch after the next claim", b.claim("r", "other", 11).Epoch, int64(3))
	}},
	{"releases what it creates", func(b *bench) {
		c := creation("r")
		c.Run.Holder, c.Release = worker("w", 0), true
		b.commit(c)
		b.same("holder", b.run("r").Holder, store.Worker{})
	}},
	{"keeps or replaces the checkpoint", func(b *bench) {
		b.create("r")
		for i, step := range []struct {
			put  []byte
			want string
		}{{nil, ""}, {[]byte("one\x00\xff"), "one\x00\xff"}, {nil, "one\x00\xff"}, {[]byte("two"), "two"}, {[]byte{}, ""}} {
			c := next(b.run("r"), 1)
			c.Checkpoint = step.put
			b.commit(c)
			got := b.claim("r", "w", 1)
			b.same("checkpoint", string(got.Checkpoint), step.want)
			b.same("there is a checkpoint", got.Checkpoint != nil, i > 0)
			c = bare(got.Run)
			c.Release = true
			b.commit(c)
		}
	}},
	{"is not done on a cancelled context", func(b *bench) {
		r := b.create("r")
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		b.is("commit", b.s.Commit(ctx, next(r, 1)), context.Canceled)
		_, err := b.s.Claim(ctx, store.Claim{Run: "r", Worker: worker("w", 0), Now: at(0), Stale: stale})
		b.is("claim", err, context.Canceled)
		_, err = b.s.Beat(ctx, worker("w", 0))
		b.is("beat", err, context.Canceled)
		b.is("post", b.s.Post(ctx, store.Notice{Run: "r"}), context.Canceled)
		_, err = b.s.Runs(ctx, store.Filter{})
		b.is("runs", err, context.Canceled)
		_, err = b.s.Events(ctx, "r", 0, 0)
		b.is("events", err, context.Canceled)
		_, err = b.s.Blob(ctx, "r", "h")
		b.is("blob", err, context.Canceled)
		b.is("flow", b.s.PutFlow(ctx, "h", nil), context.Canceled)
		b.same("row", b.run("r"), r)
		b.same("notices", len(b.claim("r", "w", 1).Notices), 0)
	}},
}

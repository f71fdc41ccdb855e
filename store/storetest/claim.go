package storetest

import (
	"time"

	"flowctl/store"
)

var claimTests = []test{
	{"takes a run that nobody holds", func(b *bench) {
		created := b.create("r")
		got := b.claim("r", "w", 10)
		want := created
		want.Epoch, want.Holder = 2, worker("w", 10)
		b.same("claimed row", got.Run, want)
		b.same("stored row", b.run("r"), want)
		b.same("there is a checkpoint", got.Checkpoint != nil, false)
		b.same("notices", len(got.Notices), 0)
	}},
	{"of a run that is not there", func(b *bench) {
		_, err := b.s.Claim(b.ctx, store.Claim{Run: "nobody", Worker: worker("w", 0), Now: at(0), Stale: stale})
		b.is("claim", err, store.ErrNotFound)
	}},
	{"needs a worker with an id", func(b *bench) {
		r := b.create("r")
		if _, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Now: at(0), Stale: stale}); err == nil {
			b.Error("nobody claimed a run")
		}
		if _, err := b.s.Beat(b.ctx, store.Worker{Beat: at(0)}); err == nil {
			b.Error("nobody had a heartbeat")
		}
		b.same("row", b.run("r"), r)
	}},
	{"takes a finished run", func(b *bench) {
		for _, status := range []store.Status{store.Succeeded, store.Failed, store.Cancelled} {
			c := creation(string(status))
			c.Run.Status = status
			b.commit(c)
			b.same("status", b.claim(string(status), "w", 1).Status, status)
		}
	}},
	{"leaves a live worker alone", func(b *bench) {
		b.create("r")
		held := b.claim("r", "w", 0)
		for _, by := range []string{"other", "w"} { // at the very edge of staleness; and the holder itself
			_, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker(by, 1000), Now: at(1000), Stale: stale,
				Gone: func(store.Worker) bool { return false }})
			b.is("claim by "+by, err, store.ErrBusy)
		}
		b.same("row", b.run("r"), held.Run)
		_, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker("w", 9999), Now: at(9999), Stale: stale,
			Gone: func(store.Worker) bool { return true }})
		b.is("claim by the holder, long after its last heartbeat", err, store.ErrBusy)
	}},
	{"takes over from a stale worker", func(b *bench) {
		b.create("r")
		b.claim("r", "w", 0)
		got := b.claim("r", "other", 1001)
		b.same("epoch", got.Epoch, int64(3))
		b.same("holder", got.Holder, worker("other", 1001))
	}},
	{"counts from the newest heartbeat", func(b *bench) {
		b.create("r")
		b.claim("r", "w", 0)
		b.beat(worker("w", 600))
		_, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker("other", 1600), Now: at(1600), Stale: stale})
		b.is("claim", err, store.ErrBusy)
		b.claim("r", "other", 1601)
	}},
	{"writes the claimant's heartbeat", func(b *bench) {
		b.create("one")
		b.create("two")
		b.claim("one", "w", 0)
		b.claim("two", "w", 5000)
		_, err := b.s.Claim(b.ctx, store.Claim{Run: "one", Worker: worker("other", 6000), Now: at(6000), Stale: stale})
		b.is("claim of the first run", err, store.ErrBusy)
	}},
	{"takes over from a worker that is gone", func(b *bench) {
		b.create("r")
		b.claim("r", "w", 0)
		var asked []store.Worker
		got, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker("other", 1), Now: at(1), Stale: stale,
			Gone: func(w store.Worker) bool { asked = append(asked, w); return true }})
		b.is("claim", err, nil)
		b.same("who was asked about", asked, []store.Worker{worker("w", 0)})
		b.same("holder", got.Holder.ID, "other")
	}},
	{"takes over from a worker without heartbeat", func(b *bench) {
		c := creation("r")
		c.Run.Holder = worker("w", 0)
		b.commit(c)
		b.claim("r", "other", 0)
	}},
	{"leaves the creator alone", func(b *bench) {
		b.beat(worker("w", 0))
		c := creation("r")
		c.Run.Holder = store.Worker{ID: "w"}
		b.commit(c)
		b.same("holder", b.run("r").Holder, worker("w", 0))
		_, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker("other", 1), Now: at(1), Stale: stale})
		b.is("claim", err, store.ErrBusy)
	}},
	{"fences the old holder off", func(b *bench) {
		b.create("r")
		old := b.claim("r", "w", 0).Run
		b.commit(next(old, 1))
		old.Seq++
		b.claim("r", "other", 2000)
		b.refused(next(old, 1), store.ErrConflict)
		release := bare(old)
		release.Release = true
		b.refused(release, store.ErrConflict)
		b.same("holder", b.run("r").Holder.ID, "other")
		b.commit(next(b.run("r"), 1))
	}},
	{"of a released run is another epoch", func(b *bench) {
		b.create("r")
		for i := range int64(3) {
			got := b.claim("r", "w", i)
			b.same("epoch", got.Epoch, i+2)
			c := bare(got.Run)
			c.Release = true
			b.commit(c)
		}
	}},
	{"survives a panic of Gone", func(b *bench) {
		b.create("r")
		held := b.claim("r", "w", 0)
		func() {
			defer func() { b.same("panic", recover(), "oh") }()
			_, _ = b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker("other", 1), Now: at(1), Stale: stale,
				Gone: func(store.Worker) bool { panic("oh") }})
		}()
		b.same("row", b.run("r"), held.Run)
		b.commit(next(held.Run, 1))
	}},
	{"keeps times to the millisecond", func(b *bench) {
		b.create("r")
		w := worker("w", 0)
		odd := at(0).Add(999_999 * time.Nanosecond).In(time.FixedZone("east", 3600))
		got, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: w, Now: odd, Stale: stale})
		b.is("claim", err, nil)
		b.same("claimed heartbeat", got.Holder.Beat, at(0))
		b.same("stored heartbeat", b.run("r").Holder.Beat, at(0))
		w.Beat = odd.Add(time.Millisecond)
		b.beat(w)
		b.same("next heartbeat", b.run("r").Holder.Beat, at(1))
	}},
}

var noticeTests = []test{
	{"are kept as they are", func(b *bench) {
		r := b.create("r")
		odd := at(3).Add(7 * time.Microsecond).In(time.FixedZone("east", 3600))
		for _, kind := range []store.NoticeKind{store.NoticeCancel, store.NoticeSignal, store.NoticeRaise, store.NoticeChild} {
			n := store.Notice{ID: 77, Run: "r", Kind: kind, At: odd, Data: []byte(`{"kind":"` + kind + `"}`)}
			b.is("post", b.s.Post(b.ctx, n), nil)
		}
		b.same("row", b.run("r"), r)
		b.same("number of events", len(b.events("r")), 1)
		got := b.claim("r", "w", 1).Notices
		b.same("number of notices", len(got), 4)
		for i, n := range got {
			want := store.Notice{ID: n.ID, Run: "r", Kind: n.Kind, At: at(3), Data: []byte(`{"kind":"` + n.Kind + `"}`)}
			b.same("notice", n, want)
			if i > 0 && n.ID <= got[i-1].ID {
				b.Errorf("notice ids do not rise: %d after %d", n.ID, got[i-1].ID)
			}
		}
	}},
	{"need a run", func(b *bench) {
		n := store.Notice{Run: "nobody", Kind: store.NoticeCancel, At: at(0), Data: []byte(`{}`)}
		b.is("post", b.s.Post(b.ctx, n), store.ErrNotFound)
	}},
	{"come with the heartbeat of the holder", func(b *bench) {
		for _, id := range []string{"one", "two", "foreign", "free"} {
			b.create(id)
		}
		b.claim("one", "w", 0)
		b.claim("two", "w", 0)
		b.claim("foreign", "other", 0)
		for _, id := range []string{"two", "free", "one", "foreign", "two"} {
			b.post(id, `{"to":"`+id+`"}`)
		}
		b.same("notices", texts(b.beat(worker("w", 1))), []string{`{"to":"two"}`, `{"to":"one"}`, `{"to":"two"}`})
		b.same("notices, again", texts(b.beat(worker("w", 2))), []string{`{"to":"two"}`, `{"to":"one"}`, `{"to":"two"}`})
		b.same("notices of the other", texts(b.beat(worker("other", 1))), []string{`{"to":"foreign"}`})
		b.same("notices of one without runs", len(b.beat(worker("third", 1))), 0)
		b.claim("one", "third", 5000)
		b.same("notices after a run was lost", texts(b.beat(worker("w", 5001))), []string{`{"to":"two"}`, `{"to":"two"}`})
	}},
	{"are consumed by their run", func(b *bench) {
		b.create("r")
		b.create("other")
		for _, text := range []string{`1`, `2`, `3`} {
			b.post("r", text)
		}
		b.post("other", `4`)
		r, other := b.claim("r", "w", 0), b.claim("other", "w", 0)
		c := next(r.Run, 1)
		c.Consumed = []int64{r.Notices[2].ID, r.Notices[0].ID, 999999, -1, other.Notices[0].ID}
		b.commit(c)
		b.same("what is left", texts(b.beat(worker("w", 1))), []string{`2`, `4`})
		c = bare(b.run("r"))
		c.Consumed = []int64{r.Notices[0].ID, r.Notices[1].ID}
		b.commit(c)
		b.same("what is left", texts(b.beat(worker("w", 2))), []string{`4`})
	}},
	{"never get an old id", func(b *bench) {
		b.create("r")
		b.claim("r", "w", 0)
		last := int64(0)
		for range 3 {
			b.post("r", `{}`)
			got := b.beat(worker("w", 1))
			if len(got) != 1 || got[0].ID <= last {
				b.Fatalf("after id %d: %+v", last, got)
			}
			last = got[0].ID
			c := bare(b.run("r"))
			c.Consumed = []int64{last}
			b.commit(c)
		}
	}},
	{"go out with a commit", func(b *bench) {
		b.create("parent")
		r := b.create("r")
		c := next(r, 1)
		c.Post = []store.Notice{
			{Run: "parent", Kind: store.NoticeChild, At: at(9), Data: []byte(`{"a":1}`)},
			{Run: "pruned", Kind: store.NoticeChild, At: at(9), Data: []byte(`{}`)}, // a run that is not there gets none
			{Run: "r", Kind: store.NoticeSignal, At: at(9), Data: []byte(`{"b":2}`)},
		}
		b.commit(c)
		got := b.claim("parent", "w", 1).Notices
		b.same("number of the parent's notices", len(got), 1)
		b.same("the parent's notice", got[0],
			store.Notice{ID: got[0].ID, Run: "parent", Kind: store.NoticeChild, At: at(9), Data: []byte(`{"a":1}`)})
		b.same("its own notice", texts(b.claim("r", "w", 1).Notices), []string{`{"b":2}`})
	}},
}

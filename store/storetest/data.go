package storetest

import (
	"errors"
	"fmt"
	"strings"

	"flowctl/store"
)

var dataTests = []test{
	{"gives events after a seq", func(b *bench) {
		r := b.create("r")
		b.commit(next(r, 9))
		b.create("other")
		for _, one := range []struct {
			after       int64
			limit       int
			first, last int64 // 0: none
		}{
			{0, 0, 1, 10}, {0, 3, 1, 3}, {3, 3, 4, 6}, {8, 5, 9, 10}, {9, 0, 10, 10}, {10, 0, 0, 0}, {11, 2, 0, 0},
			{-5, 2, 1, 2}, {0, 100, 1, 10}, {1 << 31, 0, 0, 0}, {1 << 32, 0, 0, 0}, {1<<63 - 1, 0, 0, 0},
		} {
			got, err := b.s.Events(b.ctx, "r", one.after, one.limit)
			b.is("events", err, nil)
			var want []store.Event
			for seq := one.first; seq > 0 && seq <= one.last; seq++ {
				want = append(want, event(seq))
			}
			b.same(fmt.Sprintf("events after %d, at most %d", one.after, one.limit), got, want)
		}
		b.same("events of a run that is not there", len(b.events("nobody")), 0)
	}},
	{"keeps large and odd events", func(b *bench) {
		c := creation("r")
		for i, data := range []string{`{"big":"` + strings.Repeat("猫x", 200_000) + `"}`, `{}`, `{"nul":"\u0000","q":"'\"\\"}`,
			"", "no JSON at all \x00\xff\xfe"} {
			e := event(int64(i) + 2)
			e.Data, e.Visit, e.Step, e.State, e.Type, e.Key = []byte(data), 1<<40, -1, "stäte", "ty'pe", `k"1.0`
			c.Events = append(c.Events, e)
		}
		b.commit(c)
		b.same("events", b.events("r"), c.Events)
	}},
	{"keeps blobs by run and hash", func(b *bench) {
		for _, id := range []string{"one", "two"} {
			c := creation(id)
			c.Blobs = []store.Blob{{Hash: "h", Data: []byte("of " + id)}, {Hash: "bin", Data: []byte{0, 255, 0}}, {Hash: "none"}}
			b.commit(c)
		}
		c := next(b.run("one"), 1)
		c.Blobs = []store.Blob{{Hash: "h", Data: []byte("changed")}, {Hash: "h2", Data: []byte("second")},
			{Hash: "h2", Data: []byte("twice")}}
		b.commit(c)
		for _, want := range [][3]string{{"one", "h", "of one"}, {"two", "h", "of two"}, {"one", "h2", "second"},
			{"one", "bin", "\x00\xff\x00"}, {"two", "none", ""}} {
			got, err := b.s.Blob(b.ctx, want[0], want[1])
			b.is("blob", err, nil)
			b.same("blob "+want[1]+" of "+want[0], string(got), want[2])
		}
		for _, miss := range [][2]string{{"two", "h2"}, {"one", "H"}, {"nobody", "h"}, {"", "h"}} {
			_, err := b.s.Blob(b.ctx, miss[0], miss[1])
			b.is("blob "+miss[1]+" of "+miss[0], err, store.ErrNotFound)
		}
	}},
	{"keeps flow sources by hash", func(b *bench) {
		b.create("r")
		for _, source := range []string{"version: 1\n", "changed"} {
			b.is("flow", b.s.PutFlow(b.ctx, "h", []byte(source)), nil)
		}
		b.is("flow", b.s.PutFlow(b.ctx, "empty", nil), nil)
		got, err := b.s.Blob(b.ctx, "", "h")
		b.is("source", err, nil)
		b.same("source", string(got), "version: 1\n")
		got, err = b.s.Blob(b.ctx, "", "empty")
		b.is("empty source", err, nil)
		b.same("empty source", string(got), "")
		for _, miss := range [][2]string{{"", "x"}, {"r", "h"}} {
			_, err := b.s.Blob(b.ctx, miss[0], miss[1])
			b.is("source "+miss[1]+" of "+miss[0], err, store.ErrNotFound)
		}
	}},
	{"keeps no slice that it was given", func(b *bench) {
		mine := func() []byte { return []byte(`{"a":"mine"}`) }
		c := creation("r")
		c.Events[0].Data = mine()
		c.Blobs = []store.Blob{{Hash: "h", Data: mine()}}
		c.Checkpoint = mine()
		c.Post = []store.Notice{{Run: "r", Kind: store.NoticeSignal, At: at(0), Data: mine()}}
		c.Memory = []store.MemoryWrite{{Namespace: "n", Key: "k", Value: mine()}}
		b.commit(c)
		source := mine()
		b.is("flow", b.s.PutFlow(b.ctx, "f", source), nil)
		n := store.Notice{Run: "r", Kind: store.NoticeSignal, At: at(0), Data: mine()}
		b.is("post", b.s.Post(b.ctx, n), nil)
		given := [][]byte{c.Events[0].Data, c.Blobs[0].Data, c.Checkpoint, c.Post[0].Data, c.Memory[0].Value, source, n.Data}
		for _, data := range given {
			b.same("what was handed in", string(data), string(mine()))
			clear(data)
		}
		for range 2 { // the second time around, after what was handed out has been cleared
			for what, data := range b.allData() {
				b.same(what, string(data), string(mine()))
				clear(data)
			}
		}
	}},
	{"hands out a cost of one's own", func(b *bench) {
		cost := 2.5
		c := creation("r")
		c.Run.Usage.Cost = &cost
		b.commit(c)
		cost = 9
		for range 2 {
			got := b.run("r").Usage.Cost
			b.same("cost", *got, 2.5)
			*got = 7
		}
		*b.claim("r", "w", 0).Usage.Cost = 7
		b.same("cost", *b.run("r").Usage.Cost, 2.5)
	}},
}

// allData reads every kind of byte slice of run r, of flow f and of memory n/k. A claim takes the run over each time.
func (b *bench) allData() map[string][]byte {
	b.Helper()
	got := map[string][]byte{"event": b.events("r")[0].Data}
	var err error
	got["blob"], err = b.s.Blob(b.ctx, "r", "h")
	b.is("blob", err, nil)
	got["flow"], err = b.s.Blob(b.ctx, "", "f")
	b.is("flow", err, nil)
	held := b.run("r")
	claimed, err := b.s.Claim(b.ctx, store.Claim{Run: "r", Worker: worker(fmt.Sprint("w", held.Epoch), 0), Now: at(0), Stale: stale,
		Gone: func(store.Worker) bool { return true }})
	b.is("claim", err, nil)
	got["checkpoint"], got["posted notice"], got["notice"] = claimed.Checkpoint, claimed.Notices[0].Data, claimed.Notices[1].Data
	heard := b.beat(worker(claimed.Holder.ID, 0))
	got["heard notice"] = heard[0].Data
	if conflict := b.memoryConflict("k"); conflict != nil {
		got["memory conflict"] = conflict.Value
	}
	if m, ok := b.s.(store.Memory); ok {
		entry, err := m.Remembered(b.ctx, "n", "k")
		b.is("memory", err, nil)
		got["memory"] = entry.Value
	}
	return got
}

// memoryConflict asks for the entry of a key by way of a write that is refused.
func (b *bench) memoryConflict(key string) *store.MemoryConflict {
	b.Helper()
	r, wrong := b.run("r"), int64(-1)
	c := bare(r)
	c.Memory = []store.MemoryWrite{{Namespace: "n", Key: key, Value: []byte(`0`), Expect: &wrong}}
	err := b.s.Commit(b.ctx, c)
	var conflict *store.MemoryConflict
	if !errors.As(err, &conflict) {
		b.Fatalf("a write of a wrong version gave %v", err)
	}
	return conflict
}

// remember writes memory in a commit of its own.
func (b *bench) remember(writes ...store.MemoryWrite) error {
	return b.s.Commit(b.ctx, withMemory(b.run("r"), writes...))
}

// withMemory is a commit of memory alone.
func withMemory(r store.Run, writes ...store.MemoryWrite) store.Commit {
	c := bare(r)
	c.Memory = writes
	return c
}

// set is a write of namespace n; an expectation below 0 is none.
func set(key, value string, expect int64) store.MemoryWrite {
	w := store.MemoryWrite{Namespace: "n", Key: key}
	if value != "" {
		w.Value = []byte(value)
	}
	if expect >= 0 {
		w.Expect = &expect
	}
	return w
}

var memoryTests = []test{
	{"counts versions", func(b *bench) {
		b.create("r")
		for version := int64(1); version <= 3; version++ {
			b.is("write", b.remember(set("k", fmt.Sprint(version), -1)), nil)
			b.same("entry", *b.memoryConflict("k"),
				store.MemoryConflict{Namespace: "n", Key: "k", Version: version, Value: fmt.Append(nil, version)})
		}
		b.same("no entry", *b.memoryConflict("other"), store.MemoryConflict{Namespace: "n", Key: "other"})
	}},
	{"wants the expected version", func(b *bench) {
		b.create("r")
		b.is("new key", b.remember(set("k", `"a"`, 0)), nil)
		b.is("second version", b.remember(set("k", `"b"`, 1)), nil)
		for _, stale := range []store.MemoryWrite{set("k", `"x"`, 0), set("k", `"x"`, 1), set("k", `"x"`, 3), set("k", "", 1)} {
			err := b.remember(set("side", `1`, -1), stale, set("side2", `1`, -1))
			var conflict *store.MemoryConflict
			if !errors.As(err, &conflict) {
				b.Fatalf("a write of version %d gave %v", *stale.Expect, err)
			}
			b.same("conflict", *conflict, store.MemoryConflict{Namespace: "n", Key: "k", Version: 2, Value: []byte(`"b"`)})
			b.same("a neighbour of the refused write", b.memoryConflict("side").Version, int64(0))
			b.same("a neighbour of the refused write", b.memoryConflict("side2").Version, int64(0))
		}
		b.is("third version", b.remember(set("k", `"c"`, 2)), nil)
		b.same("entry", b.memoryConflict("k").Version, int64(3))
	}},
	{"deletes", func(b *bench) {
		b.create("r")
		b.is("delete what is not there", b.remember(set("k", "", -1), set("k", "", 0)), nil)
		b.is("write", b.remember(set("k", `1`, -1), set("k", `2`, 1)), nil)
		b.is("delete", b.remember(set("k", "", 2)), nil)
		b.same("deleted", *b.memoryConflict("k"), store.MemoryConflict{Namespace: "n", Key: "k"})
		b.is("write anew", b.remember(set("k", `3`, 0)), nil)
		b.same("a key that goes on", b.memoryConflict("k").Version, int64(3))
		b.is("delete and write in one commit", b.remember(set("k", "", 3), set("k", `4`, 0), set("k", `5`, 4)), nil)
		b.same("entry", *b.memoryConflict("k"), store.MemoryConflict{Namespace: "n", Key: "k", Version: 5, Value: []byte(`5`)})
	}},
	{"gives no version twice", func(b *bench) {
		b.create("r")
		conflicts := func(what string, w store.MemoryWrite, version int64) {
			b.Helper()
			var conflict *store.MemoryConflict
			if err := b.remember(w); !errors.As(err, &conflict) {
				b.Fatalf("%s gave %v", what, err)
			}
			b.same(what, conflict.Version, version)
		}
		b.is("write", b.remember(set("k", `"read"`, -1), set("other", `1`, -1)), nil)
		b.is("delete", b.remember(set("k", "", -1)), nil)
		conflicts("a write of the deleted version", set("k", `"late"`, 1), 0)
		b.is("delete what is not there any more", b.remember(set("k", "", -1), set("k", "", 0)), nil)
		b.is("write of somebody else", b.remember(set("k", `"theirs"`, -1)), nil)
		conflicts("a write of the version that was read", set("k", `"mine"`, 1), 2)
		conflicts("a deletion of the version that was read", set("k", "", 1), 2)
		b.same("entry", *b.memoryConflict("k"), store.MemoryConflict{Namespace: "n", Key: "k", Version: 2, Value: []byte(`"theirs"`)})
		b.is("delete again", b.remember(set("k", "", 2)), nil)
		conflicts("a refused deletion beside it", set("other", "", 7), 1)
		b.is("write anew, twice", b.remember(set("k", `1`, 0), set("k", `2`, 3)), nil)
		b.same("version", b.memoryConflict("k").Version, int64(4))
		b.is("a namesake", b.remember(store.MemoryWrite{Namespace: "m", Key: "k", Value: []byte(`1`)}), nil)
		b.is("the namesake is new", b.remember(store.MemoryWrite{Namespace: "m", Key: "k", Value: []byte(`2`), Expect: new(int64(1))}), nil)
	}},
	{"brings no deleted version back with a refused commit", func(b *bench) {
		b.create("r")
		b.is("write", b.remember(set("k", `1`, -1), set("k", `2`, -1)), nil)
		b.refused(withMemory(b.run("r"), set("k", "", -1), set("k", `3`, -1), set("k", `4`, 9)), nil)
		b.is("write", b.remember(set("k", `3`, 2), set("k", "", 3)), nil)
		b.refused(withMemory(b.run("r"), set("k", `4`, 0), set("k", `5`, 9)), nil)
		b.is("write anew", b.remember(set("k", `4`, 0)), nil)
		b.same("version", b.memoryConflict("k").Version, int64(4))
	}},
	{"keeps namespaces apart", func(b *bench) {
		b.create("r")
		b.is("write", b.remember(set("k", `1`, -1), store.MemoryWrite{Namespace: "", Key: "k", Value: []byte(`2`)},
			store.MemoryWrite{Namespace: "n/k", Key: "", Value: []byte(`3`)}), nil)
		b.same("entry", string(b.memoryConflict("k").Value), `1`)
		b.same("version", b.memoryConflict("k").Version, int64(1))
	}},
	{"gives way to the seq", func(b *bench) {
		r := b.create("r")
		b.is("write", b.remember(set("k", `1`, -1)), nil)
		c := next(r, 1)
		c.ExpectSeq, c.Events[0].Seq = 5, 6
		c.Memory = []store.MemoryWrite{set("k", `2`, 7)}
		b.refused(c, store.ErrConflict)
	}},
	{"is read", func(b *bench) {
		m, ok := b.s.(store.Memory)
		if !ok {
			b.Skip("this driver does not read memory")
		}
		b.create("r")
		_, err := m.Remembered(b.ctx, "n", "k")
		b.is("missing entry", err, store.ErrNotFound)
		b.is("write", b.remember(set("k", `{"a":[1,"猫"]}`, -1)), nil)
		got, err := m.Remembered(b.ctx, "n", "k")
		b.is("entry", err, nil)
		if got.Updated.IsZero() || got.Updated.Nanosecond()%1_000_000 != 0 {
			b.Errorf("updated at %v", got.Updated)
		}
		b.same("entry", got, store.MemoryEntry{Namespace: "n", Key: "k", Value: []byte(`{"a":[1,"猫"]}`), Version: 1, Updated: got.Updated.UTC()})
		_, err = m.Remembered(b.ctx, "k", "n")
		b.is("other namespace", err, store.ErrNotFound)
		b.is("delete", b.remember(set("k", "", -1)), nil)
		_, err = m.Remembered(b.ctx, "n", "k")
		b.is("deleted entry", err, store.ErrNotFound)
	}},
}

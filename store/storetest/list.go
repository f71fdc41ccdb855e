package storetest

import (
	"fmt"
	"strings"
	"time"

	"flowctl/store"
)

// listed makes a run of a creation that a test has changed.
func (b *bench) listed(id string, created int64, change func(*store.Commit)) {
	b.Helper()
	c := creation(id)
	c.Run.Created = at(created)
	if change != nil {
		change(&c)
	}
	b.commit(c)
}

// shows checks which runs a filter lists, in order.
func (b *bench) shows(what string, f store.Filter, want string) {
	b.Helper()
	if got := strings.Join(ids(b.list(f)), " "); got != want {
		b.Errorf("%s: got %q, want %q", what, got, want)
	}
}

var listTests = []test{
	{"are listed newest first", func(b *bench) {
		b.shows("empty store", store.Filter{}, "")
		b.listed("b", 5, nil)
		b.listed("old", 1, nil)
		b.listed("c", 5, nil)
		b.listed("new", 9, nil)
		b.listed("a", 5, nil)
		b.shows("all", store.Filter{}, "new c b a old")
		r := b.run("old")
		b.commit(next(r, 1)) // the order is of creation, not of change
		b.shows("all", store.Filter{}, "new c b a old")
	}},
	{"are paged", func(b *bench) {
		for i := range int64(11) {
			b.listed(fmt.Sprintf("r%02d", i), i/3, nil) // several of one time
		}
		all := ids(b.list(store.Filter{}))
		for size := 1; size <= 12; size++ {
			var paged []string
			f := store.Filter{Limit: size}
			for page := b.list(f); len(page) > 0; page = b.list(f) {
				if len(page) > size {
					b.Fatalf("a page of %d has %d runs", size, len(page))
				}
				paged = append(paged, ids(page)...)
				f.After = paged[len(paged)-1]
			}
			b.same(fmt.Sprintf("pages of %d", size), paged, all)
		}
		_, err := b.s.Runs(b.ctx, store.Filter{After: "nobody"})
		b.is("list behind a run that is not there", err, store.ErrNotFound)
	}},
	{"show their holder", func(b *bench) {
		b.create("free")
		b.create("held")
		b.claim("held", "w", 3)
		c := creation("odd")
		c.Run.Holder = store.Worker{ID: "without heartbeat"}
		b.commit(c)
		b.same("holder", b.run("free").Holder, store.Worker{})
		b.same("holder", b.run("held").Holder, worker("w", 3))
		b.same("holder", b.run("odd").Holder, store.Worker{ID: "without heartbeat"})
		b.beat(worker("w", 8))
		b.same("holder", b.run("held").Holder, worker("w", 8))
	}},
	{"keep times to the millisecond", func(b *bench) {
		odd := func(n int64) time.Time {
			return at(n).Add(123_456 * time.Nanosecond).In(time.FixedZone("west", -7*3600))
		}
		c := creation("r")
		c.Run.Created, c.Run.Due, c.Events[0].At = odd(1), odd(2), odd(3)
		b.commit(c)
		r := b.run("r")
		b.same("created", r.Created, at(1))
		b.same("due", r.Due, at(2))
		b.same("updated", r.Updated, at(3))
		b.same("event", b.events("r")[0].At, at(3))
	}},
	{"may stand before 1970", func(b *bench) {
		c := creation("r")
		c.Events[0].At = time.Date(1969, 7, 20, 20, 17, 40, 5_900_000, time.UTC)
		c.Run.Created = time.Time{}
		b.commit(c)
		b.same("event", b.events("r")[0].At, time.Date(1969, 7, 20, 20, 17, 40, 5_000_000, time.UTC))
		b.same("created", b.run("r").Created, time.Time{})
	}},
}

var filterTests = []test{
	{"by id", func(b *bench) {
		for i, id := range []string{"ab", "a", "abc", "b"} {
			b.listed(id, int64(i), nil)
		}
		b.shows("one", store.Filter{ID: "ab"}, "ab")
		b.shows("unknown", store.Filter{ID: "x"}, "")
	}},
	{"by id prefix", func(b *bench) {
		for i, id := range []string{"ab", "a", "abc", "b", "aB1", "a%c", "a_c", "ac", "é", "éa", "f\xff\xff1", "g"} {
			b.listed(id, int64(i), nil)
		}
		for prefix, want := range map[string]string{
			"ab": "abc ab", "abc": "abc", "abcd": "", "b": "b", "a%": "a%c", "a_": "a_c", "aB": "aB1", "é": "éa é",
			"f\xff": "f\xff\xff1", "\xff": "", "a": "ac a_c a%c aB1 abc a ab",
		} {
			b.shows(fmt.Sprintf("prefix %q", prefix), store.Filter{IDPrefix: prefix}, want)
		}
	}},
	{"by status", func(b *bench) {
		for i, s := range []store.Status{store.Running, store.Waiting, store.Stopped, store.Succeeded, store.Failed, store.Cancelled} {
			b.listed(string(s), int64(i), func(c *store.Commit) { c.Run.Status = s })
		}
		b.shows("one", store.Filter{Status: []store.Status{store.Waiting}}, "waiting")
		b.shows("two", store.Filter{Status: []store.Status{store.Running, store.Failed, store.Running}}, "failed running")
		c := next(b.run("running"), 1)
		c.Run.Status = store.Succeeded
		b.commit(c)
		b.shows("after a change", store.Filter{Status: []store.Status{store.Running}}, "")
		b.shows("after a change", store.Filter{Status: []store.Status{store.Succeeded}}, "succeeded running")
	}},
	{"by flow, parent and owner", func(b *bench) {
		b.listed("plain", 1, nil)
		b.listed("flow", 2, func(c *store.Commit) { c.Run.Flow = "other" })
		b.listed("child", 3, func(c *store.Commit) { c.Run.Parent = "plain" })
		b.listed("owned", 4, func(c *store.Commit) { c.Run.Owner = "ann" })
		b.shows("flow", store.Filter{Flow: "other"}, "flow")
		b.shows("flow", store.Filter{Flow: "support"}, "owned child plain")
		b.shows("parent", store.Filter{Parent: "plain"}, "child")
		b.shows("owner", store.Filter{Owner: "ann"}, "owned")
		b.shows("unknown", store.Filter{Owner: "bob"}, "")
	}},
	{"by time of change", func(b *bench) {
		for i := range int64(4) {
			b.listed(fmt.Sprint(i), i, func(c *store.Commit) { c.Events[0].At = at(10 * i) })
		}
		b.shows("since", store.Filter{Since: at(10)}, "3 2 1")
		b.shows("since, just later", store.Filter{Since: at(11)}, "3 2")
		b.shows("since, within the millisecond", store.Filter{Since: at(10).Add(time.Microsecond)}, "3 2 1")
		b.shows("until", store.Filter{Until: at(20)}, "1 0")
		b.shows("both", store.Filter{Since: at(10), Until: at(30)}, "2 1")
		b.shows("nothing", store.Filter{Since: at(31)}, "")
	}},
	{"by due time", func(b *bench) {
		b.listed("never", 1, nil)
		b.listed("soon", 2, func(c *store.Commit) { c.Run.Due = at(100) })
		b.listed("late", 3, func(c *store.Commit) { c.Run.Due = at(200) })
		b.shows("before", store.Filter{Due: at(99)}, "")
		b.shows("at", store.Filter{Due: at(100)}, "soon")
		b.shows("after", store.Filter{Due: at(1000)}, "late soon")
		c := next(b.run("soon"), 1)
		c.Run.Due = time.Time{}
		b.commit(c)
		b.shows("no longer due", store.Filter{Due: at(1000)}, "late")
	}},
	{"by holder", func(b *bench) {
		for i, id := range []string{"free", "live", "dead", "odd"} {
			b.listed(id, int64(i), func(c *store.Commit) {
				if id == "odd" {
					c.Run.Holder.ID = "without heartbeat"
				}
			})
		}
		b.claim("live", "w", 1)
		b.claim("dead", "gone", 1)
		var asked []string
		f := store.Filter{Unheld: func(w store.Worker) bool {
			asked = append(asked, fmt.Sprint(w.ID, " ", w.Beat.IsZero()))
			return w.ID == "gone"
		}}
		b.shows("unheld", f, "dead free")
		b.same("who was asked about", asked, []string{"without heartbeat true", "gone false", "w false"})
		f.Limit = 1
		b.shows("the first", f, "dead")
		f.After = "dead"
		b.shows("the next", f, "free")
		b.shows("all", store.Filter{Unheld: func(store.Worker) bool { return true }}, "odd dead live free")
	}},
	{"by text", func(b *bench) {
		for i, data := range []string{`{"a":"Apple 100% ripe"}`, `{"b":"a_c \"x\\y\""}`, `{"c":"猫 Äpfel"}`,
			`{"d":"` + strings.Repeat("x", 5000) + `pie"}`} {
			b.listed(fmt.Sprint(i), int64(i), func(c *store.Commit) {
				c.Events = append(c.Events, event(2))
				c.Events[1].Data = []byte(data)
			})
		}
		for text, want := range map[string]string{
			"apple": "0", "APPLE": "0", "100% r": "0", "%": "0", "_": "1", `\"x\\Y\"`: "1", "猫": "2", "Äpfel": "2",
			"äpfel": "", "ÄPFEL": "2", "xpie": "3", "nowhere": "", `"n":1`: "3 2 1 0", "'": "", strings.Repeat("X", 4999): "3",
		} {
			b.shows(fmt.Sprintf("text %.20q", text), store.Filter{Text: text}, want)
		}
		b.shows("limited", store.Filter{Text: `"n":1`, Limit: 2}, "3 2")
		b.shows("limited, behind", store.Filter{Text: `"n":1`, Limit: 2, After: "2"}, "1 0")
	}},
	{"by everything together", func(b *bench) {
		full := func(c *store.Commit) {
			c.Run.Status, c.Run.Flow, c.Run.Parent, c.Run.Owner, c.Run.Due = store.Waiting, "f", "p", "o", at(50)
			c.Events[0].At, c.Events[0].Data = at(20), []byte(`{"x":"needle"}`)
		}
		b.listed("x-hit", 1, full)
		for i, spoil := range []func(*store.Commit){
			func(c *store.Commit) { c.Run.Status = store.Running },
			func(c *store.Commit) { c.Run.Flow = "g" },
			func(c *store.Commit) { c.Run.Parent = "q" },
			func(c *store.Commit) { c.Run.Owner = "p" },
			func(c *store.Commit) { c.Run.Due = at(61) },
			func(c *store.Commit) { c.Events[0].At = at(9) },
			func(c *store.Commit) { c.Events[0].At = at(30) },
			func(c *store.Commit) { c.Events[0].Data = []byte(`{}`) },
			func(c *store.Commit) { c.Run.Holder.ID = "somebody" },
			func(c *store.Commit) { c.Run.Created = at(0) }, // behind After
		} {
			b.listed(fmt.Sprintf("x-%d", i), 1, func(c *store.Commit) { full(c); spoil(c) })
		}
		b.listed("y-miss", 1, full)
		b.listed("x-behind", 0, full)
		f := store.Filter{IDPrefix: "x-", Status: []store.Status{store.Waiting, store.Failed}, Flow: "f", Parent: "p", Owner: "o",
			Since: at(10), Until: at(30), Due: at(60), Unheld: func(store.Worker) bool { return false }, Text: "NEEDLE"}
		b.shows("all conditions", f, "x-hit x-behind x-9")
		f.Limit = 1
		b.shows("limited", f, "x-hit")
		f.After = "x-hit"
		b.shows("the next", f, "x-behind")
		f.ID = "x-9"
		b.shows("one id", f, "x-9")
	}},
}

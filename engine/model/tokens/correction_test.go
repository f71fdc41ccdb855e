package tokens

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// fold adds reports on requests that were all counted as 1000 tokens.
func fold(reported ...int64) Correction {
	var c Correction
	for _, r := range reported {
		c = c.Add(1000, r)
	}
	return c
}

func TestCorrection(t *testing.T) {
	for _, tc := range []struct {
		name     string
		reported []int64
		want     int64 // of 1000
	}{
		{"nothing is known", nil, 1000},
		{"one report may be an outlier", []int64{1500}, 1000},
		{"two that agree are believed", []int64{1500, 1500}, 1500},
		{"the lower of two", []int64{1500, 1300}, 1300},
		{"an outlier among good ones", []int64{1000, 1010, 2900, 1000, 1005}, 1000},
		{"an outlier among corrected ones", []int64{1500, 1510, 9000, 1490, 1500}, 1500},
		{"a low outlier", []int64{1500, 1510, 600, 1490, 1500}, 1490},
		{"never downwards", []int64{600, 600, 600, 600, 600}, 1000},
		{"at most three times", []int64{9000, 9000, 9000}, 3000},
		{"old reports are forgotten", []int64{2000, 2000, 2000, 1100, 1100, 1100, 1100, 1100}, 1100},
		{"no report", []int64{1500, 1500, 0, 0, 0, -1}, 1500},
		{"a prompt that was cut", []int64{1500, 1500, 400, 300, 200, 100}, 1500},
	} {
		if got := fold(tc.reported...).Apply(1000); got != tc.want {
			t.Errorf("%s: 1000 is corrected to %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSmallRequestsCorrectNothing(t *testing.T) {
	var c Correction
	for range 5 {
		c = c.Add(minCounted-1, 3*minCounted)
	}
	if c != (Correction{}) {
		t.Errorf("the correction is %v", c)
	}
}

func TestApplyRoundsUp(t *testing.T) {
	c := fold(1001, 1001)
	for counted, want := range map[int64]int64{-5: -5, 0: 0, 1: 2, 1000: 1001, 1001: 1003, math.MaxInt64: math.MaxInt64} {
		if got := c.Apply(counted); got != want {
			t.Errorf("%d is corrected to %d, want %d", counted, got, want)
		}
	}
}

func TestAddDoesNotChangeWhatItAddsTo(t *testing.T) {
	c := fold(1500, 1500)
	before := c
	c.Add(1000, 2000)
	if c != before {
		t.Error("Add has changed its receiver")
	}
}

func TestCorrectionGoesThroughJSON(t *testing.T) {
	for _, c := range []Correction{{}, fold(1500), fold(1500, 2000, 1234, 800, 3000, 1111)} {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Correction
		if err := json.Unmarshal(raw, &back); err != nil || back != c {
			t.Errorf("%s came back as %v, %v", raw, back, err)
		}
	}
	if raw, _ := json.Marshal(fold(1500, 1200)); string(raw) != `{"recent":[1200,1500,0,0,0]}` {
		t.Errorf("written as %s", raw)
	}
}

// Whatever was added, or stands in a damaged checkpoint, a correction is bounded, upwards, and grows with the count.
func TestCorrectionIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Correction
		for i := range c.Recent {
			c.Recent[i] = rapid.Int64().Draw(t, "stored")
		}
		for range rapid.IntRange(0, 10).Draw(t, "reports") {
			c = c.Add(rapid.Int64().Draw(t, "counted"), rapid.Int64().Draw(t, "reported"))
		}
		a := rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "a")
		b := rapid.Int64Range(a, math.MaxInt64/4).Draw(t, "b")
		first, second := c.Apply(a), c.Apply(b)
		if first < a || first > second || a < math.MaxInt64/3000 && first > 3*a {
			t.Fatalf("%d becomes %d, %d becomes %d", a, first, b, second)
		}
	})
}

func TestShort(t *testing.T) {
	for _, tc := range []struct {
		counted, reported int64
		want              bool
	}{
		{10_000, 4_096, true},
		{10_000, 4_999, true},
		{10_000, 5_000, false},
		{10_000, 20_000, false},
		{10_000, 0, false},
		{10_000, -1, false},
		{1_000, 499, true},
		{999, 100, false},
		{0, 0, false},
	} {
		if got := Short(tc.counted, tc.reported); got != tc.want {
			t.Errorf("%d counted, %d reported: short is %v", tc.counted, tc.reported, got)
		}
	}
}

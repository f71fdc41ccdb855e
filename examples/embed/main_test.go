package main

import (
	"context"
	"testing"
)

func TestRun(t *testing.T) {
	cases := []struct{ message, want string }{
		{"How many socks do you have?", "Only 2 left."},
		{"Is there a mug for me?", "We have enough of that: 12."},
		{"And a LAMP?", "I do not know."},
		{"Hello", "the run has not ended"},
	}
	for _, c := range cases {
		got, err := run(context.Background(), c.message)
		if err != nil || got != c.want {
			t.Errorf("%q: got %q (%v), want %q", c.message, got, err, c.want)
		}
	}
}

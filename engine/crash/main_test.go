package crash_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes the random tests shorter than usual: each of their checks is many runs. -rapid.checks changes that.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

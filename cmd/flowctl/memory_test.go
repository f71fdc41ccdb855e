package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"flowctl/store"
	"flowctl/store/sqlite"
)

// Where only names are wanted, for a hint or a completion, values are not read.
func TestNamesAreListedWithoutValues(t *testing.T) {
	const n, size = 500, 60_000
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "flowctl.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	writes := []store.MemoryWrite{{Namespace: "shop", Key: "colour", Value: []byte(`"red"`)}}
	for i := range n {
		writes = append(writes, store.MemoryWrite{Namespace: "customers", Key: fmt.Sprint("k", i), Value: []byte(`"` + strings.Repeat("x", size) + `"`)})
	}
	if err := db.Memorize(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		args string
		code int
		want string // stands in what is printed
	}{
		{"memory get shop color", 2, "did you mean colour?"},
		{"memory get customer k1", 2, "did you mean customers?"},
		{"memory rm customers k", 2, "did you mean k0, k1, k10, k100, k101?"},
		{"__complete memory get ", 0, "customers\nshop\n:"},
		{"__complete memory get customers k499", 0, "k499\n:"},
	} {
		p := systemProgram()
		p.Dir = dir
		p.Getenv = func(string) (string, bool) { return "", false }
		args := strings.Split(one.args, " ")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, stdout, stderr := flowctl(p, args...)
		runtime.ReadMemStats(&after)
		if code != one.code || !strings.Contains(stdout+stderr, one.want) {
			t.Errorf("%s: exit code %d, printed %s%s", one.args, code, stdout, stderr)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > n*size/3 {
			t.Errorf("%s allocates %d bytes where %d bytes of values are stored", one.args, bytes, n*size)
		}
	}
}

package flows

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzCompile: no bytes make the compiler panic, what it gives is a machine or findings with a place, and an equal source
// has an equal hash.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{"testdata/err/*.yaml", "testdata/ok/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(source)
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Add([]byte("\xff\xfe\x00"))
	f.Add([]byte("states: {a: {<<: [{handler: end}, {with: {}}]}}"))
	cat := testCatalog()
	f.Fuzz(func(t *testing.T, source []byte) {
		m, err := Compile(source, ".", cat)
		if err == nil {
			again, err := CompileStored(source, ".", cat)
			if err != nil || again.Hash != m.Hash {
				t.Fatalf("the second reading gives %v with hash %v, want %s", err, again, m.Hash)
			}
			return
		}
		var failed *Error
		if !errors.As(err, &failed) || len(failed.Findings) == 0 {
			t.Fatalf("error %v is no *Error with findings", err)
		}
		for _, finding := range failed.Findings {
			if finding.Line < 1 || finding.Col < 1 || finding.File == "" || finding.Message == "" || finding.Rule == "" {
				t.Fatalf("a finding lacks its place or words: %+v", finding)
			}
		}
	})
}

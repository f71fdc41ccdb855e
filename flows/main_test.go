package flows

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the .out files anew")

// TestDiagnostics compares the findings of every testdata/err/*.yaml with the .out file beside it.
func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/err/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d files in testdata/err, want at least 30 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got := diagnose(t, file)
			golden := strings.TrimSuffix(file, ".yaml") + ".out"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("findings differ (-update writes them anew)\ngot:\n%s\nwant:\n%s", got, want)
			}
			if got == "" {
				t.Error("no findings: the file belongs into testdata/ok")
			}
		})
	}
}

// TestCleanFlows compiles every testdata/ok/*.yaml and expects no finding at all.
func TestCleanFlows(t *testing.T) {
	files, err := filepath.Glob("testdata/ok/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/ok (%v)", err)
	}
	for _, file := range files {
		if got := diagnose(t, file); got != "" {
			t.Errorf("%s has findings:\n%s", file, got)
		}
	}
}

// diagnose gives the findings of a file, one per line, under its base name.
func diagnose(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, found := Check(source, Place{File: filepath.Base(file), Dir: filepath.Dir(file)}, testCatalog())
	if (m == nil) != hasErrors(found) {
		t.Errorf("Check gave machine %v with errors %v; it must give exactly one of them", m != nil, hasErrors(found))
	}
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

package program

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
)

func TestBatchFile(t *testing.T) {
	for path, want := range map[string]bool{`C:\x\npx.cmd`: true, `C:\x\RUN.BAT`: true, `C:\x\node.exe`: false, `C:\x.cmd\node`: false} {
		if got := BatchFile("windows", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
		if BatchFile("linux", path) {
			t.Errorf("%s is a batch file on Linux", path)
		}
	}
}

// A program gets no more of the environment than what is listed, and an empty variable is one that is set.
func TestInherited(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-nobody")
	t.Setenv("LANG", "")
	t.Setenv("TZ", "UTC")
	vars := Inherited()
	if v, ok := vars["LANG"]; !ok || v != "" || vars["TZ"] != "UTC" {
		t.Errorf("LANG or TZ is missing: %q", vars)
	}
	if _, ok := vars["OPENAI_API_KEY"]; ok {
		t.Error("a key is inherited")
	}
}

func TestEnviron(t *testing.T) {
	if got, want := Environ(map[string]string{"B": "2", "A": "1=1", "C": ""}), []string{"A=1=1", "B=2", "C="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCause(t *testing.T) {
	_, err := os.Stat(t.TempDir() + "/nothing")
	var at *fs.PathError
	if got := Cause(err); errors.As(got, &at) || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("got %v", got)
	}
	if plain := errors.New("plain"); Cause(plain) != plain {
		t.Error("another error is changed")
	}
}

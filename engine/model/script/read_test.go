package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flowctl/engine/model"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	huge := write("huge.yaml", "answers: []\n")
	if err := os.Truncate(huge, maxScript+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "the script s.yaml cannot be read: no such file or directory",
		dir:                             "the script s.yaml cannot be read: it is a folder",
		huge:                            "the script s.yaml cannot be read: it is larger than 16 MiB",
		write("bad.yaml", "answer: []"): "s.yaml:1:1: ",
	} {
		if _, err := Read("s.yaml", name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s gave %v, want %s", name, err, want)
		}
	}
	s, err := Read("s.yaml", write("good.yaml", "answers: [{state: a, text: so}]"))
	if err != nil {
		t.Fatal(err)
	}
	if left := s.Leftovers([]model.Origin{}); len(left) != 1 || !strings.HasPrefix(left[0], "s.yaml:1:") {
		t.Errorf("left over are %q", left)
	}
}

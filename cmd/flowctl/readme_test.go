package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"flowctl/flows"
)

const readmeFile = "../../README.md"

// tourBlock is a block of the README whose commands are run, one after another in one folder, in the order of the page.
var tourBlock = regexp.MustCompile("(?s)```console tour\n(.*?)```")

// TestREADME runs the commands of the README's tour and compares what they print with what the README says; with -update
// it writes what they print.
func TestREADME(t *testing.T) {
	data, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	tour := newTour(t)
	got := tourBlock.ReplaceAllStringFunc(text, func(block string) string {
		var out strings.Builder
		out.WriteString("```console tour\n")
		for _, line := range strings.Split(block, "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				out.WriteString(line + "\n" + tour.run(command))
			}
		}
		return out.String() + "```"
	})
	if tour.commands < 10 {
		t.Errorf("only %d commands of the tour were found", tour.commands)
	}
	got = withReference(t, got)
	if *update {
		if err := os.WriteFile(readmeFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != text {
		t.Errorf("the README does not say what flowctl does (write it anew with -update):\n%s", firstDifference(text, got))
	}
}

// withReference puts the reference of flow files between its marks.
func withReference(t *testing.T, text string) string {
	t.Helper()
	const begin, end = "-update` -->\n", "<!-- end of reference -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the README has no marks for the reference")
	}
	app := &app{program: systemProgram()}
	return head + begin + "\n" + strings.TrimSpace(flows.Reference(app.catalog(app.toolKinds()))) + "\n\n" + end + tail
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d:\nREADME:  %s\nflowctl: %s", i+1, line(a, i), line(b, i))
		}
	}
	return ""
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(it ends)"
}

// tour is a folder with the examples, in which the commands of the README run.
type tour struct {
	t        *testing.T
	dir      string
	bench    *bench
	commands int
}

func newTour(t *testing.T) *tour {
	dir := t.TempDir()
	if err := copyExamples(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/readme")); err != nil {
		t.Fatal(err)
	}
	return &tour{t: t, dir: dir, bench: &bench{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

// run gives what a command prints, and its exit code where that is not 0.
func (tr *tour) run(command string) string {
	tr.commands++
	words := splitWords(command)
	if words[0] == "cat" {
		data, err := os.ReadFile(filepath.Join(tr.dir, words[1]))
		if err != nil {
			tr.t.Fatal(err)
		}
		return string(data)
	}
	if words[0] != "flowctl" {
		tr.t.Fatalf("the tour runs flowctl and cat only, not %q", command)
	}
	tr.bench.mu.Lock()
	tr.bench.now = tr.bench.now.Add(time.Second)
	now := tr.bench.now
	tr.bench.mu.Unlock()
	p := systemProgram()
	p.Stdin, p.Terminal, p.Dir = strings.NewReader(""), terminals{}, tr.dir
	p.Getenv = func(string) (string, bool) { return "", false }
	p.Now = func() time.Time { return now }
	p.NewID = tr.bench.newID
	code, stdout, stderr := flowctl(p, words[1:]...)
	out := strings.ReplaceAll(stdout+stderr, tr.dir+string(filepath.Separator), "")
	out = flowHash.ReplaceAllString(out, "sha256:4f1c…")
	if code != 0 {
		out += fmt.Sprintf("# exit code %d\n", code)
	}
	return out
}

// splitWords splits a command line with single quotes.
func splitWords(command string) []string {
	var words []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			if n := len(words); n > 0 && strings.HasSuffix(words[n-1], "=") {
				words[n-1] += part
				continue
			}
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

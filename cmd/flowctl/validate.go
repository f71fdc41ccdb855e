package main

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"flowctl/flows"
	"flowctl/flows/machine"
)

func (a *app) validateCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate FLOW…",
		Short: "Check flow files",
		Long: `Check flow files without running anything. Every finding has a place, a reason and a rule; flowctl explain RULE says
more about it. Exit code 3 when a file has an error.

-o json also lists, for every state, the variables that it reads and those that a model is shown.`,
		Example: "  flowctl validate flow.yaml\n  flowctl validate --strict flows/*.yaml\n  flowctl validate flow.yaml -o json",
		Args:    args(1, -1, "FLOW"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.validate(args, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings for errors")
	return cmd
}

// validated is the document of one file. Its shape only grows.
type validated struct {
	File     string                `json:"file"`
	Findings []flows.Finding       `json:"findings"`
	States   map[string]stateFacts `json:"states"` // empty where the file has errors
}

type stateFacts struct {
	Reads    []string          `json:"reads"`
	Shows    []string          `json:"shows"`
	Outcomes []machine.Outcome `json:"outcomes"`
}

func (a *app) validate(files []string, strict bool) error {
	cat := a.catalog(a.toolKinds())
	docs := make([]validated, 0, len(files))
	sources := make([][]byte, 0, len(files))
	for _, file := range files {
		c, err := a.checkFlow(file, cat)
		if err != nil {
			return err
		}
		docs = append(docs, validated{File: c.file, Findings: nonNil(c.findings), States: factsOf(c.machine)})
		sources = append(sources, c.source)
		if c.machine == nil || strict && len(c.findings) > 0 {
			a.code = exitInvalid
		}
	}
	if a.json() {
		a.printJSON(docs)
		return nil
	}
	for i, doc := range docs {
		a.printFindings(doc, sources[i])
	}
	return nil
}

func (a *app) printFindings(doc validated, source []byte) {
	lines := strings.Split(string(source), "\n")
	for _, f := range doc.Findings {
		a.outln(a.clean(f.String(), a.Terminal.Out))
		for _, line := range excerpt(lines, f.Line, f.Col) {
			a.outln(line)
		}
	}
	summary := countFindings(doc.Findings)
	if summary == "" {
		summary = "valid, " + plural(len(doc.States), "state")
	}
	a.outln(doc.File + ": " + summary)
}

// The part of a long line that an excerpt shows, in runes: so much before the place, and so much in all.
const (
	excerptBefore = 80
	excerptWidth  = 160
)

// excerpt shows the line of a finding with a mark below its column; of a long line only what stands around the place. Line
// and col are 1-based, col counts runes.
func excerpt(lines []string, line, col int) []string {
	if line < 1 || line > len(lines) || strings.TrimSpace(lines[line-1]) == "" {
		return nil
	}
	text := strings.TrimRight(lines[line-1], "\r")
	runes := []rune(text)
	at, indent := min(max(col-1, 0), len(runes)), ""
	if len(runes) > excerptWidth+excerptBefore {
		start := max(at-excerptBefore, 0)
		end := min(start+excerptWidth, len(runes))
		cut := string(runes[start:end])
		if start > 0 {
			cut = "…" + cut
			at++
		}
		if end < len(runes) {
			cut += "…"
		}
		text, at = cut, at-start
		runes = []rune(text)
	}
	before := runes[:at]
	for _, r := range before {
		if r == '\t' {
			indent += "\t"
			continue
		}
		indent += strings.Repeat(" ", lipgloss.Width(escape(string(r), "")))
	}
	head := "  " + strconv.Itoa(line) + " | "
	return []string{head + escape(text, "\t"), strings.Repeat(" ", len(head)-2) + "| " + indent + "^"}
}

func factsOf(m *machine.Machine) map[string]stateFacts {
	facts := map[string]stateFacts{}
	if m == nil {
		return facts
	}
	for _, s := range m.States {
		facts[s.Name] = stateFacts{Reads: nonNil(s.Value.Reads), Shows: nonNil(s.Value.Shows), Outcomes: nonNil(s.Value.Outcomes)}
	}
	return facts
}

// nonNil makes an absent list an empty one, as JSON wants it.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

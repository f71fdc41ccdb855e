package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/flows/graph"
	"flowctl/flows/machine"
)

func graphFormats() []string { return []string{"mermaid", "dot"} }

func (a *app) graphCommand() *cobra.Command {
	var format, run string
	cmd := &cobra.Command{
		Use:   "graph FLOW",
		Short: "Draw a flow as Mermaid or DOT",
		Long: `Draw a flow as a Mermaid flowchart or for Graphviz. With --run, the states that the run has entered are marked, and
the one that it is in.`,
		Example: `  flowctl graph flow.yaml > flow.mmd
  flowctl graph flow.yaml --format dot | dot -Tsvg > flow.svg
  flowctl graph flow.yaml --run 01JD`,
		Args: args(1, 1, "FLOW"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.graph(cmd.Context(), args[0], format, run) },
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "`FORMAT` of the drawing: mermaid or dot")
	cmd.Flags().StringVar(&run, "run", "", "mark the path of this `RUN`")
	return cmd
}

// graphDocument is a drawing for programs. Its shape only grows.
type graphDocument struct {
	Flow   string `json:"flow"`
	Format string `json:"format"`
	Graph  string `json:"graph"`
}

func (a *app) graph(ctx context.Context, flow, format, run string) error {
	if !slices.Contains(graphFormats(), format) {
		return usagef(suggest(format, graphFormats(), "use --format mermaid or --format dot"), "there is no format %s", format)
	}
	m, err := a.readFlow(flow, a.catalog(a.toolKinds()))
	if err != nil {
		return err
	}
	draw, mark := graph.Mermaid, markMermaid
	if format == "dot" {
		draw, mark = graph.DOT, markDOT
	}
	text := draw(m)
	if run != "" {
		doc, err := a.readDocument(ctx, run)
		if err != nil {
			return err
		}
		if doc.Flow != m.Name {
			return usagef("draw the flow that it is a run of", "run %s is of flow %s, not of %s", doc.Run, doc.Flow, m.Name)
		}
		text = mark(text, marksOf(m, doc))
	}
	if a.json() {
		a.printJSON(graphDocument{Flow: m.Name, Format: format, Graph: text})
		return nil
	}
	a.outln(strings.TrimRight(text, "\n"))
	return nil
}

// readDocument reads the document of a run.
func (a *app) readDocument(ctx context.Context, run string) (engine.Report, error) {
	p, row, err := a.openRun(ctx, run)
	if err != nil {
		return engine.Report{}, err
	}
	defer p.close()
	return p.eng.Report(ctx, row.ID)
}

// marks are the boxes of a drawing that a run has to do with: s1 is the flow's first state, s2 its second, and so on.
type marks struct {
	visited []string // without the present one, in the flow's order
	present string   // "" where the flow has no such state any more
}

func marksOf(m *machine.Machine, doc engine.Report) marks {
	var out marks
	for i, s := range m.States {
		box := fmt.Sprintf("s%d", i+1)
		switch {
		case s.Name == doc.State:
			out.present = box
		case slices.Contains(doc.Path, s.Name):
			out.visited = append(out.visited, box)
		}
	}
	return out
}

func markMermaid(text string, m marks) string {
	text += "  classDef visited fill:#dbeafe,stroke:#1d4ed8\n  classDef present fill:#fde68a,stroke:#b45309,stroke-width:3px\n"
	if len(m.visited) > 0 {
		text += "  class " + strings.Join(m.visited, ",") + " visited\n"
	}
	if m.present != "" {
		text += "  class " + m.present + " present\n"
	}
	return text
}

func markDOT(text string, m marks) string {
	text = strings.TrimSuffix(strings.TrimRight(text, "\n"), "}")
	for _, box := range m.visited {
		text += "  " + box + " [style=\"rounded,filled\", fillcolor=\"#dbeafe\"];\n"
	}
	if m.present != "" {
		text += "  " + m.present + " [style=\"rounded,filled\", fillcolor=\"#fde68a\", penwidth=3];\n"
	}
	return text + "}\n"
}

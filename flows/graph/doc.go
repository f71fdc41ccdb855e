// Package graph draws a compiled flow as text: Mermaid for pages that render it, DOT for Graphviz. Equal machines give
// equal text, in the order in which the flow file names its states.
//
// It imports flows/machine only. Open graph.go first.
package graph

// Package history is the truth of a run: typed events, their stored form, and the pure function that folds them into a
// Snapshot. Everything that flowctl shows of a run, and everything that it resumes from, is derived here.
//
// It imports flows/machine, engine/model, engine/tool and store for their plain types, and engine/secret for the mask of
// what is shown of a run (mask.go). It does no input or output. Read event.go first, then apply.go.
package history

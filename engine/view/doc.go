// Package view builds what a model is shown of a run. The view is closed: what a state does not name does not reach the
// model. It computes only; texts of messages that are not loaded are the caller's to fetch.
package view

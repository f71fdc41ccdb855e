// Package memory keeps runs in the memory of the process, for tests and for trying things out. It is the plainest reading
// of the store's contract: one mutex, maps, and copies on every way in and out. Nothing outlives the process.
package memory

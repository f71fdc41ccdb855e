// Command flowctl writes, runs and inspects flows: explicit state machines whose states may use a model and tools.
//
// The package only wires the others together: one file per command, plus what several commands share. It holds no rule of
// how flows run; those are in package engine and below. Nothing here is global: main makes one program, and every command
// works on the app that program.Run makes for one call.
//
// Read main.go and program.go first, then run.go and drive.go, which most commands resemble.
package main

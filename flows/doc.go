// Package flows reads flow files: YAML with positions, strict decoding, checks, and compilation to a machine.Machine.
//
// The way of a file: yaml.go parses it and takes aliases away; shape.go says what may stand where, made from the Go types
// in file.go and the configs of the Catalog; decode.go fills those types; compile.go compiles names, texts, tools and
// states; check_*.go look at the whole. Everything that is wrong is a Finding with a place, and all are found at once. The
// rules_*.go files explain each rule with an example. The JSON Schema and the reference come from the same shapes.
//
// The package runs nothing and calls nobody. It imports flows/machine, flows/schema, flows/match and flows/spell of this
// project, never the engine. Open compile.go first.
package flows

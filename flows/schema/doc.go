// Package schema compiles JSON Schemas and checks values against them, with every digit of an integer kept and with
// messages for people.
//
// Compile takes any JSON Schema (2020-12, or the draft that its $schema names), such as one from an MCP server or a Go
// struct. Lint is the stricter look at a schema that a person wrote into a flow file: there a keyword that is not known
// is a typing error. Short expands the short form of a tool's parameters.
//
// A schema reads no file and no address: a $ref leads to a place in the same schema. The package imports flows/machine
// and flows/spell only. Open schema.go first.
package schema

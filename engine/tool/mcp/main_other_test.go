//go:build !unix

package mcp

func ignoreTerm() {}

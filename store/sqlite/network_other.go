//go:build !linux

package sqlite

// networkShare gives the kind of network share that a folder lies on. It is known on Linux only.
func networkShare(string) string { return "" }

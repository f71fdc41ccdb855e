//go:build !unix

package builtin

// nonBlocking is not needed where a path cannot lead to a pipe.
const nonBlocking = 0

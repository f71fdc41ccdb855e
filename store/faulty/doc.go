// Package faulty wraps a store and makes chosen commits fail, so that what runs on it can be shown to survive each failure
// at each commit. It imports no testing package: the crash harness uses it as well as tests.
package faulty

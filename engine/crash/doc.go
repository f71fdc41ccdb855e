// Package crash proves that a flow survives the loss of its process anywhere. It runs a scenario unbroken, then again
// and again for every commit: with a process that dies right before that commit (what it did is done, and nothing tells of
// it) or right after it, so that another process takes the run up; and with a store that says that the commit failed,
// which is true or not. Each history is compared with the unbroken one.
//
// It imports no testing package, so that programs can use it on their own flows.
package crash

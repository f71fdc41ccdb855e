// Package storetest is the suite that every driver of the store passes. A driver's test calls Run in one line; each
// sentence of the contract in package store has its test here. It is imported by tests only.
package storetest

// Package secret keeps the values of secrets out of everything that is stored, sent, logged or shown.
//
// A Redactor is made once, from the secrets that a process knows by name, and replaces each of them by [secret:NAME]
// wherever text enters: a model's answer, a tool's result, the text of an error, what a human wrote. It finds a value as
// it is, base64-encoded (also as a part of a longer base64 text, such as a Basic authorization header), URL-escaped and
// JSON-escaped. What it cannot find is a value that was cut in pieces, reversed or encrypted.
//
// The package imports nothing of the project but the values of flows/machine. Read redactor.go first, then forms.go.
package secret

// Package modeltest is a chat endpoint for tests. It answers from a queue or a function, keeps every request byte for
// byte, and refuses, as strict endpoints do, a history that is not legal:
//
//	s := modeltest.New(modeltest.Options{})
//	defer s.Close()
//	s.Push(modeltest.Reply{Calls: []modeltest.Call{{ID: "c1", Name: "lookup", Args: `{"id":"A1"}`}}}, modeltest.Reply{Text: "Done."})
//	// … run something with base_url s.URL …
//	for _, r := range s.Requests() { … }
//
// It is for tests only and imports nothing of the project. Open server.go first; legal.go holds the rules of histories.
package modeltest

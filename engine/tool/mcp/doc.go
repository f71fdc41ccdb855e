// Package mcp is the kind of tools that are called on a server of the Model Context Protocol.
//
//	mcp:
//	  files: {command: [npx, -y, "@modelcontextprotocol/server-filesystem", docs]}
//	  shop: {url: https://mcp.shop.example/mcp, headers: {Authorization: 'Bearer {{ env("SHOP_KEY") }}'}}
//	tools:
//	  read_doc:
//	    description: Read one document.
//	    effect: read
//	    parameters: {path: {type: string}}
//	    mcp: {server: files, tool: read_text_file}
//
// A server is a program that speaks over its stdin and stdout, or an address that is spoken to by streamable HTTP. It is
// started by the first call of one of its tools, once per process for each flow folder and definition, and is shared by all
// runs until Close. A start takes as long as the server's timeout allows and goes on when the call that asked for it has run
// out of time. A server that has ended is started again by the next call; one that keeps failing is left alone for 1 s, 2 s
// and so on, up to 30 s. After 3 calls in a row without any answer in time it is taken for hung and ended.
//
// The flow names its tools itself and says with `tool` what the server calls them. So the mapping is the author's, in both
// directions: a server's name may be of any length and hold anything, and the names of two servers cannot collide. List
// suggests a name for each. At load nothing is started, so a flow gives description, effect (write if left out) and, for
// the sake of a model, parameters. Before each call the arguments are checked by the server's own schema.
//
// A tool gives its structured content, else its text: the pieces below each other, with a mark in place of what is no text,
// such as [image image/png 1234 bytes]. The call's key travels as flowctl/idempotency_key in the request's _meta. How a call
// ends:
//
//	                                          read                   idempotent    write
//	a result                                  ok                     ok            ok
//	a result that is an error, or a refusal   Failed                 Failed        Failed
//	no such tool, or other arguments          Refused                Refused       Refused
//	could not be started or reached           Unavailable            Unavailable   Unavailable
//	HTTP 3xx, 4xx, 501                        Unavailable            Unavailable   Unavailable
//	other HTTP 5xx                            Unavailable            Unavailable   Unknown
//	the server ended during the call          Unavailable            Unknown       Unknown
//	no answer in time                         Unavailable (timeout)  Unknown       Unknown
//
// A write is Unavailable only where it is certain that the server has not begun it. An idempotent call is tried again either
// way; where the server said nothing of it, its result is unknown all the same. A list of more than 1000 tools, or of more
// than 100 pages, is not read to its end, and the server cannot be used. A tool that the list lacks is looked for in a new
// list, once in 5 s. A read whose answer cannot be read has
// Failed; anything else is ok all the same, with null for a value.
//
// Programs run in a process group of their own and see no environment but PATH, HOME, LANG, LC_ALL, TZ and TMPDIR as flowctl
// has them (SYSTEMROOT on Windows), and what `env` gives them. Their stderr goes to the log. Lines of their stdout that are
// no messages are passed over, up to 100 of them, and are told where the server comes to nothing. They are for flows that
// somebody trusts: without Options.Allow, New refuses to make a tool of one. Servers are offered nothing of flowctl's: no
// roots, no sampling, no questions to the human.
//
// Read mcp.go first, then call.go (one call and how it ended) and server.go (starts and ends). session.go begins a session;
// process.go, web.go and tap.go are what the library of the protocol stands on, answer.go reads what a tool gives.
package mcp

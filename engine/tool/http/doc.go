// Package http is the kind of tools that make one HTTP request.
//
//	tools:
//	  lookup_order:
//	    description: Look up one order by its number.
//	    parameters: {order_id: {type: string}, lines: {type: boolean, default: false}}
//	    http:
//	      method: GET
//	      url: https://shop.example/orders/{{ args.order_id }}
//	      query: {lines: "{{ args.lines }}"}
//	      headers: {Authorization: 'Bearer {{ env("SHOP_KEY") }}'}
//
// What is inserted can only ever be what its place is for. Scheme and host of the url are fixed text; a value in the path
// stays within its segment, one in the query is the value of its parameter, and one in a header has no line breaks. A call
// whose values do not fit is Refused, and nothing is sent. The json body is made as a value, never as text.
//
// A tool gives {status, headers, body}: headers by lower-case name, the first value of each, without cookies; the body as
// a value where its content type is JSON, else as text, null where there is none. A read whose answer is larger than
// 1 MiB, is no text or is not the JSON that it says, is Failed. A call that changes something and was carried out is ok
// all the same: its body is then cut, null or the text as it came.
//
// How a call ends, by its effect:
//
//	                                 read                  idempotent            write
//	2xx                              ok                    ok                    ok
//	404, 410                         Failed (none_found)   Failed (none_found)   Failed (none_found)
//	other 4xx, 501, 505, 3xx         Failed                Failed                Failed (302, 303: Unknown)
//	408, 429                         Unavailable           Unavailable           Unavailable
//	other 5xx                        Unavailable           Unavailable           Unknown
//	no connection                    Unavailable           Unavailable           Unavailable
//	connected, but no whole answer   Unavailable           Unknown               Unknown
//
// A write is Unavailable only where it is certain that nothing was done, because it will be tried again then. A server
// that breaks down, or a gateway that loses patience, may have done it. An idempotent call is tried again either way, so
// what a server says of its state counts for it; where it said nothing, nobody knows. Calls that may change something carry the call's
// key as Idempotency-Key and get a connection of their own: a connection that the server has just closed would leave them
// in doubt for nothing, and Go's client would send some of them twice.
//
// Redirects are followed within the same scheme and host, five at most. Any method but GET and HEAD is followed only as
// itself (307, 308), or to look at the result (303): other redirects would turn it into a GET and lose the write.
//
// A read whose time is up is Unavailable with the kind timeout. Nothing is retried here.
//
// With `batch: true` the calls of one turn are one request: each argument is the list of the values of all calls, and the
// answer is shared out among them, by place or by name.
//
// Requests go through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the process name, as those of most programs
// do; they speak HTTP/1.1. The environment of a flow is read in headers only, and what comes of it stands in no error.
//
// Read http.go first. address.go puts urls together, request.go requests, send.go sends them and judges how they ended,
// answer.go reads what came back. batch.go makes several calls in one request, shows.go says which arguments stand in the url.
package http

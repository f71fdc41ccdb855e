// Package script is a model that answers from a YAML file, for offline runs and for tests.
//
//	answers:
//	  - {state: understand, answer: {intent: refund}}
//	  - state: work
//	    text: I look at the order first.
//	    calls: [{tool: lookup_order, args: {order_id: A1001}}]
//	  - {state: work, error: rate}
//	  - {state: work, text: The order has been shipped.}
//	  - {state: work, visit: 2, turn: 1, text: As I said.}
//
// An answer is found by the state that asks, its visit and its turn, and by nothing else: not by what was sent, and not by
// what was asked before. So a run that goes on after a stop, in another process, finds the same answers as an unbroken
// one, and one script serves many runs at once.
//
// An answer without visit is for every visit to which no answer of the script is bound. An answer without turn is for the
// turn after that of the answer before it, of the same state and visit; the first is for turn 1. An error takes no turn,
// because the request is made again: it and the next answer are for the same turn, for the first and the second attempt
// (model.Origin.Attempt). When a turn is asked more often than it has answers, the last one stays.
//
// A request without answer is an error of class script. What nobody asked for is found by Script.Leftovers, at the end of
// a run. The package imports engine/model of the project. Open script.go first.
package script

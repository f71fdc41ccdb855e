// Package store is the contract between the engine and what keeps its runs: plain records, the Store interface, and small
// interfaces for what a driver may do besides. Recall is what a search of the long-term memory means, for all drivers.
//
// It knows nothing of flows, handlers or event types: to it an event is a row with a JSON payload. Drivers are in
// store/sqlite and store/memory; store/storetest is the suite that each of them passes; store/faulty wraps a driver and
// makes commits fail on purpose. It imports the standard library only.
package store

// Package catalog makes the models of flows: it reads what a flow declares under models, puts the wrappers of package
// model around an endpoint or a script, and keeps the result for all runs of the process.
//
//	models := catalog.New(catalog.Options{Getenv: os.LookupEnv})
//
// A Catalog is what an engine wants for its models. A process has one of it for each environment that keys come from.
//
// A model that answers from a script never waits between two tries, is not limited and costs nothing, and it stands for
// the fallbacks of its model too: nothing is sent anywhere. The package imports the model packages and flows/machine, and
// not the engine. Open catalog.go first; chain.go puts the wrappers together.
package catalog

package memory_test

import (
	"testing"

	"flowctl/store"
	"flowctl/store/memory"
	"flowctl/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{}) })
}

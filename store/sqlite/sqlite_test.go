package sqlite

import (
	"path/filepath"
	"testing"

	"flowctl/store"
	"flowctl/store/storetest"
)

// open opens a database that the test closes.
func open(t testing.TB, path string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// fresh opens a new database.
func fresh(t testing.TB) *DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "flowctl.db"), Options{})
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return fresh(t) })
}

// payload is the data of a usual event.
var payload = []byte(`{"tool":"lookup_order","args":{"order_id":"A1001"},"result":{"status":"ok","value":{"id":"A1001",` +
	`"item":"lamp","status":"paid","cents":4900}},"ms":12}`)

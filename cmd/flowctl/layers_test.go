package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers gives each package its height. A package may import what lies lower, and the package of a folder above it; every
// package must stand here.
var layers = map[string]int{
	"examples/embed": 60,
	"cmd/flowctl":    50,

	"states": 40,

	"engine/crash": 31,
	"engine":       30,

	"engine/view":    21,
	"engine/history": 20,

	"engine/model/catalog":   12,
	"engine/model":           10,
	"engine/model/modeltest": 10,
	"engine/model/openai":    10,
	"engine/model/script":    10,
	"engine/model/tokens":    10,

	"engine/secret":       10,
	"engine/tool":         10,
	"engine/tool/builtin": 10,
	"engine/tool/command": 10,
	"engine/tool/http":    10,
	"engine/tool/mcp":     10,
	"engine/tool/sql":     10,
	"flows":               10,
	"flows/graph":         10,

	"engine/tool/program": 6,

	"flows/match":  5,
	"flows/schema": 5,

	"flows/machine":   0,
	"flows/spell":     0,
	"store":           0,
	"store/faulty":    0,
	"store/memory":    0,
	"store/sqlite":    0,
	"store/storetest": 0,
}

// forbidden lists imports that are wrong though they point downwards, for a package and those below it.
var forbidden = map[string][]string{
	"engine": {"flows", "flows/graph", "store/sqlite", "store/memory", "store/faulty", "store/storetest"},
}

// plain lists the packages that depend on nothing but the standard library.
var plain = []string{"flows/machine", "flows/spell", "store"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func (p listed) name() string { return strings.TrimPrefix(p.ImportPath, "flowctl/") }

// ours gives the packages of this project among imports.
func ours(imports []string) []string {
	var inner []string
	for _, path := range imports {
		if name, ok := strings.CutPrefix(path, "flowctl/"); ok {
			inner = append(inner, name)
		}
	}
	return inner
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "flowctl/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestPackagesImportDownwardsOnly(t *testing.T) {
	for _, p := range listPackages(t) {
		height, known := layers[p.name()]
		if !known {
			t.Errorf("package %s has no layer: give it one in this test", p.name())
			continue
		}
		for _, inner := range ours(p.Imports) {
			if low, ok := layers[inner]; !ok || low >= height && !strings.HasPrefix(p.name(), inner+"/") {
				t.Errorf("%s imports %s, which does not lie below it", p.name(), inner)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range listPackages(t) {
		for from, list := range forbidden {
			if p.name() != from && !strings.HasPrefix(p.name(), from+"/") {
				continue
			}
			for _, inner := range ours(p.Imports) {
				if slices.Contains(list, inner) {
					t.Errorf("%s must not import %s", p.name(), inner)
				}
			}
		}
		if slices.Contains(p.Deps, "testing") && p.name() != "store/storetest" {
			t.Errorf("%s depends on package testing, which belongs in tests only", p.name())
		}
		if !slices.Contains(plain, p.name()) {
			continue
		}
		for _, dep := range p.Deps {
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") || strings.HasPrefix(dep, "flowctl/") {
				t.Errorf("%s must import the standard library only, and depends on %s", p.name(), dep)
			}
		}
	}
}

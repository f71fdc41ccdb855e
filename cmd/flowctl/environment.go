package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/joho/godotenv"

	"flowctl/engine/secret"
	"flowctl/flows/machine"
)

// environment is where keys come from: the variables of the process, then those of the .env files beside the flow and in
// the working folder.
type environment struct {
	getenv func(string) (string, bool)
	files  []map[string]string
}

// get reads a variable. One of the process wins even when it is empty.
func (e environment) get(name string) (string, bool) {
	if v, ok := e.getenv(name); ok {
		return v, true
	}
	for _, vars := range e.files {
		if v, ok := vars[name]; ok {
			return v, true
		}
	}
	return "", false
}

// set says whether a variable has a value.
func (e environment) set(name string) bool {
	v, _ := e.get(name)
	return v != ""
}

// environment reads the .env files for a flow of a folder.
func (a *app) environment(flowDir string) (environment, error) {
	env := environment{getenv: a.Getenv}
	paths := []string{filepath.Join(flowDir, ".env"), a.path(".env")}
	if same, err := filepath.Abs(paths[1]); err == nil && same == paths[0] {
		paths = paths[:1]
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return env, usagef("check its rights", "%s cannot be read: %v", path, reason(err))
		}
		vars, err := godotenv.Parse(file)
		_ = file.Close() // it was only read
		if err != nil {  // the parser's own words would repeat the line, and with it a key
			return env, usagef("write one NAME=value per line, quotes closed", "%s cannot be understood", path)
		}
		env.files = append(env.files, vars)
	}
	return env, nil
}

// generalKeys are the variables that hold the key of a model which names none.
func generalKeys() []string { return []string{"LLM_API_KEY", "OPENAI_API_KEY"} }

// secretsOf makes the redactor for a flow: of the keys of its models and of every variable that its texts name. The
// general keys are kept out of what is stored even where the flow uses none.
func secretsOf(m *machine.Machine, env environment) (*secret.Redactor, error) {
	values := map[string]string{}
	for _, name := range generalKeys() {
		v, _ := env.get(name)
		if _, err := secret.New(map[string]string{name: v}); err == nil || v != "" && usesGeneralKeys(m) {
			values[name] = v
		}
	}
	for _, name := range namedKeys(m) {
		if v, _ := env.get(name); v != "" {
			values[name] = v
		}
	}
	r, err := secret.New(values)
	if err != nil {
		return nil, usagef("a secret must be long enough to be kept out of what is stored", "%v", err)
	}
	return r, nil
}

// namedKeys lists the variables that a flow takes secrets from, sorted.
func namedKeys(m *machine.Machine) []string {
	if m == nil {
		return nil
	}
	var names []string
	for _, spec := range m.Models {
		if c, ok := spec.Value.Config.(*openaiConfig); ok && c.APIKeyEnv != "" {
			names = append(names, c.APIKeyEnv)
		}
	}
	names = append(names, m.Env...)
	slices.Sort(names)
	return slices.Compact(names)
}

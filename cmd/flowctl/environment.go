package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/joho/godotenv"

	"flowctl/engine/model/openai"
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

// secretsOf makes the redactor for a flow: of the keys of its models and of every variable that its texts name. The
// variables that hold the key of a model which names none are kept out of what is stored even where the flow has no such
// model, unless they cannot be.
func secretsOf(m *machine.Machine, env environment) (*secret.Redactor, error) {
	values := map[string]string{}
	for _, name := range (openai.Config{}).KeyNames() {
		v, _ := env.get(name)
		if _, err := secret.New(map[string]string{name: v}); err == nil {
			values[name] = v
		}
	}
	for _, name := range secretNames(m) {
		if v, _ := env.get(name); v != "" {
			values[name] = v
		}
	}
	r, err := secret.New(values)
	if err != nil {
		return nil, usagef("flowctl keeps secrets out of what it stores, so it must be able to tell them", "%v", err)
	}
	return r, nil
}

// secretNames lists the variables that a flow takes secrets from, sorted.
func secretNames(m *machine.Machine) []string {
	if m == nil {
		return nil
	}
	names := slices.Clone(m.Env)
	for _, spec := range m.Models {
		if cfg, ok := spec.Value.Config.(*openai.Config); ok {
			names = append(names, cfg.KeyNames()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

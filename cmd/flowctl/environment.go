package main

import (
	"errors"
	"os"
	"path/filepath"

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
// model. The key of a model that cannot be kept out, such as the EMPTY that some local servers are given, is refused where the
// model is to be called (checkModels): a run that goes by scripts or rules has no use for it.
func secretsOf(m *machine.Machine, env environment) (*secret.Redactor, error) {
	values := map[string]string{}
	for _, name := range append((openai.Config{}).KeyNames(), modelKeys(m)...) {
		if v, _ := env.get(name); keepable(name, v) == nil {
			values[name] = v
		}
	}
	if m != nil {
		for _, name := range m.Env {
			if v, _ := env.get(name); v != "" {
				values[name] = v
			}
		}
	}
	r, err := secret.New(values)
	if err != nil {
		return nil, usagef("flowctl keeps secrets out of what it stores, so it must be able to tell them", "%v", err)
	}
	return r, nil
}

// keepable says why the value of a variable cannot be kept out of what is stored.
func keepable(name, value string) error {
	_, err := secret.New(map[string]string{name: value})
	return err
}

// modelKeys lists the variables that may hold the keys of a flow's models.
func modelKeys(m *machine.Machine) []string {
	var names []string
	if m == nil {
		return nil
	}
	for _, spec := range m.Models {
		if cfg, ok := spec.Value.Config.(*openai.Config); ok {
			names = append(names, cfg.KeyNames()...)
		}
	}
	return names
}

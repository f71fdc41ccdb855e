package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"flowctl/engine/model"
	"flowctl/engine/model/catalog"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/script"
	"flowctl/engine/secret"
	"flowctl/flows"
	"flowctl/flows/machine"
)

// modelKinds are the providers of models by name.
func modelKinds() map[string]flows.ModelKind {
	return map[string]flows.ModelKind{
		"openai": {
			Doc:       "Any OpenAI-compatible endpoint.",
			Config:    func() any { return new(openai.Config) },
			Fallbacks: func(config any) []string { return config.(*openai.Config).Fallback },
			Check:     checkEndpoint,
		},
		"script": {
			Doc:    "A file of answers, for tests and demonstrations.",
			Config: func() any { return new(script.Config) },
		},
	}
}

// checkEndpoint looks at the config of an endpoint.
func checkEndpoint(config any, scope flows.ModelScope) []machine.ConfigProblem {
	cfg := config.(*openai.Config)
	found := cfg.Problems()
	if scope.CostLimit > 0 && scope.Used && cfg.Prices == nil {
		found = append(found, machine.ConfigProblem{Rule: "no-prices",
			Message: scope.Name + " has no prices, so limits.cost does not count what it costs"})
	}
	return found
}

// readingScripts makes the check of a flow read the scripts that it names. A run that was started is compiled without: it
// must not be lost with a script that nothing asks.
func readingScripts(cat flows.Catalog) flows.Catalog {
	kinds := make(map[string]flows.ModelKind, len(cat.ModelKinds))
	for name, kind := range cat.ModelKinds {
		check := kind.Check
		kind.Check = func(config any, scope flows.ModelScope) []machine.ConfigProblem {
			var found []machine.ConfigProblem
			if check != nil {
				found = check(config, scope)
			}
			key, file := scriptOf(config)
			if file == "" {
				return found
			}
			for _, message := range scriptProblems(file, inFolder(scope.Dir, file)) {
				found = append(found, machine.ConfigProblem{Path: key, Message: message})
			}
			return found
		}
		kinds[name] = kind
	}
	cat.ModelKinds = kinds
	return cat
}

// scriptOf gives the script that the config of a model names, and the key that names it; "" if there is none.
func scriptOf(config any) (key, file string) {
	switch cfg := config.(type) {
	case *openai.Config:
		return "offline", cfg.Offline
	case *script.Config:
		return "file", cfg.File
	}
	return "", ""
}

// scriptProblems says what is wrong with a script, one text for each mistake with its place.
func scriptProblems(name, path string) []string {
	_, err := script.Read(name, path)
	if err == nil {
		return nil
	}
	var found []string
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, one := range all.Unwrap() {
			found = append(found, "the script is wrong: "+one.Error())
		}
		return found
	}
	return []string{err.Error()}
}

// inFolder gives the path of a file that is named from a folder.
func inFolder(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// askedModels lists the models that states name, in written order.
func askedModels(m *machine.Machine) []machine.ModelSpec {
	var asked []machine.ModelSpec
	for _, spec := range m.Models {
		if slices.ContainsFunc(m.States, func(s machine.Item[*machine.State]) bool {
			return s.Value.ModelName == spec.Name && !s.Value.End()
		}) {
			asked = append(asked, spec.Value)
		}
	}
	return asked
}

// checkScripts refuses scripts with answers for states that the flow does not have: the run would only say so at its end.
func (a *app) checkScripts(m *machine.Machine, scripts map[string]string) error {
	for _, spec := range m.Models {
		file := scripts[spec.Name]
		if file == "" {
			continue
		}
		s, err := script.Read(file, file)
		if err != nil {
			return usagef("", "%v", err)
		}
		if found := s.Strangers(m.States.Names()); len(found) > 0 {
			return usagef("", "the script is for another flow: %v", found[0])
		}
	}
	return nil
}

// modelFlags say which scripts stand for models.
type modelFlags struct {
	offline bool
	models  []string // NAME=script:FILE
}

// scripts gives the scripts that stand for the models of a flow, absolute, by the name of the model.
func (a *app) scripts(m *machine.Machine, f modelFlags) (map[string]string, error) {
	scripts := map[string]string{}
	for _, flag := range f.models {
		name, file, err := a.modelFlag(m, flag)
		if err != nil {
			return nil, err
		}
		scripts[name] = file
	}
	if !f.offline {
		return scripts, a.checkScripts(m, scripts)
	}
	for _, spec := range askedModels(m) {
		cfg, online := spec.Config.(*openai.Config)
		switch {
		case scripts[spec.Name] != "" || !online:
		case cfg.Offline == "":
			return nil, usagef("give it one in the flow (offline: FILE), or here: --model "+spec.Name+"=script:FILE",
				"the model %s has no script to go by offline", spec.Name)
		default:
			scripts[spec.Name] = inFolder(m.Dir, cfg.Offline)
		}
	}
	return scripts, a.checkScripts(m, scripts)
}

// modelFlag reads NAME=script:FILE.
func (a *app) modelFlag(m *machine.Machine, flag string) (name, path string, err error) {
	const form = "write --model NAME=script:FILE, such as --model default=script:answers.yaml"
	name, what, _ := strings.Cut(flag, "=")
	file, isScript := strings.CutPrefix(what, "script:")
	if name == "" || what == "" {
		return "", "", usagef(form, "--model %s names no model with what stands for it", flag)
	}
	if !isScript || file == "" {
		return "", "", usagef(form, "--model %s: nothing but the answers of a script can stand for a model", flag)
	}
	var names []string
	for _, spec := range askedModels(m) {
		names = append(names, spec.Name)
	}
	if _, declared := m.Models.Get(name); !declared {
		return "", "", usagef(suggest(name, m.Models.Names(), takenModels(names)), "the flow %s has no model %s", m.Name, name)
	}
	if !slices.Contains(names, name) {
		return "", "", usagef(takenModels(names)+"; a script stands for a model together with its fallbacks",
			"no state of the flow %s takes the model %s", m.Name, name)
	}
	if found := scriptProblems(file, a.path(file)); len(found) > 0 {
		return "", "", usagef("", "--model %s: %s", flag, strings.Join(found, "\n  "))
	}
	path, err = filepath.Abs(a.path(file))
	return name, path, err
}

// takenModels says which models a script can stand for.
func takenModels(names []string) string {
	if len(names) == 0 {
		return "no state of it asks a model"
	}
	return "its states take: " + strings.Join(names, ", ")
}

// models makes the models of flows for an environment. What its requests fail with holds none of the secrets.
func (a *app) models(env environment, secrets *secret.Redactor) *catalog.Catalog {
	return catalog.New(catalog.Options{Getenv: env.get, Redact: secrets.Text, Clock: model.Clock{Now: a.Now, Sleep: a.Sleep}})
}

// checkModels looks before a run starts whether its models can be called. A key that is spoilt is an error; what the run
// may do without, since rules may decide, is a warning.
func (a *app) checkModels(models *catalog.Catalog, m *machine.Machine, env environment, scripts map[string]string) error {
	for _, spec := range askedModels(m) {
		if scripts[spec.Name] != "" {
			continue
		}
		if err := a.checkModel(models, m, env, spec.Name, "a state that cannot do without it will stop the run"); err != nil {
			return err
		}
		if cfg, ok := spec.Config.(*openai.Config); ok {
			for _, other := range cfg.Fallback {
				if err := a.checkModel(models, m, env, other, "it cannot stand in for "+spec.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *app) checkModel(models *catalog.Catalog, m *machine.Machine, env environment, name, then string) error {
	if !models.Ready(m, name) {
		a.errln("warning: no key for model " + name + " is set (" + strings.Join(models.KeyNames(m, name), " or ") + "); " + then)
		return nil
	}
	for _, key := range models.KeyNames(m, name) {
		if v, _ := env.get(key); v != "" {
			if err := keepable(key, v); err != nil {
				return usagef("flowctl keeps secrets out of what it stores, so it must be able to tell them; a local server takes any other word", "model %s: %v", name, err)
			}
			break
		}
	}
	err := models.Check(m, name)
	var failed *model.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.Class == model.Authentication:
		return usagef("", "model %s: %v", name, err)
	}
	a.errln("warning: model " + name + " cannot be called: " + a.clean(err.Error(), a.Terminal.Err) + "; " + then)
	return nil
}

package main

import (
	"slices"

	"flowctl/flows"
	"flowctl/flows/machine"
)

// openaiConfig is a model behind an OpenAI-compatible endpoint.
type openaiConfig struct {
	Model       string           `yaml:"model" doc:"Name of the model; LLM_MODEL, else OPENAI_MODEL, if left out"`
	BaseURL     string           `yaml:"base_url" doc:"Address of the endpoint; LLM_BASE_URL, else OPENAI_BASE_URL, if left out"`
	APIKeyEnv   string           `yaml:"api_key_env" doc:"Environment variable that holds the key; LLM_API_KEY, else OPENAI_API_KEY, if left out"`
	Temperature *float64         `yaml:"temperature" doc:"Randomness of the answers; the endpoint's own if left out"`
	MaxTokens   int64            `yaml:"max_tokens" flow:"min1" doc:"Longest answer, in tokens"`
	Timeout     machine.Duration `yaml:"timeout" doc:"Longest time of one call"`
}

// modelKinds are the providers of models by name.
func modelKinds() map[string]flows.ModelKind {
	return map[string]flows.ModelKind{
		"openai": {Doc: "Any OpenAI-compatible endpoint.", Config: func() any { return new(openaiConfig) }},
	}
}

// keysOf lists the variables of which one must be set for a model to be ready.
func keysOf(spec machine.ModelSpec) []string {
	if c, ok := spec.Config.(*openaiConfig); ok && c.APIKeyEnv != "" {
		return []string{c.APIKeyEnv}
	}
	return generalKeys()
}

// keyless says whether a model works without a key: one on an address of its own, such as a local server, may.
func keyless(spec machine.ModelSpec) bool {
	c, ok := spec.Config.(*openaiConfig)
	return ok && c.BaseURL != "" && c.APIKeyEnv == ""
}

// modelCase says whether the model of a state can be called here and now.
func modelCase(m *machine.Machine, s *machine.State, env environment) machine.ModelCase {
	if s.Model != machine.ModelDeclared {
		return s.Model
	}
	spec, ok := m.Models.Get(s.ModelName)
	if ok && (keyless(spec) || slices.ContainsFunc(keysOf(spec), env.set)) {
		return machine.ModelReady
	}
	return machine.ModelMissing
}

// keyNames lists the variables that would make a missing model of a flow ready.
func keyNames(m *machine.Machine) []string {
	if m == nil {
		return nil
	}
	var names []string
	for _, spec := range m.Models {
		for _, name := range keysOf(spec.Value) {
			if !keyless(spec.Value) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// usesGeneralKeys says whether a model of the flow takes its key from the general variables.
func usesGeneralKeys(m *machine.Machine) bool {
	return m != nil && slices.ContainsFunc(m.Models, func(spec machine.Item[machine.ModelSpec]) bool {
		c, ok := spec.Value.Config.(*openaiConfig)
		return ok && c.APIKeyEnv == ""
	})
}

// missingModels lists the models that some state uses and that cannot be called, in written order.
func missingModels(m *machine.Machine, env environment) []machine.ModelSpec {
	var missing []machine.ModelSpec
	for _, spec := range m.Models {
		for _, s := range m.States {
			if s.Value.ModelName == spec.Name && modelCase(m, s.Value, env) == machine.ModelMissing {
				missing = append(missing, spec.Value)
				break
			}
		}
	}
	return missing
}

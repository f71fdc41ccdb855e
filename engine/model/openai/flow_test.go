package openai_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model"
	"flowctl/engine/model/openai"
	"flowctl/engine/model/script"
	"flowctl/flows"
	"flowctl/flows/machine"
)

type end struct{}

func (*end) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

// compile compiles a flow whose only models are the given lines.
func compile(t *testing.T, models string) (*machine.Machine, error) {
	t.Helper()
	source := "version: 1\nname: f\nmodels:\n" + models + "start: done\nstates:\n  done: {handler: end}\n"
	return flows.Compile([]byte(source), t.TempDir(), flows.Catalog{
		Handlers: map[string]func() machine.HandlerSpec{"end": func() machine.HandlerSpec { return machine.HandlerSpec{Doc: "Ends.", With: &end{}} }},
		ModelKinds: map[string]flows.ModelKind{
			"openai": {Doc: "An endpoint.", Config: func() any { return new(openai.Config) }},
			"script": {Doc: "A script.", Config: func() any { return new(script.Config) }},
		},
	})
}

func TestConfigInAFlow(t *testing.T) {
	m, err := compile(t, `
  default: {provider: openai, model: m, base_url: "http://h/v1", api_key_env: K, temperature: 0, max_tokens: 5, timeout: 60s, protocol: json,
    window: 8000, offline: s.yaml, fallback: backup, concurrency: 2, rpm: 60, reasoning: send_back,
    extra: {reasoning_effort: low, chat_template_kwargs: {enableThinking: false}}, prices: {prompt: 0.15, completion: 0.6, cached: 0.075}}
  backup: {provider: script, file: s.yaml}
`)
	if err != nil {
		t.Fatal(err)
	}
	zero, cached := 0.0, 0.075
	want := &openai.Config{Model: "m", BaseURL: "http://h/v1", APIKeyEnv: "K", Temperature: &zero, MaxTokens: 5, Timeout: machine.Duration(time.Minute),
		Protocol: openai.ProtocolJSON, Window: 8000, Offline: "s.yaml", Fallback: []string{"backup"}, Concurrency: 2, RPM: 60, Reasoning: openai.ReasoningSendBack,
		Extra:  machine.Values{"reasoning_effort": "low", "chat_template_kwargs": machine.Values{"enableThinking": false}},
		Prices: &model.Prices{Prompt: 0.15, Completion: 0.6, Cached: &cached}}
	spec, _ := m.Models.Get("default")
	if !reflect.DeepEqual(spec.Config, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", spec.Config, want)
	}
	if spec, _ = m.Models.Get("backup"); !reflect.DeepEqual(spec.Config, &script.Config{File: "s.yaml"}) {
		t.Errorf("decoded %+v", spec.Config)
	}
	for _, bad := range []string{"protocol: xml", "reasoning: maybe", "rpm: 0", "prices: {prompt: 1}", "keys: 1"} {
		if _, err := compile(t, "  default: {provider: openai, "+bad+"}\n"); err == nil || !strings.Contains(err.Error(), "4:") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

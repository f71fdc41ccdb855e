package openai

import (
	"errors"
	"strings"
	"testing"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

func env(pairs ...string) Getenv {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestResolve(t *testing.T) {
	for _, test := range []struct {
		name             string
		cfg              Config
		env              Getenv
		model, key, base string
	}{
		{"all from LLM_", Config{}, env("LLM_API_KEY", "key-1", "LLM_BASE_URL", "http://h/v1", "LLM_MODEL", "m",
			"OPENAI_API_KEY", "key-2", "OPENAI_BASE_URL", "http://o/v1", "OPENAI_MODEL", "o"), "m", "LLM_API_KEY=key-1", "http://h/v1"},
		{"else from OPENAI_", Config{}, env("LLM_API_KEY", "", "OPENAI_API_KEY", "key-2", "OPENAI_BASE_URL", "http://o/v1", "OPENAI_MODEL", "o"), "o", "OPENAI_API_KEY=key-2", "http://o/v1"},
		{"the flow first", Config{Model: "f", BaseURL: "https://f/v1/", APIKeyEnv: "MINE"}, env("MINE", "key-3", "LLM_API_KEY", "key-1", "LLM_BASE_URL", "http://h/v1", "LLM_MODEL", "m"), "f", "MINE=key-3", "https://f/v1/"},
		{"OpenAI", Config{Model: "f"}, env("OPENAI_API_KEY", "key-2"), "f", "OPENAI_API_KEY=key-2", "https://api.openai.com/v1"},
		{"a local server", Config{Model: "f", BaseURL: "http://localhost:11434/v1"}, nil, "f", "=", "http://localhost:11434/v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.cfg.resolve(test.env)
			if err != nil || got.model != test.model || got.keyName+"="+got.key != test.key || got.base.String() != test.base {
				t.Errorf("gave %+v, %v", got, err)
			}
			if !test.cfg.Ready(test.env) {
				t.Error("it is not ready")
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	const secret = "sk-test-AAAA1111"
	for _, test := range []struct {
		name  string
		cfg   Config
		env   Getenv
		class model.Class
		want  string
	}{
		{"no model", Config{}, env("LLM_API_KEY", secret), model.BadRequest, "LLM_MODEL"},
		{"no key", Config{Model: "m"}, nil, model.Authentication, "set LLM_API_KEY or OPENAI_API_KEY"},
		{"no named key", Config{Model: "m", APIKeyEnv: "MINE", BaseURL: "http://h/v1"}, env("LLM_API_KEY", secret), model.Authentication, "set MINE"},
		{"line break", Config{Model: "m"}, env("LLM_API_KEY", secret+"\n"), model.Authentication, "LLM_API_KEY ends in a line break"},
		{"carriage return", Config{Model: "m"}, env("LLM_API_KEY", secret+"\r"), model.Authentication, "ends in a line break"},
		{"blank before", Config{Model: "m"}, env("LLM_API_KEY", " "+secret), model.Authentication, "copy the key again"},
		{"line break inside", Config{Model: "m"}, env("LLM_API_KEY", secret+"\nX: y"), model.Authentication, "copy the key again"},
		{"beyond ASCII", Config{Model: "m"}, env("LLM_API_KEY", secret+"é"), model.Authentication, "copy the key again"},
		{"no address", Config{Model: "m", BaseURL: "http://%"}, env("LLM_API_KEY", secret), model.BadRequest, "base_url is no address"},
		{"no scheme", Config{Model: "m"}, env("LLM_API_KEY", secret, "LLM_BASE_URL", "localhost:80"), model.BadRequest, "LLM_BASE_URL must start with"},
		{"file", Config{Model: "m", BaseURL: "file:///etc"}, env("LLM_API_KEY", secret), model.BadRequest, "base_url must start with"},
		{"password", Config{Model: "m", BaseURL: "https://u:" + secret + "@h/v1"}, env("LLM_API_KEY", "k"), model.BadRequest, "user name or password"},
		{"query", Config{Model: "m", BaseURL: "https://h/v1?key=" + secret}, env("LLM_API_KEY", "k"), model.BadRequest, "before the ?"},
		{"extra no mapping", Config{Model: "m", Extra: "x"}, env("LLM_API_KEY", secret), model.BadRequest, "extra must be a mapping"},
		{"extra takes over", Config{Model: "m", Extra: machine.Values{"messages": nil}}, env("LLM_API_KEY", secret), model.BadRequest, "extra must not hold messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.cfg, Options{Getenv: test.env})
			var e *model.Error
			if !errors.As(err, &e) || e.Class != test.class || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("gave %v", err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the key stands in %v", err)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	below, zero := -0.5, 0.0
	good := Config{BaseURL: "http://localhost:1/v1", Temperature: &zero, MaxTokens: 10, Window: 11, Extra: machine.Values{"seed": int64(1)},
		Prices: &model.Prices{Cached: &zero}}
	if found := good.Problems(); len(found) > 0 {
		t.Errorf("a good config has %+v", found)
	}
	if found := (Config{}).Problems(); len(found) > 0 {
		t.Errorf("an empty config has %+v", found)
	}
	for _, test := range []struct {
		cfg        Config
		path, want string
	}{
		{Config{BaseURL: "localhost:1"}, "base_url", "must start with https://"},
		{Config{BaseURL: "https://me:sk-test-AAAA1111@h/v1"}, "base_url", "user name or password"},
		{Config{Temperature: &below}, "temperature", "below 0"},
		{Config{MaxTokens: 5, Window: 5}, "max_tokens", "must be less"},
		{Config{Extra: "x"}, "extra", "must be a mapping"},
		{Config{Extra: machine.Values{"tools": nil}}, "extra", "must not hold tools"},
		{Config{Prices: &model.Prices{Cached: &below}}, "prices", "below 0"},
	} {
		found := test.cfg.Problems()
		if len(found) != 1 || found[0].Path != test.path || !strings.Contains(found[0].Message, test.want) || strings.Contains(found[0].Message, "AAAA1111") {
			t.Errorf("%+v has %+v, want %s: %s", test.cfg, found, test.path, test.want)
		}
	}
}

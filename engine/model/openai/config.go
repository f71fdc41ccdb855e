package openai

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// Config is a model of a flow whose provider is openai.
type Config struct {
	Model       string           `yaml:"model" doc:"Name of the model; LLM_MODEL, else OPENAI_MODEL, if left out"`
	BaseURL     string           `yaml:"base_url" doc:"Address of the endpoint, such as http://localhost:11434/v1; LLM_BASE_URL, else OPENAI_BASE_URL, else https://api.openai.com/v1, if left out"`
	APIKeyEnv   string           `yaml:"api_key_env" doc:"Environment variable that holds the key; LLM_API_KEY, else OPENAI_API_KEY, if left out"`
	Temperature *float64         `yaml:"temperature" doc:"Randomness of the answers, from 0; the endpoint's own if left out"`
	MaxTokens   int64            `yaml:"max_tokens" flow:"min1" doc:"Longest answer, in tokens; the endpoint's own limit if left out"`
	Timeout     machine.Duration `yaml:"timeout" doc:"Longest time of one request; 5m if left out"`

	Protocol string `yaml:"protocol" flow:"enum:native|json" doc:"native: the model's own tool calls; json: tool calls as JSON text, for models that have none; native if left out"`
	Window   int64  `yaml:"window" flow:"min1" doc:"Tokens that request and answer may have together"`
	Offline  string `yaml:"offline" doc:"Script of answers that stands for the model with --offline"`

	Fallback    []string      `yaml:"fallback" flow:"one" doc:"Models that are asked, in this order, when this one is out of order"`
	Concurrency int64         `yaml:"concurrency" flow:"min1" doc:"Requests at once, over all runs of a process; any number if left out"`
	RPM         int64         `yaml:"rpm" flow:"min1" doc:"Requests per minute, over all runs of a process; any number if left out"`
	Reasoning   string        `yaml:"reasoning" flow:"enum:keep|send_back|drop" doc:"What becomes of the reasoning that an endpoint gives beside the answer. keep: it stays in the history; send_back: it is also sent back with later requests, for endpoints that want it; drop: it is thrown away; keep if left out"`
	Extra       machine.Value `yaml:"extra" doc:"Fields that are put into the body of each request as they are, such as {reasoning_effort: low}"`
	Prices      *model.Prices `yaml:"prices" doc:"What tokens cost; needed for limits.cost"`
}

// The values of Config.Protocol and Config.Reasoning. "" stands for the first of each.
const (
	ProtocolNative = "native"
	ProtocolJSON   = "json"

	ReasoningKeep     = "keep"
	ReasoningSendBack = "send_back"
	ReasoningDrop     = "drop"
)

// DefaultTimeout is the longest time of one request where a flow does not say.
const DefaultTimeout = 5 * time.Minute

const defaultBaseURL = "https://api.openai.com/v1"

// Getenv reads a variable of the environment and says whether it is set.
type Getenv func(name string) (string, bool)

// first gives the first of some variables that has a value, and its name.
func (g Getenv) first(names ...string) (name, value string) {
	for _, name := range names {
		if g == nil {
			break
		}
		if v, _ := g(name); v != "" {
			return name, v
		}
	}
	return "", ""
}

// KeyNames lists the variables that may hold the key; the first that is set counts.
func (c Config) KeyNames() []string {
	if c.APIKeyEnv != "" {
		return []string{c.APIKeyEnv}
	}
	return []string{"LLM_API_KEY", "OPENAI_API_KEY"}
}

// Ready says whether the model can be called in an environment: its key is set, or it needs none, because it has an
// address of its own in the flow and names no key, as a local server does.
func (c Config) Ready(env Getenv) bool {
	name, _ := env.first(c.KeyNames()...)
	return name != "" || c.BaseURL != "" && c.APIKeyEnv == ""
}

// ID gives the name of the model at its endpoint, "" if neither the flow nor the environment says it.
func (c Config) ID(env Getenv) string {
	if c.Model != "" {
		return c.Model
	}
	_, id := env.first("LLM_MODEL", "OPENAI_MODEL")
	return id
}

// Problems says what is wrong with a config in any environment. Their paths are the fields that they are about.
func (c Config) Problems() []machine.ConfigProblem {
	var found []machine.ConfigProblem
	add := func(path, message string) {
		found = append(found, machine.ConfigProblem{Path: path, Message: message})
	}
	if c.BaseURL != "" {
		if _, err := c.address(nil); err != nil {
			add("base_url", err.Error())
		}
	}
	if c.Temperature != nil && *c.Temperature < 0 {
		add("temperature", "temperature must not be below 0")
	}
	if c.Window > 0 && c.MaxTokens >= c.Window {
		add("max_tokens", "max_tokens leaves nothing of window for the request; it must be less")
	}
	if _, err := c.extra(); err != nil {
		add("extra", err.Error())
	}
	if p := c.Prices; p != nil && (p.Prompt < 0 || p.Completion < 0 || p.Cached != nil && *p.Cached < 0) {
		add("prices", "a price must not be below 0")
	}
	return found
}

// target is where requests go, once the environment has been read.
type target struct {
	model, keyName, key string
	base                *url.URL
}

// resolve reads the environment and checks what comes out. No error holds the key.
func (c Config) resolve(env Getenv) (target, error) {
	t := target{model: c.ID(env)}
	if t.model == "" {
		return t, badConfig("no model is named: give it as model, or set LLM_MODEL")
	}
	if !c.Ready(env) {
		return t, &model.Error{Class: model.Authentication, Err: fmt.Errorf("there is no key: set %s", strings.Join(c.KeyNames(), " or "))}
	}
	t.keyName, t.key = env.first(c.KeyNames()...)
	if err := checkKey(t.keyName, t.key); err != nil {
		return t, err
	}
	var err error
	t.base, err = c.address(env)
	return t, err
}

// address reads the base URL. Its error does not repeat what it cannot read, which may hold a password.
func (c Config) address(env Getenv) (*url.URL, error) {
	from, text := "base_url", c.BaseURL
	if text == "" {
		from, text = env.first("LLM_BASE_URL", "OPENAI_BASE_URL")
	}
	if text == "" {
		text = defaultBaseURL
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, badConfig("%s is no address: write it like %s", from, defaultBaseURL)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, badConfig("%s must start with https:// or http://, like %s", from, defaultBaseURL)
	case u.User != nil:
		return nil, badConfig("%s holds a user name or password: put the key into an environment variable and name it as api_key_env", from)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, badConfig("%s must end before the ? or #: write it like %s", from, defaultBaseURL)
	}
	return u, nil
}

// checkKey refuses a key that cannot stand in a header, or that a careless copy has spoilt.
func checkKey(name, key string) error {
	switch {
	case strings.HasSuffix(key, "\n"), strings.HasSuffix(key, "\r"):
		return &model.Error{Class: model.Authentication,
			Err: fmt.Errorf("the value of %s ends in a line break: remove it where the variable is set", name)}
	case strings.TrimSpace(key) != key, strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }):
		return &model.Error{Class: model.Authentication,
			Err: fmt.Errorf("the value of %s holds characters that no key has (blanks around it, line breaks, or beyond ASCII): copy the key again", name)}
	}
	return nil
}

// owned are the fields of a request that extra must not touch.
var owned = []string{"model", "messages", "tools", "stream", "n"}

// extra gives the extra fields as an object.
func (c Config) extra() (machine.Values, error) {
	if c.Extra == nil {
		return nil, nil
	}
	fields, ok := c.Extra.(machine.Values)
	if !ok {
		return nil, badConfig("extra must be a mapping of fields, such as {reasoning_effort: low}")
	}
	for _, name := range machine.SortedNames(fields) {
		if slices.Contains(owned, name) {
			return nil, badConfig("extra must not hold %s, which flowctl sets", name)
		}
	}
	return fields, nil
}

func badConfig(format string, args ...any) error {
	return &model.Error{Class: model.BadRequest, Err: fmt.Errorf(format, args...)}
}

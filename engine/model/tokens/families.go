package tokens

import "strings"

// DefaultWindow is the window, in tokens, to reckon with where neither the flow nor Window knows it.
const DefaultWindow = 8_000

// Window gives how many tokens request and answer of a model may have together, by its name at the endpoint, and whether
// that is known. It is what the smallest model of a family takes, where the name does not tell them apart. A server may be
// set to less, as local ones often are, and Short tells when it cuts what it is sent: the window of a flow's model goes
// before this one.
func Window(modelID string) (tokens int64, known bool) {
	f := familyOf(modelID)
	return f.window, f.window > 0
}

// family is the models whose name begins with a prefix. The prefix ends where a word of the name ends: gpt-4 is not the
// family of gpt-4o.
type family struct {
	prefix   string
	window   int64     // in tokens
	encoding *encoding // nil: not published, or not part of this program
}

// families lists the known models in the order of their prefixes; the longest one that fits counts. The windows are the
// providers' figures, the lower one where they differ. For gpt-5 and later it is the largest request, which is smaller than
// the window.
var families = []family{
	{"babbage-002", 16_384, cl100k},
	{"chatgpt", 128_000, o200k},
	{"claude", 200_000, nil},
	{"claude-2", 100_000, nil},
	{"claude-instant", 100_000, nil},
	{"codellama", 16_384, nil},
	{"codestral", 32_768, nil},
	{"codex-mini", 200_000, o200k},
	{"command-a", 256_000, nil},
	{"command-r", 128_000, nil},
	{"davinci-002", 16_384, cl100k},
	{"deepseek-chat", 128_000, nil},
	{"deepseek-coder", 16_384, nil},
	{"deepseek-coder-v2", 128_000, nil},
	{"deepseek-r1", 65_536, nil},
	{"deepseek-reasoner", 128_000, nil},
	{"deepseek-v3", 65_536, nil},
	{"deepseek-v3.1", 128_000, nil},
	{"deepseek-v3.2", 128_000, nil},
	{"deepseek-v4", 128_000, nil},
	{"devstral", 128_000, nil},
	{"gemini", 1_000_000, nil},
	{"gemini-1.0", 30_720, nil},
	{"gemini-2.5-flash-image", 32_768, nil},
	{"gemini-pro", 30_720, nil},
	{"gemma", 8_192, nil},
	{"gemma-3", 32_768, nil},
	{"gemma-3n", 32_768, nil},
	{"gemma2", 8_192, nil},
	{"gemma3", 32_768, nil},
	{"gemma3n", 32_768, nil},
	{"glm-4", 128_000, nil},
	{"glm-4.6", 200_000, nil},
	{"glm-4.7", 200_000, nil},
	{"glm-5", 200_000, nil},
	{"glm4", 128_000, nil},
	{"gpt-3.5", 16_385, cl100k},
	{"gpt-3.5-turbo-instruct", 4_096, cl100k},
	{"gpt-35", 16_385, cl100k},
	{"gpt-4", 8_192, cl100k},
	{"gpt-4-0125", 128_000, cl100k},
	{"gpt-4-1106", 128_000, cl100k},
	{"gpt-4-32k", 32_768, cl100k},
	{"gpt-4-turbo", 128_000, cl100k},
	{"gpt-4-vision", 128_000, cl100k},
	{"gpt-4.1", 1_047_576, o200k},
	{"gpt-4.5", 128_000, o200k},
	{"gpt-4o", 128_000, o200k},
	{"gpt-5", 272_000, o200k},
	{"gpt-5-chat", 128_000, o200k},
	{"gpt-5.1-chat", 128_000, o200k},
	{"gpt-5.2-chat", 128_000, o200k},
	{"gpt-5.3-chat", 128_000, o200k},
	{"gpt-6", 272_000, o200k},
	{"gpt-oss", 131_072, o200k},
	{"grok-3", 131_072, nil},
	{"grok-4", 256_000, nil},
	{"kimi-k2", 131_072, nil},
	{"kimi-k2-0905", 262_144, nil},
	{"kimi-k2-thinking", 262_144, nil},
	{"kimi-k2.5", 262_144, nil},
	{"kimi-latest", 131_072, nil},
	{"llama-2", 4_096, nil},
	{"llama-3", 8_192, nil},
	{"llama-3.1", 131_072, nil},
	{"llama-3.2", 131_072, nil},
	{"llama-3.3", 131_072, nil},
	{"llama-4", 131_072, nil},
	{"llama2", 4_096, nil},
	{"llama3", 8_192, nil},
	{"llama3.1", 131_072, nil},
	{"llama3.2", 131_072, nil},
	{"llama3.3", 131_072, nil},
	{"llama4", 131_072, nil},
	{"magistral", 40_000, nil},
	{"ministral", 128_000, nil},
	{"mistral", 32_768, nil},
	{"mistral-large", 128_000, nil},
	{"mistral-medium", 128_000, nil},
	{"mistral-nemo", 128_000, nil},
	{"mixtral", 32_768, nil},
	{"moonshot-v1-128k", 131_072, nil},
	{"moonshot-v1-32k", 32_768, nil},
	{"moonshot-v1-8k", 8_192, nil},
	{"o1", 200_000, o200k},
	{"o1-mini", 128_000, o200k},
	{"o1-preview", 128_000, o200k},
	{"o3", 200_000, o200k},
	{"o4", 200_000, o200k},
	{"open-mistral-7b", 32_768, nil},
	{"open-mistral-nemo", 128_000, nil},
	{"open-mixtral", 32_768, nil},
	{"phi-3", 4_096, nil},
	{"phi-4", 16_384, nil},
	{"phi3", 4_096, nil},
	{"phi4", 16_384, nil},
	{"pixtral", 128_000, nil},
	{"qwen-max", 32_768, nil},
	{"qwen-plus", 131_072, nil},
	{"qwen-turbo", 131_072, nil},
	{"qwen2", 32_768, nil},
	{"qwen2.5", 32_768, nil},
	{"qwen3", 32_768, nil},
	{"qwen3-coder", 262_144, nil},
	{"qwen3-max", 262_144, nil},
	{"qwen3-next", 262_144, nil},
	{"qwen3.5", 262_144, nil},
	{"qwq", 32_768, nil},
	{"text-embedding", 8_191, cl100k},
}

// familyOf gives the family of a model, the zero family if none is known.
func familyOf(modelID string) family {
	name, best := bareName(modelID), family{}
	for _, f := range families {
		if len(f.prefix) > len(best.prefix) && strings.HasPrefix(name, f.prefix) && endsWord(name[len(f.prefix):]) {
			best = f
		}
	}
	return best
}

// endsWord says whether no letter or digit goes on behind a prefix.
func endsWord(rest string) bool {
	if rest == "" {
		return true
	}
	k := kinds[rest[0]]
	return k != small && k != digit
}

// bareName gives a model's name in small letters and without what routers and hosts put before it, such as openrouter/openai/,
// us.anthropic. or ft:.
func bareName(modelID string) string {
	name := strings.ToLower(strings.TrimSpace(modelID))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for {
		letters := span(name, small)
		if letters == 0 || letters == len(name) || name[letters] != '.' {
			break
		}
		name = name[letters+1:]
	}
	name = strings.TrimPrefix(name, "ft:")
	return strings.TrimPrefix(name, "meta-")
}

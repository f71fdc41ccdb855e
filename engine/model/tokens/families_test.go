package tokens

import (
	"strings"
	"testing"
)

func TestFamiliesAreInOrder(t *testing.T) {
	for i, f := range families {
		if i > 0 && f.prefix <= families[i-1].prefix {
			t.Errorf("%s stands behind %s", f.prefix, families[i-1].prefix)
		}
		for _, id := range []string{f.prefix, f.prefix + "-x", "some/router/" + strings.ToUpper(f.prefix)} {
			if got := familyOf(id); got != f {
				t.Errorf("%s is of the family %q, want %q", id, got.prefix, f.prefix)
			}
		}
		if f.window < 4_000 || f.window > 2_000_000 {
			t.Errorf("%s has a window of %d", f.prefix, f.window)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		models string
		want   int64
	}{
		{"gpt-4 gpt-4-0613 azure/gpt-4", 8_192},
		{"gpt-4-turbo gpt-4-turbo-2024-04-09 gpt-4-1106-preview gpt-4o gpt-4o-mini openai/gpt-4o chatgpt-4o-latest o1-mini", 128_000},
		{"gpt-4.1 gpt-4.1-mini GPT-4.1-Nano", 1_047_576},
		{"gpt-5 gpt-5-nano gpt-5.2 gpt-6.2-sol", 272_000},
		{"gpt-5-chat-latest gpt-5.1-chat-latest", 128_000},
		{"o1 o3-mini o4-mini claude-sonnet-4-5-20250929 us.anthropic.claude-opus-4-1-v1:0 anthropic/claude-3.5-haiku", 200_000},
		{"gpt-oss:20b openai/gpt-oss-120b llama3.1:8b meta-llama/Meta-Llama-3.1-8B-Instruct llama-3.3-70b-versatile", 131_072},
		{"llama3 llama3:70b meta.llama3-8b-instruct-v1:0 gemma2:9b", 8_192},
		{"models/gemini-2.5-flash gemini-1.5-pro google/gemini-3-pro-preview", 1_000_000},
		{"deepseek-chat deepseek/deepseek-v3.1:free deepseek-reasoner glm-4.5-air", 128_000},
		{"qwen2.5:7b Qwen/Qwen2.5-72B-Instruct qwen3:8b mistral:latest mistral-small-latest", 32_768},
		{"qwen3-coder-plus moonshotai/kimi-k2.5 kimi-k2-thinking-turbo", 262_144},
		{"glm-4.6 z-ai/glm-5", 200_000},
	} {
		for _, id := range strings.Fields(tc.models) {
			if got, known := Window(id); got != tc.want || !known {
				t.Errorf("%s has %d, %v, want %d", id, got, known, tc.want)
			}
		}
	}
	for _, id := range []string{"", "auto", "my-own-model", "gpt", "gpt-40", "llama30b", "openrouter/auto", "gpt-4o/"} {
		if got, known := Window(id); got != 0 || known {
			t.Errorf("%q has %d, %v, want none", id, got, known)
		}
	}
}

package flows

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// TestRules holds the examples of each rule to what they say: the wrong one breaks this rule and no other, the right one
// none.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		t.Run(r.ID, func(t *testing.T) {
			if seen[r.ID] || r.Title == "" || r.Doc == "" {
				t.Fatalf("rule %s stands twice or lacks its title or explanation", r.ID)
			}
			seen[r.ID] = true
			_, found := Check([]byte(r.Wrong), Place{Dir: t.TempDir()}, testCatalog())
			if len(found) == 0 {
				t.Fatalf("the wrong example breaks nothing:\n%s", r.Wrong)
			}
			for _, f := range found {
				if f.Rule != r.ID || f.Severity != r.Severity {
					t.Errorf("the wrong example gives %s, want rule %s with severity %s", f, r.ID, r.Severity)
				}
			}
			if m, found := Check([]byte(r.Right), Place{Dir: t.TempDir()}, testCatalog()); m == nil || len(found) > 0 {
				t.Errorf("the right example is not clean: %v", found)
			}
			_, err := CompileStored([]byte(r.Wrong), t.TempDir(), testCatalog())
			if (err == nil) != r.Lint && r.Severity == SeverityError {
				t.Errorf("a stored run with the wrong example gives %v, and the rule's Lint is %v", err, r.Lint)
			}
		})
	}
}

// TestEveryRuleIsListed looks for ids that findings use and Rules does not explain.
func TestEveryRuleIsListed(t *testing.T) {
	known := map[string]bool{}
	for _, r := range Rules() {
		known[r.ID] = true
	}
	constant := regexp.MustCompile(`\brule[A-Z]\w+ += "([a-z-]+)"`)
	for _, file := range []string{"rules.go", "expr.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ids := constant.FindAllSubmatch(source, -1)
		if len(ids) < 5 {
			t.Errorf("%s declares %d rule ids; the test looks for them in the wrong way", file, len(ids))
		}
		for _, id := range ids {
			if !known[string(id[1])] {
				t.Errorf("%s: rule %s is not in Rules", file, id[1])
			}
		}
	}
	if bytes.Contains([]byte(Rules()[0].Doc), []byte("\t")) {
		t.Error("explanations must not hold tabs")
	}
}

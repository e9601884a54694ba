package snippets

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exceptions lists blocks that are not run, by page and first line, with the reason.
var exceptions = map[string]string{
	`docs/access.md: {"ready":false,"reason":"a message could not be stored","step":"store"}`: "broker: TestReadyNamesTheStep compares this answer",
	"README.md: mkdir ../app && cd ../app":                                                    "TestOutside runs it",
	"README.md: // main.go":                                                                   "TestOutside compiles and runs it",
	"README.md: go mod tidy":                                                                  "TestOutside runs it",
	"CONTRIBUTING.md: make test":                                                              "runs this test",
	"CONTRIBUTING.md: go test ./queue/...":                                                    "runs tests",
	"CONTRIBUTING.md: go generate ./internal/apigen":                                          "writes files that tests of this package compare",
	"CONTRIBUTING.md: go test ./configs -run TestPage -update":                                "writes pages that tests of these packages compare",
	"docs/guides/generate.md: npm install openapi-typescript@7 openapi-fetch@0 typescript@5 @types/node@24": "internal/samples: TestGenerated",
	"docs/operations.md: # prometheus.yml": "a configuration of Prometheus; promtool checks the rules",
	"docs/operations.md: redis-cli -h redis-0 --rdb /backup/redis-0-$(date -u +%Y%m%dT%H%M%SZ).rdb":                                            "needs the operator's Redis",
	"docs/console.md: npm ci --prefix internal/console/web":                                                                                    "builds the console; its own test does that",
	`docs/access.md: q='{"hook":"subscribe","client":"bob/phone","user":"bob","address":"192.0.2.7:51312","channel":"staff:1"}' t=$(date +%s)`: "asks the backend above, which broker/hook runs",
}

// tested lists the languages of pages whose blocks a test of another package runs.
var tested = map[string]string{
	"docs/cli.md text":                      "cmd/switchboard: TestPage",
	"docs/guides/load-balancers.md haproxy": "deploy: TestSnippetsOfGuides",
	"docs/guides/load-balancers.md nginx":   "deploy: TestSnippetsOfGuides",
	"docs/kit.md sh":                        "internal/e2e: TestKitDocCommands",
	"docs/state.md sh":                      "internal/e2e: TestStateDocCommands",
	"docs/state.md json":                    "internal/e2e: TestStateDocCommands",
	"docs/state.md html":                    "internal/e2e: TestStateDocForm",
	"docs/holds.md sh":                      "kit/hold: TestDocCommands",
	"docs/guides/deploy.md sh":              "deploy: the tests build the image and the packages, and run Compose and Helm",
	"docs/webhooks.md js":                   "webhook: TestNodeExample",
	"docs/guides/generate.md ts":            "internal/samples: TestGenerated",
	"docs/guides/languages.md sh":           "internal/samples runs the programs",
	"docs/guides/languages.md php":          "internal/samples: TestPush, TestIssueToken and TestWebhook",
	"docs/guides/languages.md python":       "internal/samples: TestPush, TestIssueToken and TestWebhook",
	"docs/guides/languages.md ruby":         "internal/samples: TestPush, TestIssueToken and TestWebhook",
	"docs/guides/languages.md java":         "internal/samples: TestPush, TestIssueToken and TestWebhook",
	"docs/access.md js":                     "broker/hook: TestNodeExample",
}

// languages are those of blocks that tests of this package run, and text, which is not run.
var languages = []string{
	"sh", "sh hidden", "json answer", "json received", "json log", "wire", "wire hidden", "yaml", "go", "js", "ts", "html", "redis", "text",
}

// inText matches what must not be in a block of text, since an exchange runs it.
var inText = regexp.MustCompile(`(?m)^(?:\w* *[<>] *)?(?:\{"|(?:GET|POST|PUT|PATCH|DELETE) /)|"type":"`)

// skipped reports whether a block is not run here.
func skipped(b block) bool {
	return exceptions[b.page+": "+b.first()] != "" || tested[b.page+" "+b.language] != ""
}

// TestLanguages checks that a test runs each block: it has one of the languages, or an exception.
func TestLanguages(t *testing.T) {
	counts := map[string]int{}
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			kind := strings.TrimSpace(b.language + " " + b.info)
			switch {
			case exceptions[b.page+": "+b.first()] != "":
				kind = "excepted"
			case tested[b.page+" "+b.language] != "":
				kind = "run by another test: " + b.language
			case kind == "":
				t.Errorf("%s:%d: the block has no language, so no test runs it", b.page, b.line)
			case !slices.Contains(languages, kind):
				t.Errorf("%s:%d: no test runs %q; the languages are %q", b.page, b.line, kind, languages)
			case kind == "text" && inText.MatchString(b.code):
				t.Errorf("%s:%d: a text shows messages; with the language wire, a test runs them", b.page, b.line)
			}
			counts[kind]++
		}
	}
	summary, _ := json.Marshal(counts)
	t.Logf("%s", summary)
}

// TestExceptions checks that each exception names a block.
func TestExceptions(t *testing.T) {
	found := map[string]bool{}
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			found[b.page+": "+b.first()], found[b.page+" "+b.language] = true, true
		}
	}
	for _, table := range []map[string]string{exceptions, tested} {
		for key := range table {
			if !found[key] {
				t.Errorf("there is no block %q", key)
			}
		}
	}
}

package snippets

// exceptions lists blocks that are not run, by page and first line, with the reason.
var exceptions = map[string]string{
	"CONTRIBUTING.md: make test":                                                                    "runs this test",
	"CONTRIBUTING.md: go test ./queue/...":                                                          "runs tests",
	"CONTRIBUTING.md: go test ./configs -run TestPage -update":                                      "writes pages that tests of these packages compare",
	"docs/operations.md: # prometheus.yml":                                                          "a configuration of Prometheus; promtool checks the rules",
	"docs/operations.md: redis-cli -h redis-0 --rdb /backup/redis-0-$(date -u +%Y%m%dT%H%M%SZ).rdb": "needs the operator's Redis",
	"docs/console.md: npm ci --prefix internal/console/web":                                         "builds the console; its own test does that",
	`docs/access.md: q='{"hook":"subscribe","client":"bob/phone","user":"bob","address":"192.0.2.7:51312","channel":"staff:1"}' t=$(date +%s)`: "asks the backend above, which broker/hook runs",
}

// tested lists the languages of pages whose blocks a test of another package runs.
var tested = map[string]string{
	"docs/kit.md sh":           "internal/e2e: TestKitDocCommands",
	"docs/state.md sh":         "internal/e2e: TestStateDocCommands",
	"docs/state.md html":       "internal/e2e: TestStateDocForm",
	"docs/holds.md sh":         "kit/hold: TestDocCommands",
	"docs/guides/deploy.md sh": "deploy: the tests build the image and the packages, and run Compose and Helm",
	"docs/webhooks.md js":      "webhook: TestNodeExample",
	"docs/access.md js":        "broker/hook: TestNodeExample",
}

// skipped reports whether a block is not run here.
func skipped(b block) bool {
	return exceptions[b.page+": "+b.first()] != "" || tested[b.page+" "+b.language] != ""
}

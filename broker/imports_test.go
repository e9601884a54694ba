package broker_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// mayImport lists which packages of this repository a package may import. A package without an
// entry may import all: commands and test helpers.
var mayImport = map[string][]string{
	".":                     {}, // the version
	"internal/nearest":      {},
	"internal/setting":      {},
	"internal/wire":         {},
	"internal/payload":      {"internal/wire"},
	"internal/strict":       {"internal/payload", "internal/wire"},
	"internal/tlsconfig":    {},
	"internal/backend":      {"internal/tlsconfig"},
	"internal/proxyproto":   {},
	"internal/redispipe":    {"internal/meter"},
	"internal/state":        {"internal/payload", "internal/wire"},
	"internal/certfile":     {"internal/tlsconfig"},
	"internal/latency":      {},
	"internal/leader":       {"internal/redispipe"},
	"internal/linger":       {},
	"internal/sketch":       {},
	"internal/slots":        {},
	"internal/loglimit":     {},
	"internal/console":      {},
	"internal/meter":        {},
	"internal/redisurl":     {"internal/slots", "internal/tlsconfig"},
	"internal/faults":       {"client", "internal/await", "internal/cond", "internal/freeport", "internal/keytable", "internal/testbed", "internal/redistest", "internal/redisurl", "internal/replay", "internal/ssetest", "internal/state", "internal/wire"},
	"registry":              {"internal/setting", "internal/meter", "internal/redispipe", "internal/slots"},
	"queue":                 {"internal/setting", "internal/meter", "internal/redispipe", "internal/state"},
	"kit":                   {"internal/leader", "internal/meter", "internal/state", "internal/wire", "queue", "broker/api", "broker/extension", "janitor/task", "kit/budget", "kit/index"},
	"kit/budget":            {"internal/redispipe", "internal/wire"},
	"kit/index":             {"internal/meter", "internal/redispipe", "internal/wire"},
	"kit/hold":              {"internal/leader", "internal/setting", "internal/payload", "internal/state", "internal/wire", "queue", "events", "janitor/task", "kit", "kit/index", "broker/extension", "broker/api", "broker/namespace", "broker/session"},
	"kit/kittest":           {"broker", "broker/extension", "client", "internal/await", "internal/redispipe", "internal/redistest", "queue", "registry", "kit/budget", "kit/index"},
	"kit/room":              {"internal/leader", "internal/setting", "internal/payload", "internal/state", "internal/wire", "queue", "registry", "broker/extension", "broker/api", "broker/delivery", "broker/namespace", "broker/session", "kit", "kit/budget", "kit/index", "janitor/task"},
	"client/room":           {"client"},
	"client/js":             {},
	"deploy":                {},
	"client/backend":        {"client", "client/account", "client/board", "client/hold", "client/room", "client/scene"},
	"kit/board":             {"internal/leader", "internal/setting", "internal/meter", "internal/redispipe", "internal/state", "internal/wire", "janitor/task", "queue", "broker/extension", "broker/api", "broker/namespace", "broker/session", "kit", "kit/budget", "kit/index"},
	"client/board":          {"client"},
	"kit/account":           {"internal/leader", "internal/setting", "internal/payload", "internal/redispipe", "internal/state", "internal/wire", "janitor/task", "queue", "broker/extension", "broker/api", "broker/auth", "broker/limit", "broker/namespace", "kit", "kit/index"},
	"client/account":        {"client"},
	"kit/scene":             {"internal/leader", "internal/setting", "internal/state", "internal/wire", "queue", "broker/extension", "broker/api", "broker/namespace", "broker/session", "janitor/task", "kit", "kit/budget", "kit/index"},
	"webhook":               {"internal/setting", "internal/backend"},              // backends import it
	"events":                {"internal/setting", "internal/redispipe", "webhook"}, // webhook defines the meaning of the answers
	"events/inspect":        {"internal/wire", "registry", "events", "broker/api"},
	"events/recording":      {"registry", "queue", "events"},
	"events/truth":          {"internal/state", "registry", "queue", "events"},
	"janitor":               {"internal/setting", "internal/latency", "internal/leader", "internal/loglimit", "internal/state", "registry", "queue", "events", "janitor/heartbeat", "janitor/task"}, // it runs the rounds of events
	"janitor/heartbeat":     {"internal/redispipe"},
	"janitor/task":          {}, // packages with checks and rounds import it
	"client":                {"internal/state", "internal/wire"},
	"client/hold":           {"client"},
	"client/scene":          {"client"},
	"bench/million":         {"bench/*", "internal/redistest"},
	"bench/failures":        {"bench/*", "internal/await", "internal/testbed", "internal/leader", "internal/redispipe", "internal/redistest", "internal/slots", "broker", "broker/extension", "kit/*", "queue", "registry"},
	"bench/swarm":           {"internal/wire", "broker/dialect/*"},
	"bench/system":          {"internal/await", "internal/freeport", "internal/testbed", "internal/redispipe", "broker/dialect", "broker/dialect/*", "bench/swarm", "bench/usage"},
	"bench/report":          {},
	"bench/suite":           {"internal/await", "internal/testbed", "internal/redistest", "bench/*"},
	"configs":               {"internal/nearest", "internal/setting", "kit/*", "broker", "broker/auth", "broker/hook", "internal/backend", "internal/certfile", "broker/limit", "broker/namespace", "registry", "queue", "janitor", "events", "webhook"},
	"broker":                {"internal/setting", "internal/slots", "internal/state", "internal/wire", "internal/certfile", "internal/latency", "internal/loglimit", "registry", "queue", "broker/*", "janitor/heartbeat"},
	"broker/dialect":        {"internal/state", "internal/wire"},
	"broker/dialect/native": {"internal/payload", "internal/state", "internal/wire", "broker/dialect"},
	"broker/dialect/sse":    {"internal/wire", "broker/dialect", "broker/dialect/native"},
	"broker/loop":           {},
	"broker/work":           {},
	"broker/namespace":      {"internal/state", "internal/wire"},
	"broker/fields":         {"internal/payload", "internal/state", "internal/wire", "broker/namespace"},
	"broker/auth":           {"internal/payload", "internal/backend", "internal/wire", "broker/namespace"},
	"broker/limit":          {"registry"},
	"broker/transport":      {"internal/linger", "internal/proxyproto", "internal/wire", "broker/dialect", "broker/limit", "broker/loop"},
	"broker/hub":            {"internal/meter", "internal/state", "internal/wire", "queue", "broker/dialect", "broker/loop", "broker/work"},
	"broker/snapshot":       {"internal/meter", "internal/state", "internal/wire", "queue", "broker/dialect", "broker/hub", "broker/work"},
	"broker/hook":           {"internal/setting", "internal/payload", "internal/backend", "internal/wire", "webhook", "broker/work"}, // it signs like webhooks
	"broker/session":        {"internal/setting", "internal/meter", "internal/payload", "internal/slots", "internal/state", "internal/strict", "internal/wire", "queue", "registry", "broker/binding", "broker/dialect", "broker/fields", "broker/hook", "broker/hub", "broker/limit", "broker/loop", "broker/namespace", "broker/presence", "broker/snapshot", "broker/work", "broker/transport"},
	"broker/binding":        {"internal/wire", "queue", "registry", "broker/work"},
	"broker/peer":           {"registry", "broker/auth"},
	"broker/cluster":        {"internal/sketch", "internal/wire", "queue", "registry", "broker/api", "broker/health", "broker/hub", "broker/member", "broker/peer", "broker/session", "janitor/heartbeat"},
	"broker/extension":      {"internal/state", "internal/wire", "queue", "registry", "broker/api", "broker/delivery", "broker/limit", "broker/namespace", "broker/session"},
	"broker/delivery":       {"internal/slots", "internal/state", "queue", "registry", "broker/peer"},
	"broker/sim":            {},
	"broker/fastpush":       {"internal/linger"},
	"broker/api":            {"internal/payload", "internal/state", "internal/strict", "internal/wire", "queue", "registry", "broker/delivery", "broker/fields", "broker/health", "broker/limit", "broker/namespace", "broker/presence", "broker/rights"},
	"broker/api/spec":       {},
	"broker/health":         {"registry", "janitor/heartbeat"},
	"broker/ready":          {"queue", "broker/dialect", "broker/hub", "broker/loop", "broker/member"},
	"broker/rights":         {"internal/wire", "internal/state", "broker/auth", "broker/namespace"},
	"broker/member":         {"internal/slots", "internal/wire", "registry", "broker/binding", "broker/delivery", "broker/hub", "broker/peer", "broker/presence", "broker/session", "broker/snapshot", "internal/state"},
	"broker/presence":       {"internal/meter", "internal/setting", "internal/slots", "internal/state", "internal/wire", "registry", "broker/dialect", "broker/loop", "broker/peer", "broker/work"},
}

// TestImports parses the sources, since the test cache would hide the result of `go list`.
func TestImports(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		allowed, known := mayImport[filepath.ToSlash(dir)]
		if !known {
			if top, _, _ := strings.Cut(dir, "/"); top != "cmd" && top != "internal" && top != "bench" {
				t.Errorf("%s: the package is not in the table", dir)
			}
			return nil
		}
		seen++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			ours, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "switchboard/")
			if ok && !permitted(ours, allowed) {
				t.Errorf("%s may not import %s", path, ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < len(mayImport) {
		t.Fatalf("only %d files were looked at", seen)
	}
}

func permitted(pkg string, allowed []string) bool {
	for _, a := range allowed {
		if a == pkg || strings.HasSuffix(a, "/*") && strings.HasPrefix(pkg, strings.TrimSuffix(a, "*")) {
			return true
		}
	}
	return false
}

package configs

import (
	"slices"
	"strings"
)

const janitorPrefix = envPrefix + "JANITOR_"

// shared are the settings that mean the same to both programs, with the sections below, so that one environment
// serves both. The others must not meet: the broker's port is not the janitor's.
var (
	shared         = []string{"redis", "prefix", "log_level", "log_format"}
	sharedSections = []string{"webhooks", "redis_tls", "peer_tls"}
)

func janitorEnv(key string) string {
	section, _, _ := strings.Cut(key, ".")
	if slices.Contains(shared, key) || slices.Contains(sharedSections, section) {
		return envName(key)
	}
	return janitorPrefix + strings.TrimPrefix(envName(key), envPrefix)
}

var janitorProgram = &program{
	name:     "janitor",
	env:      janitorEnv,
	owns:     func(name string) bool { return strings.HasPrefix(name, janitorPrefix) },
	defaults: DefaultJanitor(),
	intro: `janitor frees in Redis what dead brokers held, trims the channels' queues, and tells
the backend what happened. One is enough, several do no harm.`,
	groups: []group{
		{"The store", append([]about{
			{key: "redis", flag: true, arg: "URL", text: "the Redis of the brokers: redis://, redis-sentinel:// or redis-cluster://\n(rediss for TLS), like redis://:password@host:6379/0", unset: "required"},
			{key: "prefix", flag: true, arg: "TEXT", text: "stands before every key in Redis, as at the brokers", unset: "default none"},
		}, redisTLSSettings...)},
		{"What it does", append([]about{
			{key: "once", flag: true, text: "one round of each kind, then end", unset: "default no"},
			{key: "dry_run", flag: true, text: "only say what would be done", unset: "default no"},
			{key: "servers_every", flag: true, arg: "DURATION", text: "time between two looks at the servers"},
			{key: "queues_every", flag: true, arg: "DURATION", text: "time between two looks at the channels"},
			{key: "max_age", flag: true, arg: "DURATION", text: "a channel whose newest message is older is emptied"},
			{key: "max_messages", flag: true, arg: "N", text: "messages that a channel keeps"},
			{key: "patience", text: "how long a server without a lease is spared because it answers"},
		}, peerTLSSettings...)},
		webhookGroup,
		{"Events that could not be delivered", []about{
			{key: "dead_letters", flag: true, text: "print them, one JSON object per line, then end", unset: "default no"},
			{key: "retry", flag: true, text: "with --dead-letters: have them sent again, by the janitors that run", unset: "default no"},
		}},
		{"Watching it", append([]about{
			{key: "http", flag: true, arg: "ADDRESS", text: "host:port of /healthz, /readyz and /metrics", unset: "default none"},
		}, logSettings...)},
	},
	outro: `
Examples
  janitor --redis redis://localhost:6379
  janitor --redis redis://localhost:6379 --once --dry-run
      look what there is to do
  SWITCHBOARD_REDIS=redis://localhost:6379 janitor --once
      the same without the look, from cron
  janitor --redis redis://localhost:6379 --dead-letters --retry
      the endpoint takes events again, so send what it missed

Exit codes
  0  it was told to end (SIGTERM, SIGINT), or --once is complete, or it printed what it was asked for
  1  it failed; the last line on stderr says why
  2  the command line is wrong
`,
}

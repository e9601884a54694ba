package configs

import (
	"slices"
	"strings"
)

const janitorPrefix = envPrefix + "JANITOR_"

// These settings and sections have the same environment variables for both programs, since their
// values are the same. Other settings have different variables: the broker's port is not the
// janitor's.
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
	intro: `janitor removes the bindings of dead brokers from Redis, trims the channels, and sends events
to the backend. One is enough; several do no harm.`,
	groups: []group{
		{"The store", append([]spec{
			{key: "redis", flag: true, arg: "URL", text: "the Redis of the brokers: redis://, redis-sentinel:// or redis-cluster://\n(rediss for TLS), like redis://:password@host:6379/0", unset: "required"},
			{key: "prefix", flag: true, arg: "TEXT", text: "prefix of all keys in Redis, the same as on the brokers", unset: "default none"},
		}, redisTLSSettings...)},
		{"Cleaning up", append([]spec{
			{key: "once", flag: true, text: "make one round of each kind, then exit", unset: "default no"},
			{key: "dry_run", flag: true, text: "only report what would be done", unset: "default no"},
			{key: "servers_every", flag: true, arg: "DURATION", text: "interval of checks for dead servers"},
			{key: "queues_every", flag: true, arg: "DURATION", text: "interval of rounds over the channels"},
			{key: "states_every", flag: true, arg: "DURATION", text: "interval of rounds over the states of channels"},
			{key: "max_age", flag: true, arg: "DURATION", text: "a channel is emptied if its newest message is older"},
			{key: "max_messages", flag: true, arg: "N", text: "newest messages that a channel keeps"},
			{key: "patience", text: "how long a server without a lease counts as alive while it answers /healthz"},
		}, peerTLSSettings...)},
		webhookGroup,
		{"Dead letters: events that could not be delivered", []spec{
			{key: "dead_letters", flag: true, text: "print them, one JSON object per line, then exit", unset: "default no"},
			{key: "retry", flag: true, text: "with --dead-letters: queue them again, for the running janitors to send", unset: "default no"},
		}},
		{"Monitoring", append([]spec{
			{key: "http", flag: true, arg: "ADDRESS", text: "host:port of /healthz, /readyz and /metrics", unset: "default none"},
		}, logSettings...)},
	},
	outro: `
Examples
  janitor --redis redis://localhost:6379
  janitor --redis redis://localhost:6379 --once --dry-run
      report what there is to do
  SWITCHBOARD_REDIS=redis://localhost:6379 janitor --once
      clean up once, from cron
  janitor --redis redis://localhost:6379 --dead-letters --retry
      send the events again that the backend missed
  janitor check --redis redis://localhost:6379
      compare the records of all channel states, and print each difference with its channel
      and a remedy; it changes nothing, and may look again after 10 s

Exit codes
  0  a shutdown (SIGTERM or SIGINT), the end of --once, --dead-letters or check, or this help
  1  a failure, or differences that check found; the last line on stderr has the reason
  2  the command line is wrong
`,
}

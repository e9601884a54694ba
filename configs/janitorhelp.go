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
	defaults: new(DefaultJanitor()),
	intro: `janitor removes the bindings of dead brokers from Redis, trims the channels, and sends events
to the backend. One is enough; several do no harm.`,
	groups: []group{
		{"The store", "redis prefix redis_tls.*"},
		{"Cleaning up", "once dry_run servers_every queues_every states_every max_age max_messages patience peer_tls.*"},
		{"Events for the backend", "webhooks.url webhooks.secrets webhooks.secrets_file webhooks.events webhooks.batch webhooks.timeout webhooks.*"},
		{"Dead letters: events that could not be delivered", "dead_letters retry"},
		{"Monitoring", "http log_level log_format"},
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

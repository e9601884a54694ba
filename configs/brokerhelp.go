package configs

import "strings"

// brokerProgram has the settings in the order of the help.
var brokerProgram = &program{
	name:     "broker",
	env:      envName,
	owns:     func(name string) bool { return !strings.HasPrefix(name, janitorPrefix) && !isClientVariable(name) },
	defaults: new(DefaultBroker()),
	intro: `broker holds client connections (WebSocket and raw TCP). A backend reaches any client
with one HTTP call. Without --redis the broker is a single instance and stores all in memory.`,
	groups: []group{
		{"Ports", "http tcp peer advertise probes pprof console name tls.*"},
		{"The store", "redis prefix redis_tls.*"},
		{"Access", "insecure auth.* namespaces peer_secret peer_secret_file hosts origins peer_tls.*"},
		{"Hooks", "hooks.*"},
		{"Limits", `max_connections limits.message limits.channels limits.presence limits.message_rate limits.byte_rate
			limits.new_channels limits.user_stored limits.user_read limits.user_connections limits.address_connections
			limits.address_rate limits.proxies limits.proxy_protocol limits.proxy_protocol_http limits.push_rate limits.batch
			limits.targets limits.client_queue limits.channel_messages limits.channel_bytes limits.fields limits.state_bytes
			limits.field_bytes limits.operations limits.owned_fields limits.request_queue limits.*
			requests.queues requests.allow requests.url requests.secrets requests.secrets_file requests.timeout
			requests.concurrency requests.share requests.* fast_push compression`},
		{"Times", `drain_time times.beat times.refresh times.ping times.connect times.slow times.client_ttl times.channel_ttl
			times.position_ttl times.request_ttl times.*`},
		{"Events for the backend", "webhooks.url webhooks.secrets webhooks.secrets_file webhooks.events webhooks.batch webhooks.timeout webhooks.*"},
		{"The kit (docs/kit.md)", "kit.*"},
		{"Log", "log_level log_format"},
		{"The Go runtime", "runtime.*"},
		{"Faults, for tests", "faults.*"},
	},
	outro: `
Examples
  broker
      a single instance in memory, without keys, on 127.0.0.1:8080 and 127.0.0.1:7070
  broker --redis redis://localhost:6379 --http 127.0.0.1:8081 --tcp 127.0.0.1:7071
      a second instance on the same machine
  SWITCHBOARD_PEER_SECRET_FILE=/run/secrets/peer broker --config production.yaml

Other commands
  broker check   prints what a client may do on a channel, and why; see broker check --help
  broker key     creates an API key; see broker key --help

Signals
  SIGHUP reloads API keys, token keys and namespaces; connections stay

Exit codes
  0  a shutdown (SIGTERM or SIGINT; a second signal ends the process at once), or this help
  1  a failure; the last line on stderr has the reason
  2  the command line is wrong
`,
}

package configs

import "strings"

var levels = []string{"trace", "debug", "info", "warn", "error"}

var logSettings = []spec{
	{key: "log_level", flag: true, arg: "LEVEL", choices: levels, text: "trace, debug, info, warn or error"},
	{key: "log_format", flag: true, arg: "FORMAT", choices: []string{"auto", "json", "console"},
		text: "json, console, or auto: console on a terminal, otherwise json"},
}

// brokerProgram lists the settings in the order of the help. A test checks that it has every field.
var brokerProgram = &program{
	name:     "broker",
	env:      envName,
	owns:     func(name string) bool { return !strings.HasPrefix(name, janitorPrefix) && !isClientVariable(name) },
	defaults: DefaultBroker(),
	intro: `broker holds client connections (WebSocket and raw TCP). A backend reaches any client
with one HTTP call. Without --redis the broker is a single instance and stores all in memory.`,
	groups: []group{
		{"Ports", []spec{
			{key: "http", flag: true, arg: "ADDRESS", text: "host:port of /ws, /v1, /healthz, /readyz and /metrics"},
			{key: "tcp", flag: true, arg: "ADDRESS", text: "host:port of raw TCP (one JSON message per line) and WebSocket; off for none"},
			{key: "peer", flag: true, arg: "ADDRESS", text: "host:port of a separate port for the links between instances, which must not be\npublished; or http for the HTTP port", unset: "default http if --http is a loopback address, otherwise required"},
			{key: "advertise", flag: true, arg: "ADDRESS", text: "host:port at which other instances reach the links, or a go-sockaddr template\nfor the host, like {{ GetPrivateIP }}",
				unset: "default the address of the port, with a private address for 0.0.0.0"},
			{key: "probes", flag: true, arg: "ADDRESS", text: "host:port of a separate port for /healthz, /readyz and /metrics, without TLS;\nit must not be published", unset: "default the HTTP port"},
			{key: "pprof", flag: true, arg: "ADDRESS", text: "loopback host:port of /debug/pprof/, like 127.0.0.1:6060", unset: "default none"},
			{key: "console", choices: []string{"on", "off"}, text: "the console for people, at /console/ of the HTTP port; see docs/console.md"},
			{key: "name", flag: true, arg: "NAME", text: "first part of the id of this server, <name>-<random>", unset: "default the host name"},
			{key: "tls.cert_file", text: "PEM file with the certificate of the HTTP port; the TCP port has no TLS", unset: "default none: no TLS"},
			{key: "tls.key_file", text: "PEM file with the private key of the certificate"},
		}},
		{"The store", append([]spec{
			{key: "redis", flag: true, arg: "URL", text: "redis://, redis-sentinel:// or redis-cluster:// (rediss for TLS), like\nredis://:password@host:6379/0; all instances share it", unset: "default none: in memory"},
			{key: "prefix", flag: true, arg: "TEXT", text: "prefix of all keys in Redis, like prod:", unset: "default none"},
		}, redisTLSSettings...)},
		{"Access", append([]spec{
			{key: "insecure", flag: true, text: "permit missing keys and secrets on addresses that are not loopback", unset: "default no"},
			{key: "auth.keys", text: "API keys of /v1: entries that broker key prints, or plain:KEY; several allow rotation", unset: "default none: every caller may push"},
			{key: "auth.keys_file", text: "a file with one entry per line instead; # begins a comment"},
			{key: "auth.hs256_secret", text: "secret for client tokens (JWT, HS256) of at least 32 bytes", unset: "default none"},
			{key: "auth.hs256_secret_file", text: "a file with one such secret per line instead; # begins a comment"},
			{key: "auth.rs256_keys_file", text: "PEM file with RSA public keys or certificates for client tokens (RS256)"},
			{key: "auth.eddsa_keys_file", text: "PEM file with Ed25519 public keys for client tokens (EdDSA)"},
			{key: "auth.token_keys", readSection: sectionReader(tokenKeys), text: "keys that client tokens name (kid): a section of\nNAME: {alg: HS256 or RS256 or ES256 or EdDSA ..., file: PATH}", unset: "default none"},
			{key: "auth.jwks_url", text: "https URL at which the issuer of client tokens publishes its keys (JWK set)", unset: "default none"},
			{key: "auth.jwks_refresh", text: "interval of fetches; a token with an unknown key also causes one"},
			{key: "auth.jwks_grace", text: "how long a key stays valid after the issuer has removed it"},
			{key: "auth.jwks_stale", text: "how long the keys stay valid while they cannot be fetched"},
			{key: "auth.audience", text: "a client token must have one of these in its aud", unset: "default aud is not checked"},
			{key: "auth.issuer", text: "a client token must have one of these as its iss", unset: "default iss is not checked"},
			{key: "auth.leeway", allowZero: true, text: "tolerated difference to the clock of the issuer"},
			{key: "auth.anonymous", text: "clients may connect without a token; they have no user", unset: "default no"},
			{key: "auth.client_publish", text: "users may publish to channels, if there are no namespaces", unset: "default only without keys and tokens"},
			{key: "namespaces", readSection: sectionReader(namespaces), text: "rights on channels: a section of NAME: {subscribe: WHO, publish: WHO,\npresence: WHO or off, history: WHO, history_messages: N, history_age: DURATION,\nmessage: BYTES, publish_rate: N, state: WHO, state_keep: DURATION or forever,\ngrace: DURATION or never, fields: {PATTERN: {write: WHO or claim, own: always,\nttl: DURATION, max: N, bytes: N, of: FIELD, grace: DURATION or never}},\nneeds: FIELD, by: FIELD, durable: WHO, fields_gone: true}. NAME is news, chat:*,\ninbox:{user} or *; WHO is anyone, users, named, grant or nobody, or a list. See\ndocs/access.md",
				unset: "default users may subscribe and read, only the backend publishes"},
			{key: "peer_secret", text: "secret for the links between instances, the same on all, of at least 32 bytes", unset: "default none"},
			{key: "peer_secret_file", text: "a file with the secret instead"},
			{key: "hosts", text: "names under which clients without a key or a token reach the broker, like\npush.example.com or *.example.com, besides localhost and its addresses; see\ndocs/access.md", unset: "default none"},
			{key: "origins", text: "origins of web pages that may connect besides the broker's own host, like *.example.com", unset: "default none"},
		}, peerTLSSettings...)},
		hookGroup,
		{"Limits", []spec{
			{key: "max_connections", flag: true, allowZero: true, arg: "N", text: "client connections of this process", unset: "default as many as the limit of descriptors allows"},
			{key: "limits.message", text: "bytes of one payload"},
			{key: "limits.channels", text: "subscriptions of one connection"},
			{key: "limits.presence", text: "members of a channel above which presence sends its changes in batches, once a\nsecond, and here is refused"},
			{key: "limits.message_rate", allowZero: true, text: "messages a second from one connection, with bursts of four seconds' worth; 0 for\nno limit. Acknowledgements do not count"},
			{key: "limits.byte_rate", allowZero: true, text: "bytes a second from one connection, with bursts of four seconds' worth; 0 for no\nlimit"},
			{key: "limits.new_channels", allowZero: true, text: "channels a minute that the clients of one user, or those without a user at one\naddress (an IPv6 /64), may create by a publish on all instances, or by a subscribe on\nthis one, with bursts of the same number, or of limits.channels if that is larger;\n0 for no limit. List your load balancer in limits.proxies"},
			{key: "limits.user_stored", allowZero: true, text: "bytes an hour that the same clients may store on all instances by publishes, with\nbursts of the same number; 0 for no limit"},
			{key: "limits.user_read", allowZero: true, text: "bytes a second that messages of the same clients may make the store send to this\ninstance, with bursts of four seconds' worth; 0 for no limit"},
			{key: "limits.user_connections", allowZero: true, text: "clients of one user online at once, on all instances; at most 64", unset: "default 64"},
			{key: "limits.address_connections", allowZero: true, text: "connections from one address (an IPv6 /64) to this process, including those of\nbackends. List your load balancer in limits.proxies first", unset: "default no limit"},
			{key: "limits.address_rate", allowZero: true, text: "new connections a second from one address, with bursts of four seconds' worth", unset: "default no limit"},
			{key: "limits.proxies", text: "load balancers and backends, like 10.0.0.0/8, that are exempt from the address\nlimits; the address that they forward on /ws (X-Forwarded-For) is limited instead", unset: "default none"},
			{key: "limits.proxy_protocol", text: "load balancers, like 10.0.0.5, whose connections to the TCP port must begin with a\nPROXY header (version 1 or 2), which names the client; headers of others are refused", unset: "default none"},
			{key: "limits.proxy_protocol_http", text: "the same for the HTTP port, before any TLS; also for health checks and backends from\nthese addresses", unset: "default none"},
			{key: "limits.push_rate", allowZero: true, text: "pushes a second with one API key, with bursts of four seconds' worth; each target\ncounts", unset: "default no limit"},
			{key: "limits.batch", text: "pushes in one batch call, and targets of one push"},
			{key: "limits.targets", text: "targets of one call, over all its pushes"},
			{key: "limits.client_queue", text: "messages that wait for one client; one more drops the oldest"},
			{key: "limits.channel_messages", text: "messages that a channel keeps, until the janitor trims it to the newest 1000"},
			{key: "limits.channel_bytes", text: "bytes that a channel keeps"},
			{key: "limits.fields", text: "fields in the state of a channel"},
			{key: "limits.state_bytes", text: "bytes of the names and values of those fields"},
			{key: "limits.field_bytes", text: "bytes of one value"},
			{key: "limits.operations", text: "fields that one publish changes, and conditions of one publish"},
			{key: "limits.owned_fields", text: "fields of a channel that one client owns"},
			{key: "limits.request_queue", text: "client requests that wait in one qq_ list"},
			{key: "limits.request_bytes", text: "bytes that wait in one qq_ list"},
			{key: "limits.request_share", text: "requests of one user that wait in a qq_ list; for clients without a user, requests\nof one address"},
			{key: "limits.request_share_bytes", text: "bytes of those requests"},
			{key: "requests.queues", text: "number of qq_ lists over which client requests are spread"},
			{key: "requests.allow", choices: []string{"anyone", "users", "nobody"}, text: "which clients may send requests: anyone, users or nobody"},
			{key: "requests.url", text: "https URL (http on the loopback address) that answers client requests; the qq_ lists\nare then not used. See docs/protocol.md", unset: "default none: workers of the qq_ lists answer"},
			{key: "requests.secrets", text: "secrets of at least 16 bytes; every call has a signature with each, which allows\nrotation", unset: "required with a URL"},
			{key: "requests.secrets_file", text: "a file with one per line instead; # begins a comment"},
			{key: "requests.timeout", text: "deadline for the answer"},
			{key: "requests.concurrency", text: "maximum number of calls at once"},
			{key: "requests.share", text: "requests of one user that wait for the answer of requests.url, on this instance; for\nclients without a user, requests of one address", unset: "default a quarter of requests.concurrency"},
			{key: "requests.rate", allowZero: true, text: "requests a second from one connection, with bursts of four seconds' worth; 0 for no\nlimit"},
			{key: "fast_push", text: "read the pushes after the first one on a connection without net/http, at half the\ncost; net/http always serves all other calls"},
			{key: "compression", text: "negotiate permessage-deflate on /ws; this costs memory for each connection", unset: "default no"},
		}},
		{"Times", []spec{
			{key: "drain_time", flag: true, arg: "DURATION", text: "time over which the reconnects of the clients are spread at a shutdown"},
			{key: "times.beat", text: "interval at which this server renews its lease, which lasts five beats"},
			{key: "times.refresh", text: "interval at which each client's binding is renewed; a binding lasts five intervals"},
			{key: "times.ping", text: "interval of pings on a connection"},
			{key: "times.connect", text: "deadline for a handshake, and then for the connect message"},
			{key: "times.slow", text: "how long a client may leave its socket unread"},
			{key: "times.client_ttl", text: "how long messages wait for a client"},
			{key: "times.channel_ttl", text: "how long a channel's messages are kept after the last push; a janitor empties the\nchannel earlier, by default after 30m"},
			{key: "times.position_ttl", text: "how long a channel without messages and subscribers is remembered: a client that\ncomes back later receives a gap"},
			{key: "times.request_ttl", text: "how long requests wait for a worker; each new request to a qq_ list restarts the time\nof all requests in it"},
			{key: "times.revoked_ttl", text: "how long revoked tokens are refused: at least as long as your tokens live"},
		}},
		webhookGroup,
		kitGroup,
		{"Log", logSettings},
		runtimeGroup,
		{"Faults, for tests", []spec{
			{key: "faults.hints", choices: []string{"drop", "mangle"}, text: "drop loses the hints to other instances; mangle repeats and reorders hints from them", unset: "default none"},
		}},
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

package configs

import "strings"

var levels = []string{"trace", "debug", "info", "warn", "error"}

var logSettings = []about{
	{key: "log_level", flag: true, arg: "LEVEL", choices: levels, text: "trace, debug, info, warn or error"},
	{key: "log_format", flag: true, arg: "FORMAT", choices: []string{"auto", "json", "console"},
		text: "json, console, or auto: console on a terminal, else json"},
}

// brokerProgram is in the order of the help. A test checks that it names every field.
var brokerProgram = &program{
	name:     "broker",
	env:      envName,
	owns:     func(name string) bool { return !strings.HasPrefix(name, janitorPrefix) },
	defaults: DefaultBroker(),
	intro: `broker holds client connections (WebSocket and raw TCP) and lets a backend reach
any of them with one HTTP call. Without --redis it runs alone, in memory.`,
	groups: []group{
		{"Where it listens", []about{
			{key: "http", flag: true, arg: "ADDRESS", text: "host:port of /ws, /v1, /healthz, /readyz and /metrics"},
			{key: "tcp", flag: true, arg: "ADDRESS", text: "host:port of raw TCP (one JSON message per line) and WebSocket; off for none"},
			{key: "peer", flag: true, arg: "ADDRESS", text: "host:port of its own for the links between instances, not to be published; or\nhttp for the HTTP port", unset: "default http, where --http is a loopback address"},
			{key: "advertise", flag: true, arg: "ADDRESS", text: "host:port where other instances reach the links, or a go-sockaddr template\nfor the host, like {{ GetPrivateIP }}",
				unset: "default what is listened on, or a private interface"},
			{key: "probes", flag: true, arg: "ADDRESS", text: "host:port of its own for /healthz, /readyz and /metrics, in the clear, not to be\npublished", unset: "default as --http"},
			{key: "pprof", flag: true, arg: "ADDRESS", text: "loopback host:port of /debug/pprof/, like 127.0.0.1:6060", unset: "default none"},
			{key: "name", flag: true, arg: "NAME", text: "begins the id of this server, <name>-<random>", unset: "default the name of the host"},
			{key: "tls.cert_file", text: "PEM file of the certificate of the HTTP port; the TCP port has none", unset: "default none: in the clear"},
			{key: "tls.key_file", text: "PEM file of its key"},
		}},
		{"The store", append([]about{
			{key: "redis", flag: true, arg: "URL", text: "redis://, redis-sentinel:// or redis-cluster:// (rediss for TLS), like\nredis://:password@host:6379/0; shared by all instances", unset: "default none: in memory"},
			{key: "prefix", flag: true, arg: "TEXT", text: "stands before every key in Redis, like prod:", unset: "default none"},
		}, redisTLSSettings...)},
		{"Who may connect", append([]about{
			{key: "insecure", flag: true, text: "be open on an address that is not loopback, all the same", unset: "default no"},
			{key: "auth.keys", text: "API keys of /v1, as broker key prints their entries, or plain:KEY; several allow rotation", unset: "default none: everybody may push"},
			{key: "auth.keys_file", text: "a file with one entry per line instead; # begins a comment"},
			{key: "auth.hs256_secret", text: "secret of the clients' tokens (JWT, HS256), 32 bytes at least", unset: "default none"},
			{key: "auth.hs256_secret_file", text: "a file with one such secret per line instead; # begins a comment"},
			{key: "auth.rs256_keys_file", text: "PEM file with RSA public keys or certificates for tokens (RS256)"},
			{key: "auth.eddsa_keys_file", text: "PEM file with Ed25519 public keys for tokens (EdDSA)"},
			{key: "auth.token_keys", document: documentOf(tokenKeys), text: "keys that tokens name (kid): a section of\nNAME: {alg: HS256 or RS256 or ES256 or EdDSA ..., file: PATH}", unset: "default none"},
			{key: "auth.jwks_url", text: "where the issuer of tokens publishes its keys (JWK set), https", unset: "default none"},
			{key: "auth.jwks_refresh", text: "how often they are fetched; also when a token names one that is not known"},
			{key: "auth.jwks_grace", text: "how long a key is good that is not published any more"},
			{key: "auth.jwks_stale", text: "how long the keys are good when they cannot be fetched any more"},
			{key: "auth.audience", text: "who this broker is to the issuer: one of these must be in a token's aud", unset: "default aud is not looked at"},
			{key: "auth.issuer", text: "whose tokens are taken: one of these must be a token's iss", unset: "default iss is not looked at"},
			{key: "auth.leeway", zero: true, text: "how far the clock of whoever issues tokens may be off"},
			{key: "auth.anonymous", text: "clients may connect without a token; they are no users", unset: "default no"},
			{key: "auth.client_publish", text: "users may publish to channels, where there are no namespaces", unset: "default only while the broker is open"},
			{key: "namespaces", document: documentOf(namespaces), text: "who may do what on channels: a section of NAME: {subscribe: WHO, publish: WHO,\npresence: WHO or off, history: WHO, history_messages: N, history_age: DURATION,\nmessage: BYTES, publish_rate: N}. NAME is news, chat:*, inbox:{user} or *; WHO is\nanyone, users, named, grant or nobody, or a list. See docs/access.md",
				unset: "default users may subscribe and see, the backend publishes"},
			{key: "peer_secret", text: "shared by all instances, for the links between them; 32 bytes at least", unset: "default none"},
			{key: "peer_secret_file", text: "a file with it instead"},
			{key: "hosts", text: "names under which clients reach an open broker, like push.example.com or *.example.com,\nbesides localhost and addresses; see docs/access.md", unset: "default none"},
			{key: "origins", text: "web pages that may connect besides the own host, like *.example.com", unset: "default none"},
		}, peerTLSSettings...)},
		hookGroup,
		{"Limits", []about{
			{key: "max_connections", flag: true, zero: true, arg: "N", text: "the most client connections of this process", unset: "default what the descriptor limit allows"},
			{key: "limits.message", text: "bytes of one payload"},
			{key: "limits.channels", text: "subscriptions of one connection"},
			{key: "limits.presence", text: "clients of a channel above which presence tells its changes together,\nonce a second"},
			{key: "limits.message_rate", zero: true, text: "messages a second from one connection, four seconds' worth at once; 0 for any\nnumber. Acknowledgements are none"},
			{key: "limits.byte_rate", zero: true, text: "bytes a second from one connection, four seconds' worth at once; 0 for any number"},
			{key: "limits.new_channels", zero: true, text: "channels a minute that one connection may bring into being by a publish or a\nsubscribe; at once as many, or limits.channels if that is more. 0 for any number"},
			{key: "limits.user_connections", zero: true, text: "clients of one user online at once, on all instances; 64 at most", unset: "default 64"},
			{key: "limits.address_connections", zero: true, text: "connections from one address (of IPv6 a /64) to this process, those of backends\namong them. Behind a load balancer name that in limits.proxies", unset: "default any number"},
			{key: "limits.address_rate", zero: true, text: "new connections a second from one address, four seconds' worth at once", unset: "default any number"},
			{key: "limits.proxies", text: "load balancers and backends, like 10.0.0.0/8, which no limit of addresses is for;\nwhom they connect for on /ws (X-Forwarded-For) is limited instead", unset: "default none"},
			{key: "limits.push_rate", zero: true, text: "pushes a second with one API key, each target is one; four seconds' worth at once", unset: "default any number"},
			{key: "limits.batch", text: "pushes in one batch call, and targets of one push"},
			{key: "limits.targets", text: "targets of one call, over all its pushes"},
			{key: "limits.client_queue", text: "messages that wait for one client; the oldest go first"},
			{key: "limits.channel_messages", text: "messages that a channel holds, until the janitor leaves the newest 1000"},
			{key: "limits.channel_bytes", text: "bytes that a channel holds"},
			{key: "limits.request_queue", text: "client requests that wait in one qq_ list"},
			{key: "limits.request_bytes", text: "bytes that wait in one qq_ list"},
			{key: "limits.request_share", text: "requests of one user that wait in a qq_ list; clients without a user share by\naddress"},
			{key: "limits.request_share_bytes", text: "bytes of the same"},
			{key: "requests.queues", text: "how many qq_ lists client requests are spread over"},
			{key: "requests.allow", choices: []string{"anyone", "users", "nobody"}, text: "whose clients may send requests: anyone, users or nobody"},
			{key: "requests.rate", zero: true, text: "requests a second from one connection, four seconds' worth at once; 0 for any\nnumber"},
			{key: "fast_push", text: "read the pushes of a connection that has pushed without net/http, at half the\ncost; what is not a plain push always goes through net/http"},
			{key: "compression", text: "negotiate permessage-deflate on /ws, for memory of each connection", unset: "default no"},
		}},
		{"Times", []about{
			{key: "drain_time", flag: true, arg: "DURATION", text: "spreads the return of the clients when this server goes down"},
			{key: "times.beat", text: "renewal of this server's lease, which lasts five of them"},
			{key: "times.refresh", text: "renewal of each client's binding, which lasts five of them"},
			{key: "times.ping", text: "signs of life on a connection"},
			{key: "times.connect", text: "how long a handshake may take, and then a connection go without connect"},
			{key: "times.slow", text: "how long a client may leave its socket unread"},
			{key: "times.client_ttl", text: "how long messages wait for a client"},
			{key: "times.channel_ttl", text: "how long a channel's messages are held after the last push, if no janitor\nempties the channel before, which it does after 30m"},
			{key: "times.position_ttl", text: "how long a channel without messages and subscribers is remembered: a client that\ncomes back later is told of a gap"},
			{key: "times.request_ttl", text: "how long requests wait for a worker, after the last one to the same qq_ list"},
		}},
		webhookGroup,
		{"Log", logSettings},
		runtimeGroup,
		{"Faults, for tests", []about{
			{key: "faults.hints", choices: []string{"drop", "mangle"}, text: "drop loses the hints to other instances, mangle repeats and reorders theirs", unset: "default none"},
		}},
	},
	outro: `
Examples
  broker
      alone, in memory, open, on 127.0.0.1:8080 and 127.0.0.1:7070
  broker --redis redis://localhost:6379 --http 127.0.0.1:8081 --tcp 127.0.0.1:7071
      a second instance on the same machine
  SWITCHBOARD_PEER_SECRET_FILE=/run/secrets/peer broker --config production.yaml

Other commands
  broker check   tells what a client may do on a channel, and why; see broker check --help
  broker key     makes an API key; see broker key --help

Signals
  SIGHUP reads API keys, token keys and namespaces again; connections stay

Exit codes
  0  it was told to end (SIGTERM, SIGINT; a second one ends it at once), or printed this
  1  it failed; the last line on stderr says why
  2  the command line is wrong
`,
}

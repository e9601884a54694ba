package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/internal/setting"
	"switchboard/queue"
	"switchboard/registry"
)

// Broker has the settings of the broker. Broker.Options, Registry and Queue convert them.
type Broker struct {
	Listen  broker.ListenOptions `json:"-"`
	Links   broker.LinkOptions   `json:"-"`
	Console string               `setting:"console" default:"on" choices:"on,off" help:"the console for people, at /console/ of the HTTP port; see docs/console.md"`
	Name    string               `setting:"name" flag:"NAME" unset:"default the host name" help:"first part of the id of this server, <name>-<random>"`

	Redis    Secret `setting:"redis" flag:"URL" unset:"default none: in memory" help:"redis://, redis-sentinel:// or redis-cluster:// (rediss for TLS), like redis://:password@host:6379/0; all instances share it"`
	RedisTLS RedisTLS
	Prefix   string `setting:"prefix" flag:"TEXT" unset:"default none" help:"prefix of all keys in Redis, like prod:"`

	Insecure bool `setting:"insecure" flag:"" unset:"default no" help:"permit missing keys and secrets on addresses that are not loopback"`
	Log

	Auth           Auth
	Namespaces     *namespace.Set `setting:"namespaces" unset:"default users may subscribe and read, only the backend publishes" help:"rights on channels: a section of NAME: {subscribe: WHO, publish: WHO,\npresence: WHO or off, history: WHO, history_messages: N, history_age: DURATION,\nmessage: BYTES, publish_rate: N, state: WHO, state_keep: DURATION or forever,\ngrace: DURATION or never, fields: {PATTERN: {write: WHO or claim, own: always,\nttl: DURATION, max: N, bytes: N, of: FIELD, grace: DURATION or never}},\nneeds: FIELD, by: FIELD, durable: WHO, fields_gone: true}. NAME is news, chat:*,\ninbox:{user} or *; WHO is anyone, users, named, grant or nobody, or a list. See\ndocs/access.md"`
	PeerSecret     Secret         `setting:"peer_secret" unset:"default none" help:"secret for the links between instances, the same on all, of at least 32 bytes"`
	PeerSecretFile string         `setting:"peer_secret_file" help:"a file with the secret instead"`
	Hosts          []string       `setting:"hosts" unset:"default none" help:"names under which clients without a key or a token reach the broker, like push.example.com or *.example.com, besides localhost and its addresses; see docs/access.md"`
	Origins        []string       `setting:"origins" unset:"default none" help:"origins of web pages that may connect besides the broker's own host, like *.example.com"`
	Limits         broker.LimitOptions
	Times          broker.TimingOptions
	Runs           broker.RuntimeOptions
	Networks
	Requests Requests
	Messages queue.Options    `json:"-"`
	Bindings registry.Options `json:"-"`
	FastPush bool             `setting:"fast_push" default:"true" help:"read the pushes after the first one on a connection without net/http, at half the\ncost; net/http always serves all other calls"`
	Webhooks Webhooks
	Hooks    Hooks
	TLS      TLS
	PeerTLS  PeerTLS
	Kit      Kit
	Runtime  Runtime

	// Unknown are the SWITCHBOARD_ variables that belong to no setting.
	Unknown []string `setting:"-"`
}

// Auth has the keys for API calls and for tokens.
type Auth struct {
	Keys            []Secret      `setting:"auth.keys" unset:"default none: every caller may push" help:"API keys of /v1: entries that broker key prints, or plain:KEY; several allow rotation"`
	KeysFile        string        `setting:"auth.keys_file" help:"a file with one entry per line instead; # begins a comment"`
	HS256Secret     Secret        `setting:"auth.hs256_secret" unset:"default none" help:"secret for client tokens (JWT, HS256) of at least 32 bytes"`
	HS256SecretFile string        `setting:"auth.hs256_secret_file" help:"a file with one such secret per line instead; # begins a comment"`
	RS256KeysFile   string        `setting:"auth.rs256_keys_file" help:"PEM file with RSA public keys or certificates for client tokens (RS256)"`
	EdDSAKeysFile   string        `setting:"auth.eddsa_keys_file" help:"PEM file with Ed25519 public keys for client tokens (EdDSA)"`
	TokenKeys       []tokenKey    `setting:"auth.token_keys" unset:"default none" help:"keys that client tokens name (kid): a section of\nNAME: {alg: HS256 or RS256 or ES256 or EdDSA ..., file: PATH}"`
	JWKSURL         string        `setting:"auth.jwks_url" unset:"default none" help:"https URL at which the issuer of client tokens publishes its keys (JWK set)"`
	JWKSRefresh     time.Duration `setting:"auth.jwks_refresh" default:"10m" help:"interval of fetches; a token with an unknown key also causes one"`
	JWKSGrace       time.Duration `setting:"auth.jwks_grace" default:"10m" help:"how long a key stays valid after the issuer has removed it"`
	JWKSStale       time.Duration `setting:"auth.jwks_stale" default:"24h" help:"how long the keys stay valid while they cannot be fetched"`
	Audience        []string      `setting:"auth.audience" unset:"default aud is not checked" help:"a client token must have one of these in its aud"`
	Issuer          []string      `setting:"auth.issuer" unset:"default iss is not checked" help:"a client token must have one of these as its iss"`
	Leeway          time.Duration `setting:"auth.leeway" default:"10s" zero:"true" help:"tolerated difference to the clock of the issuer"`
	Anonymous       bool          `setting:"auth.anonymous" unset:"default no" help:"clients may connect without a token; they have no user"`
	ClientPublish   bool          `setting:"auth.client_publish" unset:"default only without keys and tokens" help:"users may publish to channels, if there are no namespaces"`
}

// Networks are the networks of load balancers.
type Networks struct {
	Proxies           []string `setting:"limits.proxies" unset:"default none" help:"load balancers and backends, like 10.0.0.0/8, that are exempt from the address\nlimits; the address that they forward on /ws (X-Forwarded-For) is limited instead"`
	ProxyProtocol     []string `setting:"limits.proxy_protocol" unset:"default none" help:"load balancers, like 10.0.0.5, whose connections to the TCP port must begin with a PROXY header (version 1 or 2), which names the client; headers of others are refused"`
	ProxyProtocolHTTP []string `setting:"limits.proxy_protocol_http" unset:"default none" help:"the same for the HTTP port, before any TLS; also for health checks and backends from these addresses"`
}

// Log is the format of the log of both programs.
type Log struct {
	LogLevel  string `setting:"log_level" flag:"LEVEL" default:"info" choices:"trace,debug,info,warn,error" help:"trace, debug, info, warn or error"`
	LogFormat string `setting:"log_format" flag:"FORMAT" default:"auto" choices:"auto,json,console" help:"json, console, or auto: console on a terminal, otherwise json"`
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// DefaultBroker returns the defaults.
func DefaultBroker() (b Broker) {
	setting.SetDefaults(&b)
	return b
}

// LoadBroker reads args (without the program's name), environ (as os.Environ returns it) and the
// file that they name. The error is a [UsageError] if args are wrong, [ErrHelp] or [ErrVersion] if
// they request that, and another error of one line if a setting is wrong.
func LoadBroker(args, environ []string) (Broker, error) {
	b := DefaultBroker()
	unknown, err := brokerProgram.load(&b, args, environ)
	if err != nil {
		return Broker{}, err
	}
	b.Unknown = unknown
	return b, b.validate()
}

// validate checks settings that depend on each other, and those that need more than a type.
func (b Broker) validate() error {
	for _, pair := range []struct {
		plain, file bool
		names       string
	}{
		{len(b.Auth.Keys) > 0, b.Auth.KeysFile != "", "auth.keys and auth.keys_file"},
		{b.Auth.HS256Secret != "", b.Auth.HS256SecretFile != "", "auth.hs256_secret and auth.hs256_secret_file"},
		{b.PeerSecret != "", b.PeerSecretFile != "", "peer_secret and peer_secret_file"},
	} {
		if pair.plain && pair.file {
			return errors.New(pair.names + ": both are given, keep one")
		}
	}
	if b.Namespaces != nil && b.Auth.ClientPublish {
		return errors.New("auth.client_publish: with namespaces it has no effect; set their publish instead")
	}
	// The name is a part of the server's id, which is used in Redis keys and URLs.
	if strings.ContainsFunc(b.Name, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) }) {
		return fmt.Errorf("name: %q: only letters, digits, dots, dashes and _ are allowed", b.Name)
	}
	if b.Messages.MetaTTL < time.Hour { // a client must be able to come back after a failover or an outage
		return fmt.Errorf("times.position_ttl: %v: want at least 1h", b.Messages.MetaTTL)
	}
	if err := errors.Join(b.Webhooks.validate(), b.Hooks.validate(), b.Requests.validate(), b.Kit.validate(), b.Runtime.validate()); err != nil {
		return err
	}
	if err := b.Registry().Validate(); err != nil {
		return err
	}
	return b.Queue().Validate()
}

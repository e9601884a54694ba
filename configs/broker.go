package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/broker/namespace"
)

// Broker is what the broker is told. Its fields are those of broker.Options and of the
// two stores' Options, under the names that the file uses.
type Broker struct {
	HTTP      string `koanf:"http"`
	TCP       string `koanf:"tcp"`
	Peer      string `koanf:"peer"`
	Advertise string `koanf:"advertise"`
	Probes    string `koanf:"probes"`
	Pprof     string `koanf:"pprof"`
	Name      string `koanf:"name"`

	Redis    Secret   `koanf:"redis"` // the URL may hold a password
	RedisTLS RedisTLS `koanf:"redis_tls"`
	Prefix   string   `koanf:"prefix"`

	Insecure       bool          `koanf:"insecure"`
	MaxConnections int           `koanf:"max_connections"`
	DrainTime      time.Duration `koanf:"drain_time"`
	LogLevel       string        `koanf:"log_level"`
	LogFormat      string        `koanf:"log_format"`

	Auth           Auth           `koanf:"auth"`
	Namespaces     *namespace.Set `koanf:"namespaces"`
	PeerSecret     Secret         `koanf:"peer_secret"`
	PeerSecretFile string         `koanf:"peer_secret_file"`
	Hosts          []string       `koanf:"hosts"`
	Origins        []string       `koanf:"origins"`
	Limits         Limits         `koanf:"limits"`
	Times          Times          `koanf:"times"`
	Requests       Requests       `koanf:"requests"`
	Compression    bool           `koanf:"compression"`
	FastPush       bool           `koanf:"fast_push"`
	Webhooks       Webhooks       `koanf:"webhooks"`
	Hooks          Hooks          `koanf:"hooks"`
	TLS            TLS            `koanf:"tls"`
	PeerTLS        PeerTLS        `koanf:"peer_tls"`
	Runtime        Runtime        `koanf:"runtime"`
	Faults         Faults         `koanf:"faults"`

	// Unknown are the SWITCHBOARD_ variables that mean nothing: worth a warning.
	Unknown []string `koanf:"-"`
}

// Auth says who may call and connect.
type Auth struct {
	Keys            []Secret      `koanf:"keys"`
	KeysFile        string        `koanf:"keys_file"`
	HS256Secret     Secret        `koanf:"hs256_secret"`
	HS256SecretFile string        `koanf:"hs256_secret_file"`
	RS256KeysFile   string        `koanf:"rs256_keys_file"`
	EdDSAKeysFile   string        `koanf:"eddsa_keys_file"`
	TokenKeys       []tokenKey    `koanf:"token_keys"`
	JWKSURL         string        `koanf:"jwks_url"`
	JWKSRefresh     time.Duration `koanf:"jwks_refresh"`
	JWKSGrace       time.Duration `koanf:"jwks_grace"`
	JWKSStale       time.Duration `koanf:"jwks_stale"`
	Audience        []string      `koanf:"audience"`
	Issuer          []string      `koanf:"issuer"`
	Leeway          time.Duration `koanf:"leeway"`
	Anonymous       bool          `koanf:"anonymous"`
	ClientPublish   bool          `koanf:"client_publish"`
}

// Limits are counts, and bytes where they say so.
type Limits struct {
	Message         int   `koanf:"message"` // bytes
	Channels        int   `koanf:"channels"`
	Presence        int   `koanf:"presence"`
	Batch           int   `koanf:"batch"`
	Targets         int   `koanf:"targets"`
	ClientQueue     int   `koanf:"client_queue"`
	ChannelMessages int   `koanf:"channel_messages"`
	ChannelBytes    int64 `koanf:"channel_bytes"`
	RequestQueue    int   `koanf:"request_queue"`

	RequestBytes      int64 `koanf:"request_bytes"`
	RequestShare      int   `koanf:"request_share"`
	RequestShareBytes int64 `koanf:"request_share_bytes"`

	// A second, and 0 for any number, as of the connections.
	MessageRate        int      `koanf:"message_rate"` // of a connection
	ByteRate           int      `koanf:"byte_rate"`    // of a connection
	NewChannels        int      `koanf:"new_channels"` // of a connection, a minute
	UserConnections    int      `koanf:"user_connections"`
	AddressConnections int      `koanf:"address_connections"`
	AddressRate        int      `koanf:"address_rate"` // connects
	Proxies            []string `koanf:"proxies"`
	PushRate           int      `koanf:"push_rate"` // of an API key
}

// Times are intervals and lifetimes.
type Times struct {
	Beat       time.Duration `koanf:"beat"`
	Refresh    time.Duration `koanf:"refresh"`
	Ping       time.Duration `koanf:"ping"`
	Connect    time.Duration `koanf:"connect"`
	Slow       time.Duration `koanf:"slow"`
	ClientTTL  time.Duration `koanf:"client_ttl"`
	ChannelTTL time.Duration `koanf:"channel_ttl"`

	PositionTTL time.Duration `koanf:"position_ttl"`
	RequestTTL  time.Duration `koanf:"request_ttl"`
}

// Requests are what clients ask the backend.
type Requests struct {
	Queues int    `koanf:"queues"`
	Allow  string `koanf:"allow"`
	Rate   int    `koanf:"rate"` // of a connection, a second
}

// Faults are what the broker does wrong on purpose, for tests.
type Faults struct {
	Hints string `koanf:"hints"`
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// DefaultBroker is a broker that nobody told anything.
func DefaultBroker() Broker {
	return Broker{
		HTTP:      "127.0.0.1:8080",
		TCP:       "127.0.0.1:7070",
		DrainTime: 10 * time.Second,
		LogLevel:  "info",
		LogFormat: "auto",
		Auth: Auth{
			Leeway: 10 * time.Second, JWKSRefresh: 10 * time.Minute, JWKSGrace: 10 * time.Minute, JWKSStale: 24 * time.Hour,
		},
		Limits: Limits{
			Message: 64 << 10, Channels: 128, Presence: 200, Batch: 1000, Targets: 10_000,
			ClientQueue: 1000, ChannelMessages: 10_000, ChannelBytes: 8 << 20, RequestQueue: 10_000,
			RequestBytes: 8 << 20, RequestShare: 100, RequestShareBytes: 1 << 20,
			MessageRate: 500, ByteRate: 2 << 20, NewChannels: 60,
		},
		Times: Times{
			Beat: 2 * time.Second, Refresh: 30 * time.Minute, Ping: 25 * time.Second,
			Connect: 10 * time.Second, Slow: time.Minute, ClientTTL: time.Hour, ChannelTTL: time.Hour,
			PositionTTL: 6 * time.Hour, RequestTTL: time.Hour,
		},
		Requests: Requests{Queues: 16, Allow: "users", Rate: 10},
		FastPush: true,
		Webhooks: defaultWebhooks(),
		Hooks:    defaultHooks(),
		Runtime:  defaultRuntime(),
	}
}

// LoadBroker reads args (without the program's name), environ (as os.Environ gives it)
// and the file that they name. The error is one line: a [UsageError] when args are wrong,
// [ErrHelp] or [ErrVersion] when they ask for that, anything else when a setting is wrong.
func LoadBroker(args, environ []string) (Broker, error) {
	b := DefaultBroker()
	unknown, err := brokerProgram.load(&b, args, environ)
	if err != nil {
		return Broker{}, err
	}
	b.Unknown = unknown
	return b, b.validate()
}

// validate checks what one setting alone cannot tell.
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
		return errors.New("auth.client_publish: the namespaces say who may publish; leave it out")
	}
	// The id that it begins stands in Redis between colons, and in a URL.
	if strings.ContainsFunc(b.Name, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) }) {
		return fmt.Errorf("name: %q: only letters, digits, dots, dashes and _ are allowed", b.Name)
	}
	if b.Times.PositionTTL < time.Hour { // shorter than what a failover or a bad night of a client takes
		return fmt.Errorf("times.position_ttl: %v: want 1h at least", b.Times.PositionTTL)
	}
	if err := errors.Join(b.Webhooks.validate(), b.Hooks.validate(), b.Runtime.validate()); err != nil {
		return err
	}
	if err := b.Registry().Validate(); err != nil {
		return err
	}
	return b.Queue().Validate()
}

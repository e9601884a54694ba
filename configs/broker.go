package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/broker/namespace"
)

// Broker has the settings of the broker, by their names in the file. Broker.Options, Registry and
// Queue convert them.
type Broker struct {
	HTTP      string `setting:"http"`
	TCP       string `setting:"tcp"`
	Peer      string `setting:"peer"`
	Advertise string `setting:"advertise"`
	Probes    string `setting:"probes"`
	Pprof     string `setting:"pprof"`
	Console   string `setting:"console"` // on or off
	Name      string `setting:"name"`

	Redis    Secret   `setting:"redis"` // the URL may hold a password
	RedisTLS RedisTLS `setting:"redis_tls"`
	Prefix   string   `setting:"prefix"`

	Insecure       bool          `setting:"insecure"`
	MaxConnections int           `setting:"max_connections"`
	DrainTime      time.Duration `setting:"drain_time"`
	LogLevel       string        `setting:"log_level"`
	LogFormat      string        `setting:"log_format"`

	Auth           Auth           `setting:"auth"`
	Namespaces     *namespace.Set `setting:"namespaces"`
	PeerSecret     Secret         `setting:"peer_secret"`
	PeerSecretFile string         `setting:"peer_secret_file"`
	Hosts          []string       `setting:"hosts"`
	Origins        []string       `setting:"origins"`
	Limits         Limits         `setting:"limits"`
	Times          Times          `setting:"times"`
	Requests       Requests       `setting:"requests"`
	Compression    bool           `setting:"compression"`
	FastPush       bool           `setting:"fast_push"`
	Webhooks       Webhooks       `setting:"webhooks"`
	Hooks          Hooks          `setting:"hooks"`
	TLS            TLS            `setting:"tls"`
	PeerTLS        PeerTLS        `setting:"peer_tls"`
	Kit            Kit            `setting:"kit"`
	Runtime        Runtime        `setting:"runtime"`
	Faults         Faults         `setting:"faults"`

	// Unknown are the SWITCHBOARD_ variables that belong to no setting.
	Unknown []string `setting:"-"`
}

// Auth has the keys for API calls and for tokens.
type Auth struct {
	Keys            []Secret      `setting:"keys"`
	KeysFile        string        `setting:"keys_file"`
	HS256Secret     Secret        `setting:"hs256_secret"`
	HS256SecretFile string        `setting:"hs256_secret_file"`
	RS256KeysFile   string        `setting:"rs256_keys_file"`
	EdDSAKeysFile   string        `setting:"eddsa_keys_file"`
	TokenKeys       []tokenKey    `setting:"token_keys"`
	JWKSURL         string        `setting:"jwks_url"`
	JWKSRefresh     time.Duration `setting:"jwks_refresh"`
	JWKSGrace       time.Duration `setting:"jwks_grace"`
	JWKSStale       time.Duration `setting:"jwks_stale"`
	Audience        []string      `setting:"audience"`
	Issuer          []string      `setting:"issuer"`
	Leeway          time.Duration `setting:"leeway"`
	Anonymous       bool          `setting:"anonymous"`
	ClientPublish   bool          `setting:"client_publish"`
}

// Limits are maximum numbers. Rates are per second unless noted.
type Limits struct {
	Message         int   `setting:"message"` // bytes
	Channels        int   `setting:"channels"`
	Presence        int   `setting:"presence"`
	Batch           int   `setting:"batch"`
	Targets         int   `setting:"targets"`
	ClientQueue     int   `setting:"client_queue"`
	ChannelMessages int   `setting:"channel_messages"`
	ChannelBytes    int64 `setting:"channel_bytes"`
	RequestQueue    int   `setting:"request_queue"`

	RequestBytes      int64 `setting:"request_bytes"`
	RequestShare      int   `setting:"request_share"`
	RequestShareBytes int64 `setting:"request_share_bytes"`

	// Of the state of a channel.
	Fields      int `setting:"fields"`
	StateBytes  int `setting:"state_bytes"`
	FieldBytes  int `setting:"field_bytes"`
	Operations  int `setting:"operations"`   // of one publish
	OwnedFields int `setting:"owned_fields"` // by one client

	// Zero means unlimited for these, except that the limit of UserConnections is then 64.
	MessageRate        int      `setting:"message_rate"` // of a connection
	ByteRate           int      `setting:"byte_rate"`    // of a connection
	NewChannels        int      `setting:"new_channels"` // of a user or an address, per minute
	UserStored         int      `setting:"user_stored"`  // bytes of a user or an address, per hour
	UserRead           int      `setting:"user_read"`    // bytes of a user or an address, per second
	UserConnections    int      `setting:"user_connections"`
	AddressConnections int      `setting:"address_connections"`
	AddressRate        int      `setting:"address_rate"` // connects
	Proxies            []string `setting:"proxies"`
	ProxyProtocol      []string `setting:"proxy_protocol"`      // networks, on the TCP port
	ProxyProtocolHTTP  []string `setting:"proxy_protocol_http"` // networks, on the HTTP port
	PushRate           int      `setting:"push_rate"`           // of an API key
}

// Times are intervals and lifetimes.
type Times struct {
	Beat       time.Duration `setting:"beat"`
	Refresh    time.Duration `setting:"refresh"`
	Ping       time.Duration `setting:"ping"`
	Connect    time.Duration `setting:"connect"`
	Slow       time.Duration `setting:"slow"`
	ClientTTL  time.Duration `setting:"client_ttl"`
	ChannelTTL time.Duration `setting:"channel_ttl"`

	PositionTTL time.Duration `setting:"position_ttl"`
	RequestTTL  time.Duration `setting:"request_ttl"`
	RevokedTTL  time.Duration `setting:"revoked_ttl"`
}

// Faults are deliberate faults of the broker, for tests.
type Faults struct {
	Hints string `setting:"hints"`
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// DefaultBroker returns the defaults.
func DefaultBroker() Broker {
	return Broker{
		HTTP:      "127.0.0.1:8080",
		TCP:       "127.0.0.1:7070",
		Console:   "on",
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
			Fields: 1024, StateBytes: 1 << 20, FieldBytes: 16 << 10, Operations: 64, OwnedFields: 16,
			MessageRate: 500, ByteRate: 2 << 20, NewChannels: 60, UserStored: 64 << 20, UserRead: 2 << 20,
		},
		Times: Times{
			Beat: 2 * time.Second, Refresh: 30 * time.Minute, Ping: 25 * time.Second,
			Connect: 10 * time.Second, Slow: time.Minute, ClientTTL: time.Hour, ChannelTTL: time.Hour,
			PositionTTL: 6 * time.Hour, RequestTTL: time.Hour, RevokedTTL: 30 * 24 * time.Hour,
		},
		Requests: defaultRequests(),
		FastPush: true,
		Webhooks: defaultWebhooks(),
		Hooks:    defaultHooks(),
		Runtime:  defaultRuntime(),
	}
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
	if b.Times.PositionTTL < time.Hour { // a client must be able to come back after a failover or an outage
		return fmt.Errorf("times.position_ttl: %v: want at least 1h", b.Times.PositionTTL)
	}
	if err := errors.Join(b.Webhooks.validate(), b.Hooks.validate(), b.Requests.validate(), b.Kit.validate(), b.Runtime.validate()); err != nil {
		return err
	}
	if err := b.Registry().Validate(); err != nil {
		return err
	}
	return b.Queue().Validate()
}

package configs

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/limit"
	"switchboard/queue"
	"switchboard/registry"
)

// missedRenewals is how long leases and records last without a renewal, in intervals.
const missedRenewals = 5

// Options returns the broker's options, without the store, the logger and the metrics. It reads the
// files that the settings name.
func (b Broker) Options() (broker.Options, error) {
	access, err := b.access()
	if err != nil {
		return broker.Options{}, err
	}
	listen := b.Listen
	if listen.TLS, err = b.TLS.files(); err != nil {
		return broker.Options{}, err
	}
	links, err := b.links()
	if err != nil {
		return broker.Options{}, err
	}
	limits, err := b.limits()
	if err != nil {
		return broker.Options{}, err
	}
	requests, err := b.Requests.options()
	if err != nil {
		return broker.Options{}, err
	}
	times, run := b.Times, b.Runs
	times.PositionTTL, run.NoFastPush = b.Messages.MetaTTL, !b.FastPush
	return broker.Options{
		Name:     b.serverName(),
		Listen:   listen,
		Links:    links,
		Access:   access,
		Limits:   limits,
		Requests: requests,
		Timing:   times,
		Runtime:  run,
	}, nil
}

// links returns the options of the links between instances.
func (b Broker) links() (broker.LinkOptions, error) {
	secret, key := string(b.PeerSecret), "peer_secret"
	var err error
	if b.PeerSecretFile != "" {
		key = "peer_secret_file"
		if secret, err = readOneSecret(key, b.PeerSecretFile, anySecret); err != nil {
			return broker.LinkOptions{}, err
		}
	}
	if _, err := auth.NewPeerSecret(secret); err != nil {
		return broker.LinkOptions{}, fmt.Errorf("%s: %w", key, err)
	}
	links := b.Links
	links.Secret = secret
	links.TLS, err = b.PeerTLS.Files()
	return links, err
}

// access returns the access rules.
func (b Broker) access() (broker.AccessOptions, error) {
	keys, err := b.keys()
	if err != nil {
		return broker.AccessOptions{}, err
	}
	tokens, err := b.tokens()
	if err != nil {
		return broker.AccessOptions{}, err
	}
	hooks, err := b.Hooks.options()
	if err != nil {
		return broker.AccessOptions{}, err
	}
	hosts := auth.Hosts{Patterns: b.Hosts}
	if err := hosts.Validate(); err != nil {
		return broker.AccessOptions{}, fmt.Errorf("hosts: %w", err)
	}
	origins := auth.Origins{Patterns: b.Origins}
	if err := origins.Validate(); err != nil {
		return broker.AccessOptions{}, fmt.Errorf("origins: %w", err)
	}
	return broker.AccessOptions{
		Keys: keys, Tokens: tokens, Anonymous: b.Auth.Anonymous,
		Namespaces: b.Namespaces, ClientPublish: b.Auth.ClientPublish, Hooks: hooks,
		Hosts: hosts, Origins: origins, Insecure: b.Insecure,
	}, nil
}

// limits returns the limits, with the networks of load balancers.
func (b Broker) limits() (broker.LimitOptions, error) {
	l := b.Limits
	for _, setting := range []struct {
		key      string
		texts    []string
		networks *[]netip.Prefix
	}{
		{"limits.proxies", b.Proxies, &l.Proxies},
		{"limits.proxy_protocol", b.ProxyProtocol, &l.ProxyProtocol},
		{"limits.proxy_protocol_http", b.ProxyProtocolHTTP, &l.ProxyProtocolHTTP},
	} {
		var err error
		if *setting.networks, err = limit.Networks(setting.texts); err != nil {
			return l, fmt.Errorf("%s: %w", setting.key, err)
		}
	}
	return l, nil
}

// serverName returns the first part of the server's id.
func (b Broker) serverName() string {
	if b.Name != "" {
		return b.Name
	}
	host, _ := os.Hostname() // if this fails the broker uses its own default
	host, _, _ = strings.Cut(host, ".")
	return host
}

func (b Broker) keys() (auth.Keys, error) {
	entries, err := secretsOf("auth.keys", b.Auth.Keys, b.Auth.KeysFile, auth.CheckEntry)
	if err != nil {
		return auth.Keys{}, err
	}
	return auth.NewKeys(entries)
}

func (b Broker) tokens() (*auth.Tokens, error) {
	opts := auth.Options{Leeway: b.Auth.Leeway, Audiences: b.Auth.Audience, Issuers: b.Auth.Issuer}
	var err error
	if opts.Named, err = b.Auth.namedKeys(); err != nil {
		return nil, err
	}
	if opts.Remote, err = b.Auth.remote(); err != nil {
		return nil, err
	}
	secrets, err := b.Auth.tokenSecrets()
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		opts.HS256 = append(opts.HS256, []byte(secret))
	}
	for _, pem := range []struct {
		key, path string
		keys      *[][]byte
	}{
		{"auth.rs256_keys_file", b.Auth.RS256KeysFile, &opts.RS256},
		{"auth.eddsa_keys_file", b.Auth.EdDSAKeysFile, &opts.EdDSA},
	} {
		if pem.path == "" {
			continue
		}
		text, err := readFile(pem.key, pem.path)
		if err != nil {
			return nil, err
		}
		*pem.keys = [][]byte{text}
	}
	tokens, err := auth.NewTokens(opts)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	return tokens, nil
}

// tokenSecrets returns the secrets of client tokens that have no name.
func (a Auth) tokenSecrets() ([]string, error) {
	var given []Secret
	if a.HS256Secret != "" {
		given = []Secret{a.HS256Secret}
	}
	return secretsOf("auth.hs256_secret", given, a.HS256SecretFile, checkTokenSecret)
}

// Registry returns the options of the broker's registry.
func (b Broker) Registry() registry.Options {
	o := b.Bindings
	o.Prefix, o.Lease, o.UserTTL = b.Prefix, missedRenewals*b.Times.Beat, missedRenewals*b.Times.Refresh
	return o
}

// Queue returns the options of the broker's queue. The record of a client must outlive the client's
// messages.
func (b Broker) Queue() queue.Options {
	o := b.Messages
	o.Prefix, o.RecordTTL = b.Prefix, max(missedRenewals*b.Times.Refresh, o.ClientTTL)
	return o
}

// Registry returns the options of the janitor's registry.
func (j Janitor) Registry() registry.Options { return registry.Options{Prefix: j.Prefix} }

// Queue returns the options of the janitor's queue.
func (j Janitor) Queue() queue.Options { return queue.Options{Prefix: j.Prefix} }

package configs

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/janitor"
	"switchboard/queue"
	"switchboard/registry"
)

// missed is how many renewals may be missed: leases and records live for that many intervals.
const missed = 5

// Options are the broker's, without the stores, the logger and the metrics. It reads the
// files that the settings name.
func (b Broker) Options() (broker.Options, error) {
	keys, err := b.keys()
	if err != nil {
		return broker.Options{}, err
	}
	tokens, err := b.tokens()
	if err != nil {
		return broker.Options{}, err
	}
	peer, peerKey := string(b.PeerSecret), "peer_secret"
	if b.PeerSecretFile != "" {
		peerKey = "peer_secret_file"
		if peer, err = readOneSecret(peerKey, b.PeerSecretFile, anySecret); err != nil {
			return broker.Options{}, err
		}
	}
	if _, err := auth.NewPeerSecret(peer); err != nil {
		return broker.Options{}, fmt.Errorf("%s: %w", peerKey, err)
	}
	origins := auth.Origins{Patterns: b.Origins}
	if err := origins.Validate(); err != nil {
		return broker.Options{}, fmt.Errorf("origins: %w", err)
	}
	hosts := auth.Hosts{Patterns: b.Hosts}
	if err := hosts.Validate(); err != nil {
		return broker.Options{}, fmt.Errorf("hosts: %w", err)
	}
	proxies, err := limit.Networks(b.Limits.Proxies)
	if err != nil {
		return broker.Options{}, fmt.Errorf("limits.proxies: %w", err)
	}
	requestsFrom, err := namespace.ParseAccess(cmp.Or(b.Requests.Allow, "users"))
	if err != nil {
		return broker.Options{}, fmt.Errorf("requests.allow: %w", err)
	}
	hooks, err := b.Hooks.options()
	if err != nil {
		return broker.Options{}, err
	}
	certificate, err := b.TLS.files()
	if err != nil {
		return broker.Options{}, err
	}
	link, err := b.PeerTLS.Files()
	if err != nil {
		return broker.Options{}, err
	}
	return broker.Options{
		Hooks: hooks, TLS: certificate, PeerTLS: link,
		Name: b.name(),
		HTTP: b.HTTP, TCP: b.TCP, Peer: b.Peer, Advertise: b.Advertise,
		Probes: b.Probes, Pprof: b.Pprof,
		Keys: keys, Tokens: tokens, PeerSecret: peer, Hosts: hosts, Origins: origins,
		Namespaces: b.Namespaces, Anonymous: b.Auth.Anonymous,
		Insecure: b.Insecure, ClientPublish: b.Auth.ClientPublish,
		MaxConnections: b.MaxConnections, MaxMessage: b.Limits.Message,
		MaxChannels: b.Limits.Channels, MaxBatch: b.Limits.Batch, MaxTargets: b.Limits.Targets, LargeChannel: b.Limits.Presence,
		MessageRate: b.Limits.MessageRate, ByteRate: b.Limits.ByteRate, PushRate: b.Limits.PushRate,
		NewChannels: b.Limits.NewChannels, PositionTTL: b.Times.PositionTTL,
		AddressConnections: b.Limits.AddressConnections, AddressRate: b.Limits.AddressRate, Proxies: proxies,
		RequestQueues: b.Requests.Queues, RequestsFrom: requestsFrom, RequestRate: b.Requests.Rate,
		Compression: b.Compression, NoFastPush: !b.FastPush,
		Beat: b.Times.Beat, Refresh: b.Times.Refresh, Ping: b.Times.Ping,
		HintFault:      b.Faults.Hints,
		ConnectTimeout: b.Times.Connect, SlowAfter: b.Times.Slow, DrainTime: b.DrainTime,
	}, nil
}

// name is what the server's id begins with.
func (b Broker) name() string {
	if b.Name != "" {
		return b.Name
	}
	host, _ := os.Hostname() // without one the broker has a name of its own
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
	var given []Secret
	if b.Auth.HS256Secret != "" {
		given = []Secret{b.Auth.HS256Secret}
	}
	secrets, err := secretsOf("auth.hs256_secret", given, b.Auth.HS256SecretFile, tokenSecret)
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

// Registry are the options of the broker's registry.
func (b Broker) Registry() registry.Options {
	return registry.Options{
		Prefix: b.Prefix, Lease: missed * b.Times.Beat, UserTTL: missed * b.Times.Refresh, MaxOnline: b.Limits.UserConnections,
	}
}

// Queue are the options of the broker's queue. What is remembered of a client or of a
// channel must outlive its messages.
func (b Broker) Queue() queue.Options {
	return queue.Options{
		Prefix:    b.Prefix,
		ClientCap: b.Limits.ClientQueue, ClientTTL: b.Times.ClientTTL,
		RecordTTL:  max(missed*b.Times.Refresh, b.Times.ClientTTL),
		ChannelCap: b.Limits.ChannelMessages, ChannelMaxBytes: b.Limits.ChannelBytes, ChannelTTL: b.Times.ChannelTTL,
		MetaTTL:    b.Times.PositionTTL,
		RequestCap: b.Limits.RequestQueue, RequestBytes: b.Limits.RequestBytes,
		RequestShare: b.Limits.RequestShare, RequestShareBytes: b.Limits.RequestShareBytes,
		RequestTTL: b.Times.RequestTTL,
	}
}

// Options are the janitor's, without the stores, the logger and the metrics.
func (j Janitor) Options() janitor.Options {
	return janitor.Options{
		ServersEvery: j.ServersEvery, QueuesEvery: j.QueuesEvery,
		MaxAge: j.MaxAge, MaxCount: j.MaxMessages, Patience: j.Patience, DryRun: j.DryRun,
	}
}

// Registry are the options of the janitor's registry.
func (j Janitor) Registry() registry.Options { return registry.Options{Prefix: j.Prefix} }

// Queue are the options of the janitor's queue.
func (j Janitor) Queue() queue.Options { return queue.Options{Prefix: j.Prefix} }

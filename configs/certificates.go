package configs

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"switchboard/internal/certfile"
)

// TLS names the files for the HTTP port.
type TLS struct {
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
}

// PeerTLS names the files for the links, on which both ends show a certificate.
type PeerTLS struct {
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
	CAFile   string `setting:"ca_file"`
	Name     string `setting:"name"`
}

// RedisTLS names the files for a rediss:// URL.
type RedisTLS struct {
	CAFile   string `setting:"ca_file"`
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
}

var redisTLSSettings = []spec{
	{key: "redis_tls.ca_file", text: "PEM file with the authorities that verify the certificate of Redis (rediss)", unset: "default the system's"},
	{key: "redis_tls.cert_file", text: "PEM file with the client certificate for Redis", unset: "default none"},
	{key: "redis_tls.key_file", text: "PEM file with the private key of the certificate"},
}

var peerTLSSettings = []spec{
	{key: "peer_tls.cert_file", text: "PEM file with the certificate of this instance for the links, for server and client\nuse; all instances need one, or none", unset: "default none: no encryption"},
	{key: "peer_tls.key_file", text: "PEM file with the private key of the certificate"},
	{key: "peer_tls.ca_file", text: "PEM file with the authority that signed the certificates of all instances"},
	{key: "peer_tls.name", text: "name in the certificates of all instances", unset: "default the advertised address"},
}

// files opens the certificate. It returns nil without one.
func (t TLS) files() (*certfile.Files, error) {
	return open("tls", certfile.Options{Cert: t.CertFile, Key: t.KeyFile})
}

// Files opens the certificate. It returns nil without one.
func (t PeerTLS) Files() (*certfile.Files, error) {
	o := certfile.Options{Cert: t.CertFile, Key: t.KeyFile, CA: t.CAFile, Name: t.Name}
	if o != (certfile.Options{}) && (o.Cert == "" || o.Key == "" || o.CA == "") {
		return nil, errors.New("peer_tls: cert_file, key_file and ca_file: all three are required")
	}
	return open("peer_tls", o)
}

// ClientConfig returns a function that makes the TLS configuration of a new connection to Redis,
// nil for the default. The function reads the files again each time.
func (t RedisTLS) ClientConfig(log zerolog.Logger) (func() *tls.Config, error) {
	files, err := open("redis_tls", certfile.Options{Cert: t.CertFile, Key: t.KeyFile, CA: t.CAFile})
	if files == nil || err != nil {
		return nil, err
	}
	log = log.With().Str("for", "redis").Logger()
	return func() *tls.Config { return files.Fresh(log) }, nil
}

func open(section string, o certfile.Options) (*certfile.Files, error) {
	if o == (certfile.Options{}) {
		return nil, nil
	}
	files, err := certfile.Open(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", section, err)
	}
	return files, nil
}

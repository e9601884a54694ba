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
	CertFile string `setting:"tls.cert_file" unset:"default none: no TLS" help:"PEM file with the certificate of the HTTP port; the TCP port has no TLS"`
	KeyFile  string `setting:"tls.key_file" help:"PEM file with the private key of the certificate"`
}

// PeerTLS names the files for the links, on which both ends show a certificate.
type PeerTLS struct {
	CertFile string `setting:"peer_tls.cert_file" unset:"default none: no encryption" help:"PEM file with the certificate of this instance for the links, for server and client use; all instances need one, or none"`
	KeyFile  string `setting:"peer_tls.key_file" help:"PEM file with the private key of the certificate"`
	CAFile   string `setting:"peer_tls.ca_file" help:"PEM file with the authority that signed the certificates of all instances"`
	Name     string `setting:"peer_tls.name" unset:"default the advertised address" help:"name in the certificates of all instances"`
}

// RedisTLS names the files for a rediss:// URL.
type RedisTLS struct {
	CAFile   string `setting:"redis_tls.ca_file" unset:"default the system's" help:"PEM file with the authorities that verify the certificate of Redis (rediss)"`
	CertFile string `setting:"redis_tls.cert_file" unset:"default none" help:"PEM file with the client certificate for Redis"`
	KeyFile  string `setting:"redis_tls.key_file" help:"PEM file with the private key of the certificate"`
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

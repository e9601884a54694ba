package configs

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"switchboard/internal/certfile"
)

// TLS are the files of the HTTP port.
type TLS struct {
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
}

// PeerTLS are the files of the links, which show their certificates to each other.
type PeerTLS struct {
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
	CAFile   string `setting:"ca_file"`
	Name     string `setting:"name"`
}

// RedisTLS are the files for a rediss:// URL.
type RedisTLS struct {
	CAFile   string `setting:"ca_file"`
	CertFile string `setting:"cert_file"`
	KeyFile  string `setting:"key_file"`
}

var redisTLSSettings = []about{
	{key: "redis_tls.ca_file", text: "PEM file of the authorities that Redis is verified by (rediss)", unset: "default the system's"},
	{key: "redis_tls.cert_file", text: "PEM file of the certificate to show to Redis", unset: "default none"},
	{key: "redis_tls.key_file", text: "PEM file of its key"},
}

var peerTLSSettings = []about{
	{key: "peer_tls.cert_file", text: "PEM file of the certificate that instances show each other, for servers\nand clients; with it the links are encrypted, on all instances", unset: "default none: in the clear"},
	{key: "peer_tls.key_file", text: "PEM file of its key"},
	{key: "peer_tls.ca_file", text: "PEM file of the authority that all those certificates are from"},
	{key: "peer_tls.name", text: "what all those certificates are for, if not the address that is advertised", unset: "default the address"},
}

// files is nil when there is no certificate.
func (t TLS) files() (*certfile.Files, error) {
	return open("tls", certfile.Options{Cert: t.CertFile, Key: t.KeyFile})
}

// Files is nil when nothing is set.
func (t PeerTLS) Files() (*certfile.Files, error) {
	o := certfile.Options{Cert: t.CertFile, Key: t.KeyFile, CA: t.CAFile, Name: t.Name}
	if o != (certfile.Options{}) && (o.Cert == "" || o.Key == "" || o.CA == "") {
		return nil, errors.New("peer_tls: cert_file, key_file and ca_file are needed, all three")
	}
	return open("peer_tls", o)
}

// Dial is how connections to Redis are made, nil when nothing is set. The files are read again at each.
func (t RedisTLS) Dial(log zerolog.Logger) (func() *tls.Config, error) {
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

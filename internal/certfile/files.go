package certfile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/tlsconfig"
)

// Options names the files. Cert and Key must be set both or not at all. Cert or CA must be set.
type Options struct {
	Cert string // PEM: the certificate and its intermediate certificates
	Key  string // PEM: its private key
	CA   string // PEM: the authorities to trust. Zero means the system's.
	// Name is the name that the certificate of a dialed server must have. Zero means the dialed host.
	Name string
	// Every is the interval at which Run reads the files. Zero means 5 s.
	Every time.Duration
}

// Files holds the last valid content of the files.
type Files struct {
	opts Options
	good atomic.Pointer[state]

	mu   sync.Mutex        // guards seen and the reading of the files
	seen [sha256.Size]byte // digest of the last read, also of an invalid one
}

// state is the parsed content of the files.
type state struct {
	cert *tls.Certificate // nil for none
	pool *x509.CertPool   // nil for the system's
}

// Open reads the files. An error names the invalid file.
func Open(o Options) (*Files, error) {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("a certificate and its key belong together: one of the files is missing")
	case o.Cert == "" && o.CA == "":
		return nil, errors.New("no file is set")
	}
	f := &Files{opts: o}
	_, err := f.reload()
	return f, err
}

// Run checks the files at intervals until ctx ends. It logs changes and errors.
func (f *Files) Run(ctx context.Context, log zerolog.Logger) error {
	t := time.NewTicker(cmp.Or(f.opts.Every, 5*time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			f.check(log)
		}
	}
}

// check calls reload and logs the result.
func (f *Files) check(log zerolog.Logger) {
	switch changed, err := f.reload(); {
	case err != nil && changed:
		log.Error().Err(err).Msg("the new certificate files are invalid; the old ones stay in use")
	case changed:
		log.Info().Time("not_after", f.NotAfter()).Msg("new certificate files are in use")
	}
}

// reload reads the files and uses them if they are valid. changed reports whether the content or
// the error differs from the previous call.
func (f *Files) reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, sum, err := f.opts.read()
	changed = sum != f.seen
	if !changed && f.good.Load() != nil {
		return false, err
	}
	f.seen = sum
	if err == nil {
		f.good.Store(s)
	}
	return changed, err
}

// read reads the files. sum is a digest of their content, or of the error if a file cannot be read.
func (o Options) read() (s *state, sum [sha256.Size]byte, err error) {
	content := make([][]byte, 3)
	for i, path := range []string{o.Cert, o.Key, o.CA} {
		if path == "" {
			continue
		}
		if content[i], err = os.ReadFile(path); err != nil {
			return nil, sha256.Sum256([]byte(err.Error())), err
		}
	}
	sum = sha256.Sum256(bytes.Join(content, []byte{0}))
	s = new(state)
	if o.Cert != "" {
		pair, err := tls.X509KeyPair(content[0], content[1]) // its errors contain nothing of the key
		if err != nil {
			return nil, sum, fmt.Errorf("%s with %s: %w", o.Cert, o.Key, err)
		}
		if time.Now().After(pair.Leaf.NotAfter) {
			return nil, sum, fmt.Errorf("%s: the certificate expired at %s", o.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		s.cert = &pair
	}
	if o.CA != "" {
		s.pool = x509.NewCertPool()
		if !s.pool.AppendCertsFromPEM(content[2]) {
			return nil, sum, fmt.Errorf("%s: no certificate in the file", o.CA)
		}
	}
	return s, sum, nil
}

// NotAfter returns the time at which the certificate expires, or zero if there is none.
func (f *Files) NotAfter() time.Time {
	if s := f.good.Load(); s.cert != nil {
		return s.cert.Leaf.NotAfter
	}
	return time.Time{}
}

// Server returns the configuration of a listener. Every handshake uses the current certificate.
func (f *Files) Server() *tls.Config {
	return tlsconfig.Strict(&tls.Config{
		NextProtos:     []string{"h2", "http/1.1"}, // clients of WebSockets offer only the second
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.good.Load().cert, nil },
	})
}

// Mutual returns the configuration of a listener that requires client certificates from the
// authorities in CA. CA must be set.
func (f *Files) Mutual() *tls.Config {
	config := f.Server()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := f.good.Load()
		return tlsconfig.Strict(&tls.Config{
			NextProtos:             []string{"http/1.1"}, // a link takes over the connection
			SessionTicketsDisabled: true,
			Certificates:           []tls.Certificate{*s.cert},
			ClientAuth:             tls.RequireAndVerifyClientCert, ClientCAs: s.pool,
		}), nil
	}
	return config
}

// Client returns the configuration for dialing one connection.
func (f *Files) Client() *tls.Config {
	s := f.good.Load()
	config := tlsconfig.Strict(&tls.Config{ServerName: f.opts.Name, RootCAs: s.pool})
	if s.cert != nil {
		config.Certificates = []tls.Certificate{*s.cert}
	}
	return config
}

// Fresh reads the files and returns Client. Use it if you do not call Run.
func (f *Files) Fresh(log zerolog.Logger) *tls.Config {
	f.check(log)
	return f.Client()
}

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

// Options names the files. Cert and Key are both there or neither; one of Cert and CA must be.
type Options struct {
	Cert string // PEM: the certificate, and those between it and the authority
	Key  string // PEM: its private key
	CA   string // PEM: the authorities to trust. Zero means the system's.
	// Name is what the certificate of whoever is dialled must be for. Zero means the host that is dialled.
	Name string
	// Every is how often Run looks at the files. Zero means 5 s.
	Every time.Duration
}

// Files are the files, as they are when they were good last.
type Files struct {
	opts Options
	good atomic.Pointer[state]

	mu   sync.Mutex // guards seen, and is held while files are read
	seen [sha256.Size]byte
}

// state is what the files held.
type state struct {
	cert *tls.Certificate // nil for none
	pool *x509.CertPool   // nil for the system's
}

// Open reads the files; an error names the one that is wrong.
func Open(o Options) (*Files, error) {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("a certificate and its key belong together: one of the files is missing")
	case o.Cert == "" && o.CA == "":
		return nil, errors.New("no file is named")
	}
	f := &Files{opts: o}
	_, err := f.reload()
	return f, err
}

// Run looks at the files until ctx ends, and tells log.
func (f *Files) Run(ctx context.Context, log zerolog.Logger) error {
	t := time.NewTicker(cmp.Or(f.opts.Every, 5*time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			f.look(log)
		}
	}
}

// look is reload that tells the log.
func (f *Files) look(log zerolog.Logger) {
	switch changed, err := f.reload(); {
	case err != nil && changed:
		log.Error().Err(err).Msg("the new certificate files are no good; the ones before stay")
	case changed:
		log.Info().Time("not_after", f.NotAfter()).Msg("new certificate files are in use")
	}
}

// reload reads the files. changed says that they are not what they were at the call before; with an error they
// are not used.
func (f *Files) reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, sum, err := f.opts.read()
	if changed = sum != f.seen; !changed && f.good.Load() != nil {
		return false, err
	}
	f.seen = sum
	if err == nil {
		f.good.Store(s)
	}
	return changed, err
}

// read is what the files hold, and a digest of it that also tells one error from another.
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
		pair, err := tls.X509KeyPair(content[0], content[1]) // its errors repeat nothing of the key
		if err != nil {
			return nil, sum, fmt.Errorf("%s with %s: %w", o.Cert, o.Key, err)
		}
		if time.Now().After(pair.Leaf.NotAfter) {
			return nil, sum, fmt.Errorf("%s: the certificate ran out at %s", o.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		s.cert = &pair
	}
	if o.CA != "" {
		s.pool = x509.NewCertPool()
		if !s.pool.AppendCertsFromPEM(content[2]) {
			return nil, sum, fmt.Errorf("%s: there is no certificate in it", o.CA)
		}
	}
	return s, sum, nil
}

// NotAfter is when the certificate runs out; zero when there is none.
func (f *Files) NotAfter() time.Time {
	if s := f.good.Load(); s.cert != nil {
		return s.cert.Leaf.NotAfter
	}
	return time.Time{}
}

// Server is the configuration of a listener; every handshake takes the files of then.
func (f *Files) Server() *tls.Config {
	return tlsconfig.Strict(&tls.Config{
		NextProtos:     []string{"http/1.1"}, // a WebSocket takes its connection over
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.good.Load().cert, nil },
	})
}

// Mutual is Server that lets in only who shows a certificate of the authorities in CA, which must be named.
func (f *Files) Mutual() *tls.Config {
	config := f.Server()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := f.good.Load()
		return tlsconfig.Strict(&tls.Config{
			NextProtos: config.NextProtos, SessionTicketsDisabled: true,
			Certificates: []tls.Certificate{*s.cert},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: s.pool,
		}), nil
	}
	return config
}

// Client is the configuration of one connection that is about to be dialled.
func (f *Files) Client() *tls.Config {
	s := f.good.Load()
	config := tlsconfig.Strict(&tls.Config{ServerName: f.opts.Name, RootCAs: s.pool})
	if s.cert != nil {
		config.Certificates = []tls.Certificate{*s.cert}
	}
	return config
}

// Fresh is Client of files that nobody else looks at, as they are now.
func (f *Files) Fresh(log zerolog.Logger) *tls.Config {
	f.look(log)
	return f.Client()
}

package certfile

import (
	"bytes"
	"crypto/tls"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/certtest"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// handshake makes a TLS handshake over a real connection. It returns the serial number of the
// server's certificate and the errors of both ends.
func handshake(t *testing.T, server, client *tls.Config) (serial string, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		done <- tls.Server(c, server).Handshake()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	ok(t, err)
	defer c.Close()
	client = client.Clone()
	if client.ServerName == "" {
		client.ServerName = "127.0.0.1"
	}
	conn := tls.Client(c, client)
	clientErr = conn.Handshake()
	serverErr = <-done
	if clientErr == nil {
		serial = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	return serial, serverErr, clientErr
}

func TestRenewal(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	f, err := Open(Options{Cert: pair.Cert, Key: pair.Key})
	ok(t, err)
	config, client := f.Server(), &tls.Config{RootCAs: ca.Pool()}
	first, _, err := handshake(t, config, client)
	ok(t, err)
	if changed, err := f.reload(); changed || err != nil {
		t.Errorf("unchanged files: %v, %v", changed, err)
	}
	ca.Renew(pair, time.Now().Add(time.Hour))
	if changed, err := f.reload(); !changed || err != nil {
		t.Errorf("renewed: %v, %v", changed, err)
	}
	second, _, err := handshake(t, config, client)
	ok(t, err)
	if first == second {
		t.Error("the old certificate is still in use")
	}
}

// TestInvalidRenewal checks that with invalid files the old certificate stays in use and one error
// is logged, and that the next valid files are used.
func TestInvalidRenewal(t *testing.T) {
	ca := certtest.New(t)
	pair, other := ca.Pair(), ca.Pair()
	f, err := Open(Options{Cert: pair.Cert, Key: pair.Key})
	ok(t, err)
	client := &tls.Config{RootCAs: ca.Pool()}
	otherKey, err := os.ReadFile(other.Key)
	ok(t, err)
	for name, invalidate := range map[string]func(){
		"incomplete":                 func() { ok(t, os.WriteFile(pair.Cert, []byte("-----BEGIN CERT"), 0o600)) },
		"key of another certificate": func() { ok(t, os.WriteFile(pair.Key, otherKey, 0o600)) },
		"missing":                    func() { ok(t, os.Remove(pair.Cert)) },
		"expired":                    func() { ca.Renew(pair, time.Now().Add(-time.Minute)) },
	} {
		ca.Renew(pair, time.Now().Add(time.Hour))
		_, err := f.reload()
		ok(t, err)
		first, _, err := handshake(t, f.Server(), client)
		ok(t, err)
		invalidate()
		var log bytes.Buffer
		for range 3 {
			f.check(zerolog.New(&log))
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "the old ones stay in use") {
			t.Errorf("%s: the log: %s", name, &log)
		}
		if strings.Contains(log.String(), "PRIVATE KEY") {
			t.Errorf("%s: the key is in the log", name)
		}
		if again, _, err := handshake(t, f.Server(), client); err != nil || again != first {
			t.Errorf("%s: %s became %s, %v", name, first, again, err)
		}
	}
}

func TestMutual(t *testing.T) {
	ours, theirs := certtest.New(t), certtest.New(t)
	open := func(from, trusts *certtest.Authority, name string) *Files {
		pair := from.Pair("instance")
		f, err := Open(Options{Cert: pair.Cert, Key: pair.Key, CA: trusts.File, Name: name})
		ok(t, err)
		return f
	}
	server := open(ours, ours, "").Mutual()
	for name, tt := range map[string]struct {
		client             *tls.Config
		serverOK, clientOK bool
	}{
		"same authority":                       {open(ours, ours, "").Client(), true, true},
		"right name":                           {open(ours, ours, "instance").Client(), true, true},
		"wrong name":                           {open(ours, ours, "other").Client(), false, false},
		"client of another authority":          {open(theirs, ours, "").Client(), false, true},
		"client that trusts another authority": {open(ours, theirs, "").Client(), false, false},
		"no client certificate":                {&tls.Config{RootCAs: ours.Pool()}, false, true},
		"below TLS 1.2":                        {belowTLS12(open(ours, ours, "").Client()), false, false},
	} {
		_, serverErr, clientErr := handshake(t, server, tt.client)
		// In TLS 1.3 the client finishes before the server has verified its certificate.
		if (serverErr == nil) != tt.serverOK || (clientErr == nil) != tt.clientOK {
			t.Errorf("%s: server %v, client %v", name, serverErr, clientErr)
		}
	}
}

// belowTLS12 limits a configuration to versions below TLS 1.2.
func belowTLS12(c *tls.Config) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return c
}

func TestMinimumVersion(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	f, err := Open(Options{Cert: pair.Cert, Key: pair.Key})
	ok(t, err)
	if _, serverErr, _ := handshake(t, f.Server(), belowTLS12(&tls.Config{RootCAs: ca.Pool()})); serverErr == nil {
		t.Error("TLS 1.1 was accepted")
	}
	if _, _, err := handshake(t, f.Server(), &tls.Config{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
}

func TestOpen(t *testing.T) {
	pair := certtest.New(t).Pair()
	for want, o := range map[string]Options{
		"belong together": {Cert: pair.Cert},
		"no file":         {},
		"no such file":    {Cert: pair.Cert + "x", Key: pair.Key},
		"no certificate":  {CA: pair.Key},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// TestSuites checks that servers refuse a client that offers only CBC suites, with and without
// client certificates.
func TestSuites(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	files, err := Open(Options{Cert: pair.Cert, Key: pair.Key, CA: ca.File})
	ok(t, err)
	for name, server := range map[string]*tls.Config{"Server": files.Server(), "Mutual": files.Mutual()} {
		weak, good := files.Client(), files.Client()
		weak.MaxVersion, weak.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		good.MaxVersion = tls.VersionTLS12
		if _, _, err := handshake(t, server, weak); err == nil {
			t.Errorf("%s: a CBC suite is accepted", name)
		}
		if _, serverErr, clientErr := handshake(t, server, good); serverErr != nil || clientErr != nil {
			t.Errorf("%s: %v, %v", name, serverErr, clientErr)
		}
	}
}

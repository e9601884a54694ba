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

// meet shakes hands over a real connection and returns what either end says of it; the serial number is the server's.
func meet(t *testing.T, server, client *tls.Config) (serial string, serverErr, clientErr error) {
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
	first, _, err := meet(t, config, client)
	ok(t, err)
	if changed, err := f.reload(); changed || err != nil {
		t.Errorf("nothing has changed: %v, %v", changed, err)
	}
	ca.Renew(pair, time.Now().Add(time.Hour))
	if changed, err := f.reload(); !changed || err != nil {
		t.Errorf("renewed: %v, %v", changed, err)
	}
	second, _, err := meet(t, config, client)
	ok(t, err)
	if first == second {
		t.Error("the old certificate is still shown")
	}
}

// TestBadRenewal: whatever is wrong, the certificate before stays, the log says so once, and the next good one counts.
func TestBadRenewal(t *testing.T) {
	ca := certtest.New(t)
	pair, other := ca.Pair(), ca.Pair()
	f, err := Open(Options{Cert: pair.Cert, Key: pair.Key})
	ok(t, err)
	client := &tls.Config{RootCAs: ca.Pool()}
	otherKey, err := os.ReadFile(other.Key)
	ok(t, err)
	for name, spoil := range map[string]func(){
		"half written":    func() { ok(t, os.WriteFile(pair.Cert, []byte("-----BEGIN CERT"), 0o600)) },
		"another's key":   func() { ok(t, os.WriteFile(pair.Key, otherKey, 0o600)) },
		"gone":            func() { ok(t, os.Remove(pair.Cert)) },
		"run out already": func() { ca.Renew(pair, time.Now().Add(-time.Minute)) },
	} {
		ca.Renew(pair, time.Now().Add(time.Hour))
		_, err := f.reload()
		ok(t, err)
		first, _, err := meet(t, f.Server(), client)
		ok(t, err)
		spoil()
		var log bytes.Buffer
		for range 3 {
			f.look(zerolog.New(&log))
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "the ones before stay") {
			t.Errorf("%s: the log: %s", name, &log)
		}
		if strings.Contains(log.String(), "PRIVATE KEY") {
			t.Errorf("%s: the key is in the log", name)
		}
		if again, _, err := meet(t, f.Server(), client); err != nil || again != first {
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
		client        *tls.Config
		serves, dials bool
	}{
		"one of ours":                     {open(ours, ours, "").Client(), true, true},
		"by name":                         {open(ours, ours, "instance").Client(), true, true},
		"by another name":                 {open(ours, ours, "other").Client(), false, false},
		"a stranger who trusts us":        {open(theirs, ours, "").Client(), false, true},
		"one of ours who trusts others":   {open(ours, theirs, "").Client(), false, false},
		"nobody":                          {&tls.Config{RootCAs: ours.Pool()}, false, true},
		"one of ours with an old version": {old(open(ours, ours, "").Client()), false, false},
	} {
		_, serverErr, clientErr := meet(t, server, tt.client)
		// In TLS 1.3 the client is done before the server has looked at its certificate.
		if (serverErr == nil) != tt.serves || (clientErr == nil) != tt.dials {
			t.Errorf("%s: server %v, client %v", name, serverErr, clientErr)
		}
	}
}

func old(c *tls.Config) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return c
}

func TestMinimumVersion(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	f, err := Open(Options{Cert: pair.Cert, Key: pair.Key})
	ok(t, err)
	if _, serverErr, _ := meet(t, f.Server(), old(&tls.Config{RootCAs: ca.Pool()})); serverErr == nil {
		t.Error("TLS 1.1 was spoken")
	}
	if _, _, err := meet(t, f.Server(), &tls.Config{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS12}); err != nil {
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

// TestSuites: a client that offers only suites with CBC is refused, with certificates of its own or
// without.
func TestSuites(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	files, err := Open(Options{Cert: pair.Cert, Key: pair.Key, CA: ca.File})
	ok(t, err)
	for name, server := range map[string]*tls.Config{"Server": files.Server(), "Mutual": files.Mutual()} {
		weak, good := files.Client(), files.Client()
		weak.MaxVersion, weak.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		good.MaxVersion = tls.VersionTLS12
		if _, _, err := meet(t, server, weak); err == nil {
			t.Errorf("%s: a suite with CBC is agreed on", name)
		}
		if _, serverErr, clientErr := meet(t, server, good); serverErr != nil || clientErr != nil {
			t.Errorf("%s: %v, %v", name, serverErr, clientErr)
		}
	}
}

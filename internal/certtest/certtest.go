// Package certtest creates certificate authorities and certificates in files, for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority issues certificates.
type Authority struct {
	File string // PEM file with the certificate of the authority
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority. Its files are in a directory of the test.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, key: newKey(tb)}
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	must(tb, err)
	a.cert, err = x509.ParseCertificate(der)
	must(tb, err)
	a.File = filepath.Join(tb.TempDir(), "ca.pem")
	write(tb, a.File, "CERTIFICATE", der)
	return a
}

// A Pair names the PEM files of a certificate and its key.
type Pair struct{ Cert, Key string }

// Pair issues a certificate for 127.0.0.1 and the DNS names. It is valid for servers and clients.
func (a *Authority) Pair(names ...string) Pair {
	a.tb.Helper()
	dir := a.tb.TempDir()
	p := Pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	a.Renew(p, time.Now().Add(time.Hour), names...)
	return p
}

// Renew writes a new certificate, for 127.0.0.1 and the DNS names, and its key into the files of p.
func (a *Authority) Renew(p Pair, notAfter time.Time, names ...string) {
	a.tb.Helper()
	key := newKey(a.tb)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(a.tb), Subject: pkix.Name{CommonName: "test"}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	must(a.tb, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.tb, err)
	write(a.tb, p.Cert, "CERTIFICATE", der)
	write(a.tb, p.Key, "PRIVATE KEY", encoded)
}

// Pool returns a pool with the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(tb, err)
	return n
}

func write(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	must(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

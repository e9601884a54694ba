// Package tlsconfig is what every TLS configuration of the program has in common: see [Strict].
package tlsconfig

import "crypto/tls"

// aead are the cipher suites of TLS 1.2 that authenticate what they encrypt and keep past traffic
// secret when a key is stolen (RFC 9325 §4.2). Those with CBC, which Go still offers by default,
// have a history of padding oracles. The suites of TLS 1.3 are all of this kind, and not
// configurable.
var aead = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Strict returns a copy of config, which may be nil, that speaks TLS 1.2 at least, and TLS 1.2 with
// AEAD suites only.
func Strict(config *tls.Config) *tls.Config {
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.CipherSuites = aead
	return config
}

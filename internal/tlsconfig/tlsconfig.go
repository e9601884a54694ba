// Package tlsconfig holds the minimum requirements of all TLS configurations. See [Strict].
package tlsconfig

import "crypto/tls"

// aead are the TLS 1.2 cipher suites with authenticated encryption and forward secrecy (RFC 9325
// §4.2). The CBC suites, which Go still offers by default, have a history of padding oracles. The
// suites of TLS 1.3 all have both properties, and they are not configurable.
var aead = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Strict returns a copy of config with TLS 1.2 as the minimum version and only AEAD suites for TLS
// 1.2. config may be nil.
func Strict(config *tls.Config) *tls.Config {
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.CipherSuites = aead
	return config
}

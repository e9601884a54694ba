// Package auth authenticates everything that connects to a broker. It checks API keys of backends
// ([Keys]), signed tokens of users ([Tokens]), origins of web pages ([Origins]), host names
// ([Hosts]) and the secret that the instances share ([PeerSecret]).
//
// The keys that verify tokens are configured, or fetched from the issuer ([Remote], the only part
// that makes network calls and has state). No error or log contains a secret. An API key is kept as
// its digest only.
//
// # Files
//
// Files in reading order: redirect.go, fetch.go, hosts.go, jwk.go, keyring.go, origins.go,
// peersecret.go, pem.go, remote.go, keys.go, tokens.go, claims.go, algorithm.go.
package auth

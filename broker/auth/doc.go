// Package auth decides who may talk to a broker: API keys for backends ([Keys]),
// signed tokens for users ([Tokens]), the origins of browsers ([Origins]) and the
// secret that the instances share ([PeerSecret]).
//
// The keys of tokens are configured, or fetched from where the issuer publishes them ([Remote], the only
// part that calls out and keeps state). None of the four prints what it was given: a secret is kept as its
// digest where that is enough, and an error names the place, not the value.
package auth

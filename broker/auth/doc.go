// Package auth decides who may talk to a broker: API keys for backends ([Keys]),
// signed tokens for users ([Tokens]), the origins of browsers ([Origins]) and the
// secret that the instances share ([PeerSecret]).
//
// Nothing here keeps state or calls out, and none of the four prints what it was
// given: a secret is kept as its digest, and an error names the place, not the value.
package auth

// Package account keeps accounts: names, passwords, logins and their renewal. An account is the
// state of the channel account:{id}, closed to all clients, so each operation is one update whose
// conditions the store checks. A login returns a signed token for the broker, whose user is the id
// of the account, and a renewal token.
//
// # Fields
//
// Channel account:{id}, kept forever:
//
//	$$account         the record, see record; every change except a renewal writes it
//	$$scram           salt, iterations, stored key and server key of SCRAM-SHA-256 (RFC 5802, 7677)
//	$$token/{slot}    a login: family, client, digest of its renewal token; leased
//	$$event/{n}       event number n modulo 100
//	$$claim           the digest of the name that the account is about to take; leased
//	$$proof/{digest}  a challenge that was answered; leased
//
// Channel account-name:{digest}, where digest is the SHA-256 of the normalized name:
//
//	$$id              the id of the account that has the name, or claims it
//
// # Names
//
// A name belongs to the account in $$id if the record of that account has the name. If not, the
// account may still get it while its $$claim has the digest of the name; after that, $$id is
// stale and another account may replace it, on the condition that it has not changed. A record
// gets a new name only on the condition that its claim is the one that was made before $$id was
// written. So a name never belongs to two accounts, at whatever point a process stops: nothing
// needs to be undone.
//
// # Passwords
//
// The stored record verifies a password and a SCRAM proof, and is not enough to log in. A login
// with an unknown name does the same work as one with a wrong password.
//
// # Sessions
//
// [Sessions] keeps a document for each user, as the field $$session of the channel session:{user}.
//
// # Files
//
// Files in reading order: sessions.go, endpoints.go, self.go, proof.go, login.go, check.go,
// grants.go, accounts.go, list.go, edit.go, name.go, password.go, record.go, options.go, caller.go.
package account

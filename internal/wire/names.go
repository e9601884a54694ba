package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a user, client or channel, in bytes.
const MaxName = 200

// AllChannel is the system channel that every connected client follows: what a push
// to all goes through.
const AllChannel = "$all"

// UserChannel stands before the name of a user in the system channel of his coming and going.
const UserChannel = "$user:"

// CheckName says what is wrong with name; kind ("channel", "user", "client") stands
// in the message. 1 to 200 bytes of UTF-8, no control characters, no white space, no
// braces: braces would move the Redis Cluster hash tag.
func CheckName(kind, name string) error {
	if len(name) > 0 && len(name) <= MaxName && plainName(name) {
		return nil
	}
	switch {
	case name == "":
		return Errorf(BadRequest, "%s: the name is empty", kind)
	case len(name) > MaxName:
		return Errorf(BadRequest, "%s: the name has %d bytes, at most %d are allowed", kind, len(name), MaxName)
	case !utf8.ValidString(name):
		return Errorf(BadRequest, "%s: the name is not UTF-8", kind)
	}
	for i, r := range name {
		if r == '{' || r == '}' || unicode.IsControl(r) || unicode.IsSpace(r) {
			return Errorf(BadRequest, "%s: character %q at byte %d of the name is not allowed", kind, r, i)
		}
	}
	return nil
}

// ClientID returns the id of a client: user/client, or client alone where it has no user.
// client has no '/', so the last one ends the user, and no two users share an id.
func ClientID(user, client string) string {
	if user == "" {
		return client
	}
	return user + "/" + client
}

// UserOf returns the user whose client has that id, "" for none.
func UserOf(id string) string {
	return id[:max(strings.LastIndexByte(id, '/'), 0)]
}

// ClientPart returns what an id says besides the user.
func ClientPart(id string) string {
	return id[strings.LastIndexByte(id, '/')+1:]
}

// CheckClientPart reports what is wrong with the part of an id that a client chooses.
func CheckClientPart(client string) error {
	if err := CheckName("client", client); err != nil {
		return err
	}
	if i := strings.IndexByte(client, '/'); i >= 0 {
		return Errorf(BadRequest, "client: '/' at byte %d of the name: it stands between a user and a client only", i)
	}
	return nil
}

// CheckClientID reports what is wrong with an id: a client, or a user and a client, each
// of 1 to MaxName bytes.
func CheckClientID(id string) error {
	i := strings.LastIndexByte(id, '/')
	if i >= 0 {
		if err := CheckName("client", id[:i]); err != nil {
			return err
		}
	}
	return CheckName("client", id[i+1:])
}

const (
	// minSecret and maxSecret bound the secret of a client without a user, in bytes.
	minSecret = 16
	maxSecret = 200
)

// CheckSecret reports what is wrong with a secret: 16 to 200 bytes of printable UTF-8. The
// error does not repeat it.
func CheckSecret(secret string) error {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return Errorf(BadRequest, "secret: it has %d bytes, between %d and %d are allowed", len(secret), minSecret, maxSecret)
	}
	if !utf8.ValidString(secret) || strings.ContainsFunc(secret, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Errorf(BadRequest, "secret: a character is not printable")
	}
	return nil
}

// plainName says that name is of printable ASCII, and has no braces.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

// IsSystem reports whether channel is one of the system's own.
func IsSystem(channel string) bool { return strings.HasPrefix(channel, "$") }

package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a user, client or channel, in bytes.
const MaxName = 200

// AllChannel is the system channel to which every connected client is subscribed. A push to all
// clients goes to this channel.
const AllChannel = "$all"

// UserChannelPrefix is the prefix of the system channels for the presence of users: `$user:` and
// the user.
const UserChannelPrefix = "$user:"

// CheckName returns an error if name is invalid. kind ("channel", "user", "client") is part of the
// error. A name has 1 to 200 bytes of UTF-8 without control characters, white space and braces.
// Braces would change the hash tag of Redis Cluster.
func CheckName(kind, name string) error {
	if len(name) > 0 && len(name) <= MaxName && isPlainASCII(name) {
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

// ClientID returns the id of a client: user/client, or client alone if it has no user. client has
// no '/', so the last '/' of an id ends the user, and no two users share an id.
func ClientID(user, client string) string {
	if user == "" {
		return client
	}
	return user + "/" + client
}

// UserOf returns the user of a client id, or "" if it has none.
func UserOf(id string) string {
	return id[:max(strings.LastIndexByte(id, '/'), 0)]
}

// ClientPart returns a client id without its user.
func ClientPart(id string) string {
	return id[strings.LastIndexByte(id, '/')+1:]
}

// CheckClientPart returns an error if a client id without its user is invalid.
func CheckClientPart(client string) error {
	if err := CheckName("client", client); err != nil {
		return err
	}
	if i := strings.IndexByte(client, '/'); i >= 0 {
		return Errorf(BadRequest, "client: '/' at byte %d of the name: it may only separate a user from a client", i)
	}
	return nil
}

// CheckClientID returns an error if a client id is invalid. A valid id is a client, or a user and a
// client, each of 1 to MaxName bytes.
func CheckClientID(id string) error {
	i := strings.LastIndexByte(id, '/')
	if i >= 0 {
		if err := CheckName("client", id[:i]); err != nil {
			return err
		}
	}
	return CheckName("client", id[i+1:])
}

// MaxMethod is the longest name of a method, in bytes.
const MaxMethod = 64

// CheckMethod returns an error if the name of a method is invalid. A name has 1 to 64 characters of
// a-z, 0-9, '.', '_' and '-'.
func CheckMethod(name string) error {
	if len(name) == 0 || len(name) > MaxMethod {
		return Errorf(BadRequest, "method: the name has %d bytes, between 1 and %d are allowed", len(name), MaxMethod)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return Errorf(BadRequest, "method: character %q at byte %d of the name is not allowed", c, i)
		}
	}
	return nil
}

const (
	// minSecret and maxSecret bound the secret of a client without a user, in bytes.
	minSecret = 16
	maxSecret = 200
)

// CheckSecret returns an error if a secret is invalid. A secret has 16 to 200 bytes of printable
// UTF-8. The error does not contain it.
func CheckSecret(secret string) error {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return Errorf(BadRequest, "secret: it has %d bytes, between %d and %d are allowed", len(secret), minSecret, maxSecret)
	}
	if isPrintableASCII(secret) {
		return nil
	}
	if !utf8.ValidString(secret) || strings.ContainsFunc(secret, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Errorf(BadRequest, "secret: a character is not printable")
	}
	return nil
}

// isPrintableASCII reports whether text has only the bytes from ' ' to '~'.
func isPrintableASCII(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// isPlainASCII reports whether name is printable ASCII without white space and braces.
func isPlainASCII(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

// IsSystem reports whether channel is a system channel.
func IsSystem(channel string) bool { return strings.HasPrefix(channel, "$") }

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

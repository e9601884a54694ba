package state

import (
	"strings"

	"switchboard/internal/wire"
)

// MaxName is the longest name of a field, in bytes.
const MaxName = 128

// maxPrefix is the group of the fields that lower the limit of a group: $max/member/ is the limit
// of the group member/.
const maxPrefix = "$max/"

// CheckName returns an error if name is not the name of a field: 1 to 128 of the characters
// A-Z a-z 0-9 . _ : @ - / % and $. A $ may only be the first, or the first two characters.
func CheckName(name string) error {
	if name == "" {
		return wire.Errorf(wire.BadRequest, "field: the name is empty")
	}
	if len(name) > MaxName {
		return wire.Errorf(wire.BadRequest, "field %.40s…: the name has %d bytes, at most %d are allowed", name, len(name), MaxName)
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(name, "$"), "$")
	for i := range len(rest) {
		if c := rest[i]; !isNameByte(c) {
			return wire.Errorf(wire.BadRequest, "field %.40q: character %q at byte %d of the name is not allowed", name, c, i+len(name)-len(rest))
		}
	}
	if rest == "" {
		return wire.Errorf(wire.BadRequest, "field %s: nothing follows the $", name)
	}
	return nil
}

// isNameByte reports whether c may be in the name of a field, after a $.
func isNameByte(c byte) bool { return isPlainByte(c) || c == '/' || c == '%' }

// isPlainByte reports whether Escape keeps c.
func isPlainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
}

// CheckPrefix returns an error if prefix cannot be the beginning of a field's name. The empty
// prefix is valid.
func CheckPrefix(prefix string) error {
	if strings.Trim(prefix, "$") == "" && len(prefix) <= 2 {
		return nil
	}
	return CheckName(prefix)
}

// Group returns the part of name up to and including the first slash, or "" if there is none.
func Group(name string) string { return name[:strings.IndexByte(name, '/')+1] }

// IsBackend reports whether only the backend may write the field.
func IsBackend(name string) bool { return strings.HasPrefix(name, "$") }

// IsHidden reports whether only the backend may see the field.
func IsHidden(name string) bool { return strings.HasPrefix(name, "$$") }

// Escape returns text as a part of a field's name. Bytes other than A-Z a-z 0-9 . _ : @ - become
// %XX.
func Escape(text string) string {
	const hex = "0123456789ABCDEF"
	var out []byte
	for i := range len(text) {
		c := text[i]
		switch {
		case isPlainByte(c):
			if out != nil {
				out = append(out, c)
			}
		default:
			if out == nil {
				out = append(make([]byte, 0, len(text)+16), text[:i]...)
			}
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	if out == nil {
		return text
	}
	return string(out)
}

package state

import (
	"encoding/json"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/payload"
)

// MaxAlias is the longest alias, in bytes.
const MaxAlias = 128

// IsAlias reports whether a text can be shown in place of a client id. A roster has the
// alias as the name of a hash field, and changes of a roster are lines. So an alias has no control
// characters, and no leading space, as the field " version" has. update_state.lua repeats the rule.
func IsAlias(text string) bool {
	if text == "" || len(text) > MaxAlias || text[0] == ' ' || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// aliasOf decodes the value of a field as an alias. It returns "" if the value is none.
func aliasOf(value []byte) string {
	s := payload.NewScanner(value)
	text, ok := s.Text()
	alias := string(text)
	if !ok || !s.End() { // no string, or one with escapes
		alias = ""
		if json.Unmarshal(value, &alias) != nil {
			return ""
		}
	}
	if !IsAlias(alias) {
		return ""
	}
	return alias
}

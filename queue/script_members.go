package queue

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
)

// The members of what [appendUpdate] packs for update_state.lua, in order. The scripts name them:
// u.writer stands for u[2]. A zero value is nil, and is left out at the end.
var scriptMembers = map[string][]string{
	// An update, a state.Update. keep is in ms; client_json and exclude_json are clients as JSON;
	// take is how many numbers the first operation takes from a counter; arg is ScriptCall.Arg.
	"u": {
		"ops", "writer", "keep", "max_fields", "max_bytes", "data", "conditions", "client", "generation", "server", "max_owned",
		"client_json", "take", "arg", "by_field", "from", "exclude_json",
	},
	// An operation, a state.Op. lease and grace are in ms; group begins with # if the value is
	// numbered.
	"op": {
		"field", "kind", "value", "lease", "claim", "group_max", "own", "grace", "parent", "held_parent", "by", "min", "max", "holder",
		"group",
	},
	// A condition, a state.Condition. id is the most fields with AtMost.
	"cond": {"field", "kind", "id"},
}

var scriptMember = regexp.MustCompile(`\b(u|op|cond)\.([a-z_]+)\b`)

// named is scripts in which members of updates, operations and conditions have names. Reading a
// script replaces the names by positions, which are faster: u.writer by u[2].
type named struct{ fs.FS }

// ReadFile implements fs.ReadFileFS. It panics if a name is unknown, which is a programming error.
func (n named) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(n.FS, name)
	return scriptMember.ReplaceAllFunc(text, func(match []byte) []byte {
		words := scriptMember.FindSubmatch(match)
		i := slices.Index(scriptMembers[string(words[1])], string(words[2]))
		if i < 0 {
			panic(fmt.Sprintf("%s: %s is not a member", name, match))
		}
		return fmt.Appendf(nil, "%s[%d]", words[1], i+1)
	}), err
}

package queue

import (
	"io/fs"
	"slices"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

// stateScriptPieces are the pieces of update_state.lua, in order.
var stateScriptPieces = []string{"append", "state_fields", "state_owners", "state_rare", "state_rules", "state_write"}

// StateScript is update_state.lua with a piece of another package, which changes its own keys and
// the state of a channel in one step. Everything else is as for other updates: batches, idempotency
// keys, durable pushes, limits, refusals.
//
// The piece is a file lua/<name>.lua with a header like the other pieces. It sets two variables:
//
//	own_keys = 1 -- how many keys it has, ScriptCall.Keys
//	function extend(u, k)
//		-- KEYS[k+1] is its first key, and u.arg is ScriptCall.Arg, or nil
//		return reply, write
//	end
//
// The script calls extend once for each update that has no known idempotency key, after the fields
// that are due have been removed, and before anything else is checked. extend must not write. It
// must read each key that write will change, so that a key of a wrong type is an error before the
// first write. An error of extend fails the push, and changes nothing.
//
// reply is Appended.Reply, a text without control characters. write is nil, or a function that
// changes the keys of the piece. It is called if the update is accepted, after the state was
// written, and should not fail.
//
// extend may change u, whose members are those of script_members.go. u.ops lists the operations of
// the Update: the piece may change op.value of a Set, or remove all operations by u.ops = {}.
// Without operations and data, no entry is appended, and the ID of the Appended is 0. The
// conditions of u are checked nevertheless. The names of members are only known after the names u,
// op and cond.
//
// The piece may use these variables of the other pieces, and must not change them:
//
//	call, format, max  redis.call, string.format, math.max
//	ms                 the clock, Unix ms, which does not go back
//	get(name)          a field of the state, or false: f.id, f.lease, f.holder, f.parent, …
//	value_of(f)        its JSON
//	c                  the change of the channel, see state_fields.lua
//	begin, commit      of one change; update_state.lua calls them
//
// testdata/lua/submit.lua is an example.
type StateScript struct{ script *redispipe.Script }

// NewStateScript returns a script with the piece lua/<name>.lua of files. It panics if the file is
// missing. Call it once for each piece: pushes share runs of the script by the StateScript.
func NewStateScript(files fs.FS, name string) *StateScript {
	script := redispipe.MustScript(named{onePiece{name, files}}, "update_state", append(slices.Clone(stateScriptPieces), name)...)
	script.Name = name
	return &StateScript{script}
}

// onePiece is the scripts of this package, and one piece of another one.
type onePiece struct {
	name  string
	files fs.FS
}

// Open implements fs.FS.
func (p onePiece) Open(name string) (fs.File, error) {
	if name == "lua/"+p.name+".lua" {
		return p.files.Open(name)
	}
	return luaFiles.Open(name)
}

// ScriptCall makes the update of a push by a StateScript. The update has no Counter.
type ScriptCall struct {
	Script *StateScript
	// Keys are the keys of the script, in the slot of the channel: they have the hash tag {channel}.
	Keys []string
	// Arg is u.arg of the script.
	Arg string
	// Memory does the same as the script if the store is a [Memory]. It may change u. The store
	// calls it, and write, one call at a time. now is the clock, Unix ms.
	Memory func(u *state.Update, now int64) (reply string, write func())
}

// arg returns Arg, "" without a call.
func (s *ScriptCall) arg() string {
	if s == nil {
		return ""
	}
	return s.Arg
}

// extend calls Memory with a copy of an update.
func (s *ScriptCall) extend(u *state.Update, now int64) (changed *state.Update, reply string, write func()) {
	changed = new(*u)
	changed.Ops = slices.Clone(u.Ops)
	if reply, write = s.Memory(changed, now); write == nil {
		write = func() {}
	}
	return changed, reply, write
}

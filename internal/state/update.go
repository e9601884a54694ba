package state

import (
	"time"

	"switchboard/internal/wire"
)

// Update is a change of a channel's state.
type Update struct {
	Ops []Op        // each field appears once
	If  []Condition // each field appears once

	// Counter names a field that counts, or is "". The update then first adds Take to it, like Add
	// without bounds. It takes the numbers up to the result, which Result.Numbers has. The text {n} in
	// the fields and parents of Ops becomes the lowest of them, and {n2}, {n3}, … the following ones.
	// The names must be valid with the numbers, and the counter must not be among Ops.
	Counter string
	Take    int // how many numbers, at most MaxTake. Zero means 1

	// Data is the data of the message, compact JSON. It may be nil.
	Data []byte

	// Writer is the writer as holder of fields: [UserHolder], [ClientHolder], or [BackendHolder].
	Writer string
	// Client is the id of the client that writes, or "" for the backend. Generation is that of its
	// binding, and Server the server that holds its connection.
	Client     string
	Generation int64
	Server     string
	// ByField names a field whose value, a JSON string that IsAlias accepts, is shown as the author in
	// place of Client. The value is that after the update. Without such a field, no author is shown.
	// Zero means Client.
	ByField string
	// Exclude is the id of the client that does not receive Data, or "".
	Exclude string

	// From is the time from which the leases of Ops count, Unix ms on the store's clock, such as the
	// clock of the read on which the update was planned. So they end when the plan says, however late
	// the update arrives. Zero means the time of the update.
	From int64

	Limits
}

// Size returns the bytes of the data, names and values of the update.
func (u *Update) Size() int {
	n := len(u.Data)
	for i := range u.Ops {
		n += len(u.Ops[i].Field) + len(u.Ops[i].Value)
	}
	return n
}

// Limits bounds the state of a channel. Zero means no limit.
type Limits struct {
	Fields int           // most fields
	Bytes  int           // most bytes of names and values
	Owned  int           // most fields that one client owns
	Keep   time.Duration // the state ends this long after its last update. Zero means never
}

// Kind is what an Op does.
type Kind uint8

// The kinds of operations.
const (
	Set    Kind = iota + 1 // sets a value
	Delete                 // removes the field; nothing happens if it is absent
	Add                    // adds to a number; an absent field counts as 0
	Touch                  // changes the lease of a live field, and keeps its id
)

// Ownership is what an Op does to the owners of its field.
type Ownership uint8

// The values of Op.Own.
const (
	KeepOwners Ownership = iota
	// Own makes Update.Client an owner of the field.
	Own
	// Disown ends the ownership of Update.Client. For the backend it ends that of all owners.
	Disown
)

// GraceNever is the Op.Grace of a field that stays, marked as away, after its owners have left.
const GraceNever time.Duration = -1

// Op is one operation on one field.
type Op struct {
	Field string
	Kind  Kind
	Value []byte // of Set: compact JSON
	// Numbered replaces {n}, {n2}, … in Value, too, see Update.Counter. Do not use it for values with
	// texts of users, which may contain {n}.
	Numbered bool

	By, Min, Max int64 // of Add: the result must be within Min and Max, see [MaxNumber]

	// TTL is the time until the lease ends, see Update.From. Zero means that there is no lease. Add
	// uses it only if it creates the field. Delete ignores it.
	TTL time.Duration
	// Own says whether Update.Client becomes or stops being an owner. Delete ignores it.
	Own Ownership
	// Grace is how long the field stays after its last owner has left, with Own.
	Grace time.Duration
	// Holder is the holder of this operation. Zero means Update.Writer.
	Holder string
	// Claim refuses the operation if the field is live and has another holder.
	Claim bool
	// Parent makes the field a part of another one, which must be live after the update and have no
	// parent itself. If Parent is empty, a live field keeps its parent.
	Parent string
	// HeldParent refuses the operation unless its holder holds the parent after the update. Delete
	// checks the parent that a live field has, or else Parent, and allows to delete an absent field.
	HeldParent bool
	// Group is a prefix of Field that ends with a slash, and replaces the field's group for GroupMax.
	// Zero means the group. Operations that create fields with the same Group have the same GroupMax.
	Group string
	// GroupMax is the most fields of the field's group. Zero means no limit. The field $max/<group>
	// can lower it.
	GroupMax int
}

// MaxNumber bounds the numbers that Add computes: they are exact in JSON.
const MaxNumber = 1<<53 - 1

// ConditionKind is what a Condition requires.
type ConditionKind uint8

// The kinds of conditions.
const (
	IsID     ConditionKind = iota // the field is live and has the id
	IsAbsent                      // the field is not live
	Exists                        // the field is live
	AtMost                        // the group Field has at most Max live fields, see Condition.Max
)

// Condition is a requirement on one field, or on a group.
type Condition struct {
	Field string // a name that ends with a slash is a group, with AtMost
	Kind  ConditionKind
	ID    int64 // with IsID
	// Max is the most fields of the group before the operations, with AtMost. So an update can lower a
	// limit only if the group fits it: Op.GroupMax is checked if the update adds to the group. The
	// refusal has the code Full, and shows no fields.
	Max int
}

// Holders of fields. The prefix keeps users and clients apart.
const BackendHolder = "b"

// UserHolder returns the holder of the fields that a user writes.
func UserHolder(user string) string { return "u:" + user }

// ClientHolder returns the holder of the fields that a client without a user writes.
func ClientHolder(client string) string { return "c:" + client }

// Refusal is the error of an update that was refused. It shows the current values.
type Refusal struct {
	Err *wire.Error // Conflict, Full, OutOfRange, NotFound, Forbidden, TooLarge or BadRequest
	// Field is the field of the refused operation, or "".
	Field string
	// Fields holds current values: of a conflict the fields that differ, of Full the first fields of
	// the group, and otherwise the field of the operation. An absent field is nil.
	Fields map[string]*Field
	// Group and Max are the limit that is reached, with Full. Group is "" for the limit of the channel
	// or of one client.
	Group string
	Max   int
}

// Error implements error.
func (r *Refusal) Error() string { return r.Err.Error() }

// Size returns the bytes of the names and values in Fields.
func (r *Refusal) Size() (n int) {
	for name, f := range r.Fields {
		if n += len(name); f != nil {
			n += len(f.Value)
		}
	}
	return n
}

// Unwrap returns the error without the current values.
func (r *Refusal) Unwrap() error { return r.Err }

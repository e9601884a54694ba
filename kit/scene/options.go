package scene

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/leader"
	"switchboard/internal/setting"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// Options configures avatars and scenes.
type Options struct {
	// Avatars and Scenes are the lists of avatars and scenes. Brokers with the same store have the
	// same lists.
	Avatars, Scenes index.Index
	// Capacity is the most avatars in a scene, online or offline. Zero means 200.
	Capacity int `setting:"capacity" default:"200"`
	// PerUser is how many avatars that a client has created for its user may exist at once, and how
	// many deleted ones of a user are kept. Backends create as many as they like. Zero means 32.
	PerUser int `setting:"per_user" default:"32"`
	// Read are the clients that may follow scenes. Nil means namespace.Users.
	Read *namespace.Access `setting:"read"`
	// Publish are the clients that may send messages to scenes, such as a chat. Zero means no clients.
	Publish namespace.Access `setting:"publish"`
	// Presence are the clients that may see who follows a scene. Zero means no clients.
	Presence namespace.Access `setting:"presence"`
	// DeletedLife is how long a deleted avatar can be restored. Then it ends. Zero means 30 days.
	DeletedLife time.Duration `setting:"deleted_life" default:"720h"`
	// Fields are the names X of the fields a/{avatar}/X that a player may write. Zero means all names,
	// and at most MaxOwnFields for each avatar.
	Fields []string `setting:"fields" value:"NAME" default:"*"`
	// FieldBytes is the most bytes of such a field. Zero means 1024.
	FieldBytes int `setting:"field_bytes" value:"BYTES" default:"1024"`
	// Budget counts the avatars of users. Zero means a count in this process.
	Budget budget.Store
	// Lease is how long a transfer may take before its place in the new scene is lost, and a change
	// of a scene's name before the name is lost. Zero means 10 s.
	Lease time.Duration `setting:"-"`
	// Delay is when the round looks at an avatar or a scene after a change. Zero means 10 s.
	Delay time.Duration `setting:"-"`
	// Every is the interval of the round. Zero means 2 s.
	Every time.Duration `setting:"-"`
	// Rounds makes one broker make the rounds of all. Nil means that each makes its own.
	Rounds *leader.Lease
}

// The bounds of avatars and scenes.
const (
	MaxID   = 48      // bytes of the id of an avatar or a scene, and of the name of a world
	MaxName = 100     // bytes of a name, and of a scene's time
	MaxData = 8 << 10 // bytes of data
	// MaxOwnFields is the most fields a/{avatar}/* of an avatar.
	MaxOwnFields = 16
)

func (o Options) withDefaults() (Options, error) {
	if o.Avatars == nil || o.Scenes == nil {
		return o, errors.New("scene: the lists Avatars and Scenes must be set")
	}
	setting.Fill(&o)
	if o.Read == nil {
		o.Read = new(namespace.Users)
	}
	if o.Budget == nil {
		o.Budget = budget.NewMemory()
	}
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Delay = cmp.Or(o.Delay, 10*time.Second)
	o.Every = cmp.Or(o.Every, 2*time.Second)
	switch {
	case o.FieldBytes < 0:
		return o, fmt.Errorf("scene: fields of %d bytes are not possible", o.FieldBytes)
	case o.Capacity < 1 || o.Capacity > 10_000:
		return o, fmt.Errorf("scene: the capacity %d is not within 1 and 10000", o.Capacity)
	case o.PerUser < 1 || o.PerUser > 1000:
		return o, fmt.Errorf("scene: %d avatars per user are not within 1 and 1000", o.PerUser)
	case o.DeletedLife < time.Second:
		return o, fmt.Errorf("scene: deleted_life: %v is shorter than 1s", o.DeletedLife)
	case o.Lease < time.Millisecond || o.Lease > time.Minute:
		return o, fmt.Errorf("scene: the lease %v is not within 1ms and 1m", o.Lease)
	case o.Delay < time.Millisecond || o.Delay > taskLease/2:
		return o, fmt.Errorf("scene: the delay %v is not within 1ms and %v", o.Delay, taskLease/2)
	case o.Every < time.Millisecond:
		return o, fmt.Errorf("scene: %v is not an interval", o.Every)
	}
	return o, nil
}

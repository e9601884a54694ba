package hold

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/leader"
	"switchboard/internal/setting"
	"switchboard/kit/index"
)

// Options configures holds.
type Options struct {
	// HoldTime is how long a hold lasts unless the resource or the call says otherwise. Zero means 15
	// minutes.
	HoldTime time.Duration `setting:"hold_time" default:"15m"`
	// MaxLife is how long a hold lasts at most, however often it is renewed, unless the resource says
	// otherwise. Zero means an hour.
	MaxLife time.Duration `setting:"max_life"`
	// PerUser is how many holds a user may have at a time in one resource, unless the resource says
	// otherwise. Zero means 1.
	PerUser int `setting:"per_user" default:"1"`
	// Remember is how long a hold that has ended is known by its id. Zero means a day.
	Remember time.Duration `setting:"remember" default:"24h"`
	// Remembered is how many holds that have ended are known of one user and resource. The oldest are
	// forgotten first. Zero means 32.
	Remembered int `setting:"remembered" default:"32"`
	// Read are the clients that may read and follow the seats of a resource. They see which seats are
	// held or sold, not by whom. Nil means namespace.Anyone.
	Read *namespace.Access `setting:"read"`
	// Methods are the methods that clients may call, see [Methods]. Nil means DefaultMethods.
	Methods []string `setting:"methods" value:"METHOD"`
	// Index keeps the list of resources. Zero means an index in this process.
	Index index.Index
	// Rounds makes one broker make the rounds of all. Nil means that each makes its own.
	Rounds *leader.Lease
}

// Methods are all methods of clients. A client holds, and sees, under the user of its connection.
var Methods = []string{"hold.hold", "hold.renew", "hold.release", "hold.get", "hold.mine", "hold.resources", "hold.confirm", "hold.sell"}

// DefaultMethods are all methods but hold.confirm and hold.sell, which are for backends: a client
// that may confirm needs no payment.
var DefaultMethods = Methods[:6]

// The bounds of resources and calls.
const (
	MaxCapacity  = 10_000
	MaxSeats     = 64 // places of one hold
	MaxID        = 48 // bytes of an id
	MaxSeatName  = 64 // bytes of the name of a seat
	MaxResources = 100
	maxAnswer    = 256 << 10 // bytes of the resources that a client gets at once
	MaxImport    = 1000      // holds and sales of one PUT
	MaxHoldTime  = 30 * 24 * time.Hour
	maxData      = 4 << 10                    // bytes of Resource.Data
	maxEnds      = 100 * 365 * 24 * time.Hour // until Resource.Ends; a time.Duration has 292 years
	maxResource  = 160                        // bytes of a resource's name
)

// withDefaults returns the options with all values set, or an error that names the wrong one.
func (o Options) withDefaults() (Options, error) {
	if o.Read == nil {
		o.Read = new(namespace.Anyone)
	}
	setting.Fill(&o)
	o.MaxLife = cmp.Or(o.MaxLife, max(time.Hour, o.HoldTime))
	if o.Index == nil {
		o.Index = index.NewMemory()
	}
	if o.Methods == nil {
		o.Methods = DefaultMethods
	}
	for _, m := range o.Methods {
		if !slices.Contains(Methods, m) {
			return o, fmt.Errorf("hold: unknown method %q, want one of %v", m, Methods)
		}
	}
	switch {
	case o.HoldTime < time.Millisecond || o.HoldTime > MaxHoldTime:
		return o, fmt.Errorf("hold: the hold time %v is not within 1ms and %v", o.HoldTime, MaxHoldTime)
	case o.MaxLife < o.HoldTime || o.MaxLife > MaxHoldTime:
		return o, fmt.Errorf("hold: the longest life %v is not within %v and %v", o.MaxLife, o.HoldTime, MaxHoldTime)
	case o.PerUser < 0 || o.PerUser > MaxCapacity:
		return o, fmt.Errorf("hold: %d holds per user are not within 1 and %d", o.PerUser, MaxCapacity)
	case o.Remember < time.Second || o.Remember > MaxHoldTime:
		return o, fmt.Errorf("hold: %v is not a time to remember holds, it must be within 1s and %v", o.Remember, MaxHoldTime)
	case o.Remembered < 1 || o.Remembered > 1000:
		return o, fmt.Errorf("hold: %d remembered holds are not within 1 and 1000", o.Remembered)
	}
	return o, nil
}

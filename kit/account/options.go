package account

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/auth"
	"switchboard/internal/leader"
	"switchboard/internal/setting"
	"switchboard/kit/index"
)

// Options configures accounts. Only SigningKey is required.
type Options struct {
	// SigningKey signs the tokens for the broker (HS256). It has at least 32 bytes and is one of
	// the secrets with which the broker verifies tokens.
	SigningKey []byte `setting:"-"`
	// Issuer and Audience are the iss and aud of the tokens. Zero means none.
	Issuer   string `setting:"issuer"`
	Audience string `setting:"audience"`
	// TokenLife is how long a token is valid. A client of a locked account may connect until its
	// token ends. Zero means 5 minutes.
	TokenLife time.Duration `setting:"token_life" default:"5m"`
	// RenewalLife is how long a renewal token is valid. Each renewal begins a new life. Zero
	// means 30 days.
	RenewalLife time.Duration `setting:"renewal_life" default:"720h"`
	// GuestLife is how long a guest stays after its last change, login or renewal, at least
	// RenewalLife. Zero means 30 days, or RenewalLife if that is longer.
	GuestLife time.Duration `setting:"guest_life"`
	// AccountLife is the same for accounts with a name. Zero means that they do not end.
	AccountLife time.Duration `setting:"account_life"`
	// DeletedLife is how long a deleted account can be restored, and keeps its name. Then it ends,
	// and the extensions forget its user. It is at least TokenLife. Zero means 30 days.
	DeletedLife time.Duration `setting:"deleted_life" default:"720h"`
	// Logins is the most logins of one account that can be renewed, at most 64. A further login
	// ends the oldest one. Zero means 16.
	Logins int `setting:"logins" default:"16"`
	// Guests permits accounts without a name and a password.
	Guests bool `setting:"guests"`
	// MinPassword is the fewest bytes of a new password. Zero means 8.
	MinPassword int `setting:"min_password" value:"BYTES" default:"8"`
	// Iterations is the number of iterations of PBKDF2 in new passwords, from 4,096 (RFC 7677) to
	// 10,000,000. Zero means 100,000.
	Iterations int `setting:"iterations" default:"100000"`
	// FormerIterations is the value of Iterations in older passwords. Without it, a challenge with
	// the former number shows that a name has an account. Zero means that there are none.
	FormerIterations int `setting:"former_iterations"`
	// NameRate is the most attempts to log in to one name per minute, on each broker, and the most
	// changes of one nickname. Zero means 10.
	NameRate int `setting:"name_rate" default:"10"`
	// AddressRate is the most attempts to log in or to take a name from one address per minute,
	// on each broker. An IPv6 /64 is one address. Zero means 60.
	AddressRate int `setting:"address_rate" default:"60"`
	// RegisterRate is the most registrations from one address per hour, on each broker. Zero
	// means 60.
	RegisterRate int `setting:"register_rate" default:"60"`
	// CallRate is the most renewals, logouts and calls with a token from one address per minute,
	// on each broker. Zero means 1200.
	CallRate int `setting:"call_rate" default:"1200"`
	// Durable makes each change wait until a replica has it. A store in memory refuses such
	// changes.
	Durable bool `setting:"durable"`
	// Store keeps the accounts. Zero means the broker's store.
	Store Store
	// Index keeps the list of accounts. Zero means an index in this process.
	Index index.Index
	// Rounds makes one broker make the rounds of all. Nil means that each makes its own.
	Rounds *leader.Lease
}

// The bounds of an account.
const (
	MaxName      = 254 // bytes of a normalized name, as long as an e-mail address (RFC 5321)
	MaxNickname  = 64  // bytes
	MaxPassword  = 256 // bytes
	MaxLogins    = 64  // the most Options.Logins
	HistorySize  = 100 // events that an account remembers
	minIteration = 4096
	maxIteration = 10_000_000
)

// withDefaults returns the options with all values set, or an error that names the wrong one.
func (o Options) withDefaults() (Options, error) {
	setting.Fill(&o)
	o.GuestLife = cmp.Or(o.GuestLife, max(30*24*time.Hour, o.RenewalLife))
	if o.Index == nil {
		o.Index = index.NewMemory()
	}
	switch {
	case len(o.SigningKey) < auth.MinSecret:
		return o, fmt.Errorf("accounts: signing_key: it has %d bytes, at least %d are required", len(o.SigningKey), auth.MinSecret)
	case o.TokenLife < time.Second || o.TokenLife > 24*time.Hour:
		return o, fmt.Errorf("accounts: token_life: %v is not within 1s and 24h", o.TokenLife)
	case o.RenewalLife < time.Second:
		return o, fmt.Errorf("accounts: renewal_life: %v is shorter than 1s", o.RenewalLife)
	case o.GuestLife < o.RenewalLife:
		return o, fmt.Errorf("accounts: guest_life: %v is shorter than renewal_life, %v", o.GuestLife, o.RenewalLife)
	case o.AccountLife != 0 && o.AccountLife < o.RenewalLife:
		return o, fmt.Errorf("accounts: account_life: %v is shorter than renewal_life, %v", o.AccountLife, o.RenewalLife)
	case o.DeletedLife < o.TokenLife:
		return o, fmt.Errorf("accounts: deleted_life: %v is shorter than token_life, %v", o.DeletedLife, o.TokenLife)
	case o.Logins < 1 || o.Logins > MaxLogins:
		return o, fmt.Errorf("accounts: logins: %d is not within 1 and %d", o.Logins, MaxLogins)
	case o.Iterations < minIteration || o.Iterations > maxIteration:
		return o, fmt.Errorf("accounts: iterations: %d is not within %d and %d", o.Iterations, minIteration, maxIteration)
	case o.FormerIterations != 0 && (o.FormerIterations < minIteration || o.FormerIterations > maxIteration):
		return o, fmt.Errorf("accounts: former_iterations: %d is not within %d and %d", o.FormerIterations, minIteration, maxIteration)
	case o.MinPassword < 1 || o.MinPassword > MaxPassword:
		return o, fmt.Errorf("accounts: min_password: %d is not within 1 and %d", o.MinPassword, MaxPassword)
	case o.NameRate < 0 || o.AddressRate < 0 || o.RegisterRate < 0 || o.CallRate < 0:
		return o, errors.New("accounts: a rate is below zero")
	}
	return o, nil
}

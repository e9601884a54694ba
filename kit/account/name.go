package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"golang.org/x/text/secure/precis"

	"switchboard/internal/wire"
)

// The prefixes of the channels.
const (
	accountPrefix = "account:"
	namePrefix    = "account-name:"
)

// name is a normalized name, or the zero value for none.
type name struct {
	text   string
	digest string // SHA-256, hex
}

// parseName normalizes a name by the profile UsernameCaseMapped of PRECIS (RFC 8265 §3.3): width
// and case of letters do not distinguish two names. E-mail addresses are names.
func parseName(text string) (name, error) {
	if len(text) > 4*MaxName {
		return name{}, wire.Errorf(wire.BadRequest, "name: it is longer than %d bytes", MaxName)
	}
	normalized, err := precis.UsernameCaseMapped.String(text)
	switch {
	case err != nil || normalized == "":
		return name{}, wire.Errorf(wire.BadRequest, "name: it is empty, or has a character that names cannot have (RFC 8265)")
	case len(normalized) > MaxName:
		return name{}, wire.Errorf(wire.BadRequest, "name: it is longer than %d bytes", MaxName)
	}
	sum := sha256.Sum256([]byte(normalized))
	return name{normalized, hex.EncodeToString(sum[:])}, nil
}

// named returns the name that a record has. It is normalized already.
func named(text string) name {
	if text == "" {
		return name{}
	}
	sum := sha256.Sum256([]byte(text))
	return name{text, hex.EncodeToString(sum[:])}
}

// newID returns the id of a new account: 130 random bits. A counter could give an id twice after a
// failover of the store.
func newID() string { return strings.ToLower(rand.Text()) }

// checkID returns an error if id cannot be the id of an account.
func checkID(id string) error {
	if err := wire.CheckName("account", id); err != nil {
		return err
	}
	if len(id) > len(newID()) {
		return notFound(id)
	}
	return nil
}

func notFound(id string) error { return wire.Errorf(wire.NotFound, "there is no account %.40s", id) }

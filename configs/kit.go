package configs

import (
	"errors"
	"fmt"

	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// Kit are the systems that stand on the broker, see docs/kit.md. A nil one is off. The packages
// check the values. In the help, {} stands for the settings of the section.
type Kit struct {
	Rooms    *room.Options           `setting:"kit.rooms" unset:"default off; a key without a value means the defaults" help:"rooms: {}"`
	Holds    *hold.Options           `setting:"kit.holds" unset:"default off; a key without a value means the defaults" help:"seats and units: {}"`
	Boards   *board.Options          `setting:"kit.boards" unset:"default off; a key without a value means the defaults" help:"leaderboards: {}"`
	Accounts *Accounts               `setting:"kit.accounts" unset:"default off; a key without a value means the defaults" help:"accounts: {}. The key is by default the first secret of auth.hs256_secret"`
	Sessions *account.SessionOptions `setting:"kit.sessions" unset:"default off; a key without a value means the defaults" help:"a document for each user: {}"`
	Scenes   *scene.Options          `setting:"kit.scenes" unset:"default off; a key without a value means the defaults" help:"avatars and scenes: {}"`
}

// Accounts are the settings of accounts.
type Accounts struct {
	SigningKey     Secret `setting:"signing_key" value:"SECRET"`
	SigningKeyFile string `setting:"signing_key_file" value:"PATH"`
	// Redis is the URL of a Redis for accounts alone. Zero means the broker's store.
	Redis Secret `setting:"redis" value:"URL"`
	account.Options
}

func (k Kit) validate() error {
	if k.Accounts != nil && k.Accounts.SigningKey != "" && k.Accounts.SigningKeyFile != "" {
		return errors.New("kit.accounts.signing_key and kit.accounts.signing_key_file: both are given, keep one")
	}
	return nil
}

// AccountOptions returns the options of accounts, without the store. It reads the file of the key.
// Without a key of its own, the key is a secret with which the broker verifies tokens, or empty if
// there is none.
func (b Broker) AccountOptions() (account.Options, error) {
	a := b.Kit.Accounts
	o := a.Options
	key, err := string(a.SigningKey), error(nil)
	switch {
	case a.SigningKeyFile != "":
		key, err = readOneSecret("kit.accounts.signing_key_file", a.SigningKeyFile, checkTokenSecret)
	case key != "":
		if err = checkTokenSecret(key); err != nil {
			err = fmt.Errorf("kit.accounts.signing_key: %w", err)
		}
	default:
		var secrets []string
		if secrets, err = b.Auth.tokenSecrets(); len(secrets) > 0 {
			key = secrets[0]
		}
	}
	o.SigningKey = []byte(key)
	return o, err
}

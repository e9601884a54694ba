package configs

import (
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// Kit are the systems that stand on the broker, see docs/kit.md. A nil one is off. The packages
// check the values. In the help, {} stands for the settings of the section.
type Kit struct {
	Rooms    *room.Options           `setting:"rooms" help:"rooms: {}"`
	Holds    *hold.Options           `setting:"holds" help:"seats and units: {}"`
	Boards   *board.Options          `setting:"boards" help:"leaderboards: {}"`
	Accounts *Accounts               `setting:"accounts" help:"accounts: {}. The key is by default the first secret of auth.hs256_secret"`
	Sessions *account.SessionOptions `setting:"sessions" help:"a document for each user: {}"`
	Scenes   *scene.Options          `setting:"scenes" help:"avatars and scenes: {}"`
}

// Accounts are the settings of accounts.
type Accounts struct {
	SigningKey     Secret `setting:"signing_key" value:"SECRET"`
	SigningKeyFile string `setting:"signing_key_file" value:"PATH"`
	// Redis is the URL of a Redis for accounts alone. Zero means the broker's store.
	Redis Secret `setting:"redis" value:"URL"`
	account.Options
}

var kitGroup = group{"The kit (docs/kit.md)", kitSections()}

// kitSections returns the settings of all systems.
func kitSections() (list []spec) {
	for field := range reflect.TypeFor[Kit]().Fields() {
		key, options := "kit."+field.Tag.Get("setting"), field.Type.Elem()
		list = append(list, spec{
			key: key, text: sectionText(field.Tag.Get("help"), options), unset: "default off; a key without a value means the defaults", bare: true,
			readSection: func(node *yaml.Node) (any, error) {
				v := reflect.New(options)
				return v.Interface(), readInto(node, key, v.Elem())
			},
		})
	}
	return list
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

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
// check the values.
type Kit struct {
	Rooms    *room.Options           `setting:"rooms"`
	Holds    *hold.Options           `setting:"holds"`
	Boards   *board.Options          `setting:"boards"`
	Accounts *Accounts               `setting:"accounts"`
	Sessions *account.SessionOptions `setting:"sessions"`
	Scenes   *scene.Options          `setting:"scenes"`
}

// Accounts are the settings of accounts.
type Accounts struct {
	account.Options
	SigningKey     Secret `setting:"signing_key"`
	SigningKeyFile string `setting:"signing_key_file"`
	// Redis is the URL of a Redis for accounts alone. Zero means the broker's store.
	Redis Secret `setting:"redis"`
}

var kitGroup = group{"The kit (docs/kit.md)", []spec{
	kitSection[room.Options]("kit.rooms", "rooms: {modes: {NAME: {capacity: N, grace: DURATION, reserve: DURATION,\nempty_life: DURATION, finished_life: DURATION, finished_empty_life: DURATION,\nhistory_age: DURATION, members_only: true, fields: as in a namespace}}, per_user: N}"),
	kitSection[hold.Options]("kit.holds", "seats and units: {hold_time: DURATION, max_life: DURATION, per_user: N,\nremember: DURATION, remembered: N, read: WHO, methods: [METHOD, ...]}"),
	kitSection[board.Options]("kit.boards", "leaderboards: {boards: {NAME or PREFIX*: {order: desc or asc, mode: best or set or add,\nentries: N, season: CRON, keep: N, read: WHO, submit: true, life: DURATION}},\noperation_ttl: DURATION, per_user: N}"),
	kitSection[Accounts]("kit.accounts", "accounts: {signing_key: SECRET, signing_key_file: PATH, redis: URL, issuer: TEXT,\naudience: TEXT, token_life: DURATION, renewal_life: DURATION, guest_life: DURATION,\naccount_life: DURATION, deleted_life: DURATION, logins: N, guests: true,\nmin_password: BYTES, iterations: N, former_iterations: N, name_rate: N,\naddress_rate: N, register_rate: N, call_rate: N,\ndurable: true}. The key is by default the first secret of auth.hs256_secret"),
	kitSection[account.SessionOptions]("kit.sessions", "a document for each user: {ttl: DURATION, durable: true}"),
	kitSection[scene.Options]("kit.scenes", "avatars and scenes: {capacity: N, per_user: N, read: WHO, publish: WHO, presence: WHO,\ndeleted_life: DURATION, fields: [NAME, ...], field_bytes: BYTES}"),
}}

// kitSection returns the setting of a system, whose options are a T.
func kitSection[T any](key, text string) spec {
	return spec{key: key, text: text, unset: "default off; a key without a value means the defaults", bare: true,
		readSection: sectionReader(func(node *yaml.Node) (*T, error) {
			options := new(T)
			return options, readInto(node, key, reflect.ValueOf(options).Elem())
		})}
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

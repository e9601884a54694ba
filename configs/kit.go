package configs

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/room"
)

// Kit are the systems that stand on the broker, see docs/kit.md. A nil one is off. The packages
// check the values.
type Kit struct {
	Rooms  *room.Options  `setting:"rooms"`
	Holds  *hold.Options  `setting:"holds"`
	Boards *board.Options `setting:"boards"`
}

var kitGroup = group{"The kit (docs/kit.md)", []spec{
	kitSection[room.Options]("kit.rooms", "rooms: {modes: {NAME: {capacity: N, grace: DURATION, reserve: DURATION,\nempty_life: DURATION, finished_life: DURATION, history_age: DURATION,\nmembers_only: true, fields: as in a namespace}}}"),
	kitSection[hold.Options]("kit.holds", "seats and units: {hold_time: DURATION, max_life: DURATION, per_user: N,\nremember: DURATION, remembered: N, read: WHO, methods: [METHOD, ...]}"),
	kitSection[board.Options]("kit.boards", "leaderboards: {boards: {NAME or PREFIX*: {order: desc or asc, mode: best or set or add,\nentries: N, season: CRON, keep: N, read: WHO, submit: true}},\noperation_ttl: DURATION}"),
}}

// kitSection returns the setting of a system, whose options are a T.
func kitSection[T any](key, text string) spec {
	return spec{key: key, text: text, unset: "default off; a key without a value means the defaults", bare: true,
		readSection: sectionReader(func(node *yaml.Node) (*T, error) {
			options := new(T)
			return options, readInto(node, key, reflect.ValueOf(options).Elem())
		})}
}

package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

const (
	getCall    = http.MethodGet
	postCall   = http.MethodPost
	putCall    = http.MethodPut
	patchCall  = http.MethodPatch
	deleteCall = http.MethodDelete
)

var (
	versionFlag = kitFlag{"version", version, "refuse another `version`"}
	durableFlag = kitFlag{"durable", boolean, "wait until a replica of Redis has it"}
	dataFlag    = kitFlag{"data", object, "`JSON` of your own"}
	pageFlags   = []kitFlag{{"limit", whole, "the most rows, 1 to 1000"}, {"cursor", text, "of the page before"}}
)

func with(page []kitFlag, more ...kitFlag) []kitFlag { return append(more, page...) }

func (a *app) roomCommand() *cobra.Command {
	document := []kitFlag{
		{"name", text, "the name"}, {"region", text, "the region"}, {"app-version", text, "the version of your application"}, dataFlag,
	}
	return a.kit("room", "Lists, creates and changes rooms", "rooms.md",
		kitCommand{
			use: "list", short: "Lists rooms", method: getCall, path: "/v1/rooms",
			flags: with(pageFlags, kitFlag{"mode", text, "only this mode"}, kitFlag{"status", text, "waiting, playing or finished"},
				kitFlag{"region", text, "only this region"}, kitFlag{"owner", text, "only rooms of this `user`"},
				kitFlag{"visibility", text, "public or private"}, kitFlag{"free", whole, "least number of free places"},
				kitFlag{"order", text, "created, started, ended or activity"}, kitFlag{"desc", boolean, "the latest first"},
				kitFlag{"from", instants, "least `time` of the order"}, kitFlag{"to", instants, "greatest `time` of the order"}),
			list: "rooms", columns: []string{"id", "room.name", "room.mode", "room.status", "members", "reserved", "room.capacity", "room.created"},
		},
		kitCommand{
			use: "get ROOM", short: "Shows a room with its members", method: getCall, path: "/v1/rooms/{}",
			list: "members", columns: []string{"n", "user", "nickname", "joined", "reserved", "away", "until"},
		},
		kitCommand{
			use: "create MODE", short: "Creates a room", method: postCall, path: "/v1/rooms", args: []string{"mode"},
			flags: with(document, kitFlag{"id", text, "the id; without it the broker makes one"}, kitFlag{"key", text, "a repeated call with the same `key` returns the same room"},
				kitFlag{"visibility", text, "public or private"}, kitFlag{"capacity", whole, "the most members"}, kitFlag{"owner", text, "the `user` that owns it"}),
			list: "members", columns: []string{"n", "user", "nickname"},
		},
		kitCommand{
			use: "patch ROOM", short: "Changes a room", method: patchCall, path: "/v1/rooms/{}",
			flags: with(document, versionFlag, kitFlag{"locked", boolean, "no new members"}, kitFlag{"owner", whole, "the number of the new owner"}),
			list:  "members", columns: []string{"n", "user", "nickname"},
		},
		kitCommand{use: "delete ROOM", short: "Ends a room", method: deleteCall, path: "/v1/rooms/{}", flags: []kitFlag{versionFlag}},
		kitCommand{
			use: "reserve ROOM USER...", short: "Reserves places for all of the users, or for none", method: postCall, path: "/v1/rooms/{}/reserve",
			args: []string{"users..."}, flags: []kitFlag{{"ttl", millis, "how long the places wait"}},
		},
		kitCommand{
			use: "join ROOM USER", short: "Lets a user join, or reserves a place", method: postCall, path: "/v1/rooms/{}/join", args: []string{"user"},
			flags: []kitFlag{{"client", text, "the connected client; without it a place is reserved"}, {"nickname", text, "the nickname"}, {"ttl", millis, "how long a place waits"}},
		},
		kitCommand{
			use: "quick MODE USER", short: "Lets a user join an open room of a mode, or a new one", method: postCall, path: "/v1/rooms/quick", args: []string{"mode", "user"},
			flags: []kitFlag{
				{"client", text, "the connected client; without it a place is reserved"}, {"region", text, "only this region"},
				{"nickname", text, "the nickname"}, {"ttl", millis, "how long a place waits"},
			},
		},
		kitCommand{use: "leave ROOM USER", short: "Ends the membership of a user", method: postCall, path: "/v1/rooms/{}/leave", args: []string{"user"}},
		kitCommand{
			use: "kick ROOM N", short: "Removes player N", method: postCall, path: "/v1/rooms/{}/kick", args: []string{"n"},
			flags: []kitFlag{{"ttl", millis, "how long the user may not join again; a minute without the flag"}},
		},
		kitCommand{use: "lock ROOM", short: "Refuses new members", method: postCall, path: "/v1/rooms/{}/lock", body: map[string]any{"locked": true}},
		kitCommand{use: "unlock ROOM", short: "Accepts new members again", method: postCall, path: "/v1/rooms/{}/lock", body: map[string]any{"locked": false}},
		kitCommand{use: "start ROOM", short: "Starts the game", method: postCall, path: "/v1/rooms/{}/start"},
		kitCommand{use: "finish ROOM", short: "Ends the game", method: postCall, path: "/v1/rooms/{}/finish"},
		kitCommand{
			use: "of USER", short: "Lists the rooms that a user is in", method: getCall, path: "/v1/users/{}/rooms", flags: pageFlags,
			list: "rooms", columns: []string{"id", "room.name", "room.status", "n", "reserved", "away"},
		},
	)
}

func (a *app) holdCommand() *cobra.Command {
	places := []kitFlag{{"id", text, "the id of the hold, such as that of your order"}, {"user", text, "the user"}, {"count", whole, "a number of units, instead of seats"}, durableFlag}
	resource := "/v1/holds/{}"
	one := resource + "/holds/{}"
	holds := []string{"id", "user", "state", "seats", "created", "until"}
	return a.kit("hold", "Holds and sells seats and units", "holds.md",
		kitCommand{
			use: "list", short: "Lists the resources", method: getCall, path: "/v1/holds", flags: pageFlags,
			list: "resources", columns: []string{"resource", "capacity", "free", "held", "sold", "ends"},
		},
		kitCommand{use: "show RESOURCE", short: "Shows a resource", method: getCall, path: resource},
		kitCommand{
			use: "put RESOURCE", short: "Creates or changes a resource", method: putCall, path: resource,
			flags: []kitFlag{
				{"seats", texts, "names and ranges such as A1..A20, separated by commas; without them it has units"}, {"capacity", whole, "the number of places"},
				{"hold", millis, "how long a hold lasts"}, {"max-life", millis, "how long a hold lasts at most, with renewals"},
				{"per-user", whole, "holds of a user at a time"}, {"ends", instants, "the `time` at which everything is removed"}, dataFlag, durableFlag, versionFlag,
			},
		},
		kitCommand{use: "delete RESOURCE", short: "Removes a resource with its holds and sales", method: deleteCall, path: resource, flags: []kitFlag{versionFlag}},
		kitCommand{
			use: "take RESOURCE [SEAT]...", short: "Holds all of the seats, or none", method: postCall, path: resource + "/holds", args: []string{"seats..."},
			flags: with(places, kitFlag{"hold", millis, "how long the hold lasts"}),
		},
		kitCommand{use: "sell RESOURCE [SEAT]...", short: "Sells all of the seats, or none", method: postCall, path: resource + "/sales", args: []string{"seats..."}, flags: places},
		kitCommand{use: "get RESOURCE HOLD", short: "Shows a hold or a sale", method: getCall, path: one},
		kitCommand{use: "renew RESOURCE HOLD", short: "Makes a hold last longer", method: postCall, path: one + "/renew", flags: []kitFlag{durableFlag}},
		kitCommand{use: "confirm RESOURCE HOLD", short: "Turns a hold into a sale", method: postCall, path: one + "/confirm", flags: []kitFlag{durableFlag}},
		kitCommand{use: "release RESOURCE HOLD", short: "Ends a hold or a sale", method: postCall, path: one + "/release", flags: []kitFlag{durableFlag}},
		kitCommand{use: "of RESOURCE USER", short: "Lists the holds of a user", method: getCall, path: resource + "/users/{}", list: "holds", columns: holds},
	)
}

func (a *app) boardCommand() *cobra.Command {
	season := kitFlag{"season", text, "previous, or the id of a season"}
	limit := kitFlag{"limit", whole, "the most entries; around a player, on each side"}
	player := "/v1/boards/{}/players/{}"
	entries := []string{"rank", "player", "score"}
	return a.kit("board", "Lists and reads leaderboards, and submits scores", "boards.md",
		kitCommand{
			use: "list", short: "Lists the boards that have a player", method: getCall, path: "/v1/boards", flags: pageFlags,
			list: "boards", columns: []string{"board", "order", "season", "ends", "count", "first.player", "first.score"},
		},
		kitCommand{
			use: "top BOARD", short: "Shows the first entries", method: getCall, path: "/v1/boards/{}",
			flags: []kitFlag{limit, {"offset", whole, "how many entries to leave out"}, season}, list: "entries", columns: entries,
		},
		kitCommand{use: "around BOARD PLAYER", short: "Shows a player with the neighbors", method: getCall, path: player + "/around", flags: []kitFlag{limit, season}, list: "entries", columns: entries},
		kitCommand{use: "rank BOARD PLAYER", short: "Shows the place of a player", method: getCall, path: player, flags: []kitFlag{season}},
		kitCommand{
			use: "submit BOARD PLAYER SCORE", short: "Submits a score", method: postCall, path: "/v1/boards/{}/scores", args: []string{"player", "score"},
			flags: []kitFlag{{"mode", text, "what the score does, such as add"}, {"key", text, "a repeat with the same key counts once; add needs it"}, {"operation", text, "the former name of --key"}, season, durableFlag},
		},
		kitCommand{use: "remove BOARD PLAYER", short: "Removes a player", method: deleteCall, path: player, flags: []kitFlag{season}},
	)
}

func (a *app) accountCommand() *cobra.Command {
	one := "/v1/accounts/{}"
	session := "/v1/sessions/{}"
	c := a.kit("account", "Lists and changes accounts, and sessions", "accounts.md",
		kitCommand{
			use: "list", short: "Lists accounts, the newest first", method: getCall, path: "/v1/accounts",
			flags: with(pageFlags, kitFlag{"state", text, "open, locked, deleted or all; without it those that are not deleted"}),
			list:  "accounts", columns: []string{"id", "name", "nickname", "state", "created", "login.at"},
		},
		kitCommand{use: "get ACCOUNT", short: "Shows an account", method: getCall, path: one},
		kitCommand{use: "find NAME", short: "Shows the account with a name", method: getCall, path: "/v1/accounts", args: []string{"name"}},
		kitCommand{use: "history ACCOUNT", short: "Lists the last events of an account", method: getCall, path: one + "/history", list: "events", columns: []string{"n", "at", "type", "address", "name"}},
		kitCommand{
			use: "create NAME", short: "Makes an account; its password is read from the standard input", method: postCall, path: "/v1/accounts",
			args: []string{"name"}, secret: "password", flags: []kitFlag{{"nickname", text, "the nickname"}},
			only: "account", // the rest is a login, whose tokens are secrets
		},
		kitCommand{use: "lock ACCOUNT", short: "Ends all logins, and refuses new ones", method: postCall, path: one + "/lock"},
		kitCommand{use: "unlock ACCOUNT", short: "Accepts logins again", method: postCall, path: one + "/unlock"},
		kitCommand{use: "delete ACCOUNT", short: "Marks an account as deleted", method: postCall, path: one + "/delete"},
		kitCommand{use: "restore ACCOUNT", short: "Ends a deletion", method: postCall, path: one + "/restore"},
		kitCommand{use: "password ACCOUNT", short: "Replaces the password by one from the standard input", method: postCall, path: one + "/password", secret: "password"},
		kitCommand{use: "rename ACCOUNT NAME", short: "Changes the name", method: patchCall, path: one, args: []string{"name"}, flags: []kitFlag{versionFlag}},
	)
	c.AddCommand(a.kit("session", "Reads and changes the sessions of users", "accounts.md",
		kitCommand{use: "get USER", short: "Shows a session", method: getCall, path: session},
		kitCommand{use: "put USER [JSON]", short: "Replaces a session", method: putCall, path: session, payload: true, flags: []kitFlag{{"ttl", millis, "how long it lasts"}, versionFlag}},
		kitCommand{use: "delete USER", short: "Ends a session", method: deleteCall, path: session, flags: []kitFlag{versionFlag}},
	))
	return c
}

func (a *app) sceneCommand() *cobra.Command {
	one, avatar := "/v1/scenes/{}", "/v1/avatars/{}"
	columns := []string{"id", "world", "name", "status", "count", "created"}
	avatars := []string{"id", "user", "name", "figure", "status", "scene", "created"}
	name := kitFlag{"name", text, "the name"}
	figure := kitFlag{"figure", text, "how it looks"}
	moment := kitFlag{"time", text, "the time in the scene"}
	id := kitFlag{"id", text, "the id; without it the broker makes one"}
	c := a.kit("scene", "Lists and changes scenes and avatars", "scenes.md",
		kitCommand{
			use: "list WORLD", short: "Lists the scenes of a world", method: getCall, path: "/v1/scenes", args: []string{"world"},
			flags: with(pageFlags, kitFlag{"status", text, "open, closed or deleted"}, name), list: "scenes", columns: columns,
		},
		kitCommand{use: "get SCENE", short: "Shows a scene with its avatars", method: getCall, path: one, list: "avatars", columns: []string{"avatar", "name", "figure", "online"}},
		kitCommand{
			use: "create WORLD NAME", short: "Creates a scene", method: postCall, path: "/v1/scenes", args: []string{"world", "name"},
			flags: []kitFlag{id, {"status", text, "open or closed"}, moment, dataFlag},
		},
		kitCommand{use: "patch SCENE", short: "Changes a scene", method: patchCall, path: one, flags: []kitFlag{name, {"status", text, "open, closed or deleted"}, moment, dataFlag, versionFlag}},
		kitCommand{use: "delete SCENE", short: "Marks a scene as deleted", method: deleteCall, path: one, flags: []kitFlag{versionFlag}},
	)
	c.AddCommand(a.kit("avatar", "Lists, changes and moves avatars", "scenes.md",
		kitCommand{
			use: "list USER", short: "Lists the avatars of a user", method: getCall, path: "/v1/avatars", args: []string{"user"},
			flags: with(pageFlags, kitFlag{"status", text, "open or deleted"}), list: "avatars", columns: avatars,
		},
		kitCommand{use: "get AVATAR", short: "Shows an avatar", method: getCall, path: avatar},
		kitCommand{use: "create USER NAME", short: "Creates an avatar", method: postCall, path: "/v1/avatars", args: []string{"user", "name"}, flags: []kitFlag{id, figure, dataFlag}},
		kitCommand{use: "patch AVATAR", short: "Changes an avatar", method: patchCall, path: avatar, flags: []kitFlag{name, figure, {"status", text, "open restores it"}, dataFlag, versionFlag}},
		kitCommand{use: "delete AVATAR", short: "Marks an avatar as deleted", method: deleteCall, path: avatar, flags: []kitFlag{versionFlag}},
		kitCommand{use: "move AVATAR SCENE", short: "Brings an avatar into a scene", method: putCall, path: avatar + "/scene", args: []string{"scene"}, flags: []kitFlag{{"from", text, "the scene that it must be in; empty for none"}}},
		kitCommand{use: "leave AVATAR", short: "Takes an avatar out of its scene", method: deleteCall, path: avatar + "/scene"},
	))
	return c
}

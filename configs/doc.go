// Package configs reads the settings of the two commands, and holds the YAML files that
// are shipped with them.
//
// A flag beats the environment, the environment beats the file, the file beats the
// default. Every setting has one key, and its other names follow from it:
//
//	key in the file    environment of the broker       of the janitor                     flag
//	http               SWITCHBOARD_HTTP                SWITCHBOARD_JANITOR_HTTP           --http
//	drain_time         SWITCHBOARD_DRAIN_TIME                                             --drain-time
//	redis              SWITCHBOARD_REDIS               the same, shared                   --redis
//	auth.keys          SWITCHBOARD_AUTH_KEYS                                              none
//
// An empty variable is as good as none. Lists are separated by commas there, and sections like
// namespaces are YAML. Only what [Broker] and [Janitor] name is a setting; anything else in the
// file is an error, with its line.
//
// A new setting needs a field of [Broker] or [Janitor] with a tag, its default in [DefaultBroker]
// or [DefaultJanitor] unless that is zero, and a row of the help in brokerhelp.go or
// janitorhelp.go, which a test asks for.
//
// Secrets have a type of their own, [Secret], which no format verb and no encoder prints, and
// no error of this package repeats a value of theirs.
package configs

// Package configs reads the settings of the two commands. Its folder also has the YAML files that
// are shipped with them.
//
// A flag overrides the environment, the environment overrides the file, and the file overrides the
// default. Every setting has a key, from which its other names follow:
//
//	key in the file   variable of the broker    variable of the janitor    flag
//	http              SWITCHBOARD_HTTP          SWITCHBOARD_JANITOR_HTTP   --http
//	drain_time        SWITCHBOARD_DRAIN_TIME    none                       --drain-time
//	redis             SWITCHBOARD_REDIS         SWITCHBOARD_REDIS          --redis
//	auth.keys         SWITCHBOARD_AUTH_KEYS     none                       none
//
// An empty variable counts as unset. In variables, commas separate the items of a list, and
// sections like namespaces are YAML. Any key in the file that is not a field of [Broker] or
// [Janitor] is an error, with its line.
//
// A new setting needs a field of [Broker] or [Janitor] with a tag, its default in [DefaultBroker]
// or [DefaultJanitor] unless that is zero, and a row in brokerhelp.go or janitorhelp.go. A test
// checks that it has the row.
//
// Secrets have the type [Secret], which no format verb and no encoder prints. No error of this
// package contains the value of a secret.
package configs

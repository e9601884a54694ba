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
// A new setting is a field with tags, see package setting, in the options of the package that uses
// the value. [Broker] and [Janitor] hold these options. They have the field themselves if the value
// needs a conversion, such as the reading of a file. The help and docs/config.md follow:
// brokerhelp.go and janitorhelp.go have only the groups of the help and their order.
//
// Secrets have the type [Secret], which no format verb and no encoder prints. No error of this
// package contains the value of a secret.
//
// # Files
//
// Files in reading order: webhooks.go, kit.go, broker.go, commands.go, file.go, help.go, row.go,
// sectiontext.go, brokerhelp.go, hooks.go, janitorhelp.go, options.go, certificates.go,
// readstruct.go, namespaces.go, flags.go, fieldrules.go, requests.go, runtime.go, tokenkeys.go,
// secret.go, document.go, janitor.go, load.go.
package configs

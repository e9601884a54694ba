// Package switchboard has the version of this module. Its Go client is package client, and the
// calls of backends are in client/backend.
package switchboard

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var file string

// Version is that of the file VERSION, in the form of semver.org. It ends with "-dev" between two
// releases. All programs, packages and documents of a commit have it: after a change of the file,
// run go test . -update.
var Version = strings.TrimSpace(file)

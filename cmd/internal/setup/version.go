package setup

import (
	"runtime/debug"
	"strings"

	"switchboard"
)

// Version returns the version of the module. Between two releases, and for changed sources, it has
// the revision of the build, if that is known: 1.2.0-dev+4b391e8612f0.modified.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return version(switchboard.Version, info)
}

// version adds the revision of a build to a version. info may be nil.
func version(release string, info *debug.BuildInfo) string {
	if info == nil {
		return release
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision, modified := settings["vcs.revision"], settings["vcs.modified"] == "true"
	if revision == "" || !modified && !strings.HasSuffix(release, "-dev") {
		return release
	}
	release += "+" + revision[:min(12, len(revision))]
	if modified {
		release += ".modified"
	}
	return release
}

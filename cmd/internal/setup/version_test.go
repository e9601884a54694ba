package setup

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	build := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "4b391e8612f0aaaaaaaaaaaa"}, {Key: "vcs.modified", Value: modified},
		}}
	}
	for _, tt := range []struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		{"1.2.0", build("false"), "1.2.0"},
		{"1.2.0", build("true"), "1.2.0+4b391e8612f0.modified"},
		{"1.2.0-dev", build("false"), "1.2.0-dev+4b391e8612f0"},
		{"1.2.0-dev", build("true"), "1.2.0-dev+4b391e8612f0.modified"},
		{"1.2.0-dev", &debug.BuildInfo{}, "1.2.0-dev"},
		{"1.2.0-dev", nil, "1.2.0-dev"},
	} {
		if got := version(tt.release, tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.release, got, tt.want)
		}
	}
}

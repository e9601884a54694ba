package kit

import (
	"net/http"
	"testing"
)

// TestParseMatch: the conditions of RFC 9110 section 13.1 that calls know, and what others are.
func TestParseMatch(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		want   Match
		bad    bool
	}{
		"nothing":         {http.Header{}, Match{}, false},
		"version":         {http.Header{"If-Match": {"12"}}, Match{Version: 12}, false},
		"quoted":          {http.Header{"If-Match": {`"12"`}}, Match{Version: 12}, false},
		"exists":          {http.Header{"If-Match": {"*"}}, Match{Exists: true}, false},
		"absent":          {http.Header{"If-None-Match": {"*"}}, Match{Absent: true}, false},
		"half quoted":     {http.Header{"If-Match": {`"12`}}, Match{}, true},
		"end quoted":      {http.Header{"If-Match": {`12"`}}, Match{}, true},
		"weak":            {http.Header{"If-Match": {`W/"12"`}}, Match{}, true},
		"list":            {http.Header{"If-Match": {`"12", "13"`}}, Match{}, true},
		"two lines":       {http.Header{"If-Match": {"12", "13"}}, Match{}, true},
		"zero":            {http.Header{"If-Match": {"0"}}, Match{}, true},
		"negative":        {http.Header{"If-Match": {"-1"}}, Match{}, true},
		"text":            {http.Header{"If-Match": {"x"}}, Match{}, true},
		"empty":           {http.Header{"If-Match": {""}}, Match{}, true},
		"other version":   {http.Header{"If-None-Match": {"12"}}, Match{}, true},
		"both conditions": {http.Header{"If-Match": {"12"}, "If-None-Match": {"*"}}, Match{}, true},
	} {
		if m, err := ParseMatch(c.header); m != c.want || (err != nil) != c.bad {
			t.Errorf("%s: got %+v, %v, want %+v", name, m, err, c.want)
		}
	}
}

// TestIfMatch: a call that changes what exists takes * as any version, and refuses If-None-Match.
func TestIfMatch(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int64
		bad         bool
	}{{"If-Match", "*", 0, false}, {"If-Match", `"7"`, 7, false}, {"If-None-Match", "*", 0, true}} {
		if v, err := IfMatch(http.Header{c.name: {c.value}}); v != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %s: got %d, %v, want %d", c.name, c.value, v, err, c.want)
		}
	}
}

// TestMet asks each condition about no document, and about two versions.
func TestMet(t *testing.T) {
	for _, c := range []struct {
		m    Match
		want [3]bool // of the versions 0, 1 and 2
	}{
		{Match{}, [3]bool{true, true, true}},
		{Match{Version: 1}, [3]bool{false, true, false}},
		{Match{Exists: true}, [3]bool{false, true, true}},
		{Match{Absent: true}, [3]bool{true, false, false}},
	} {
		for version, want := range c.want {
			if got := c.m.Met(int64(version)); got != want {
				t.Errorf("%+v of version %d is %t", c.m, version, got)
			}
		}
	}
}

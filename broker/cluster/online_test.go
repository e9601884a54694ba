package cluster

import (
	"fmt"
	"testing"

	"switchboard/broker/api"
	"switchboard/internal/sketch"
)

// summaryOf returns the summary of a server with the users from to to-1.
func summaryOf(from, to int) userSummary {
	var s sketch.Sketch
	for i := from; i < to; i++ {
		s.Add(fmt.Sprint("user-", i))
	}
	data, _ := s.AppendBinary(nil)
	return userSummary{to - from, data}
}

// TestMergeUsers checks the number of users of several servers: exact if all summaries are or one
// server has all users, and never outside of the bounds.
func TestMergeUsers(t *testing.T) {
	unreadable := userSummary{7, []byte("?")}
	for name, c := range map[string]struct {
		summaries []userSummary
		want      api.UserCount
	}{
		"none":           {nil, api.UserCount{Exact: true}},
		"overlap":        {[]userSummary{summaryOf(0, 10), summaryOf(5, 20)}, api.UserCount{Users: 20, Exact: true}},
		"one has all":    {[]userSummary{summaryOf(0, 5000), summaryOf(0, 0)}, api.UserCount{Users: 5000, Exact: true}},
		"not below most": {[]userSummary{summaryOf(0, 3), unreadable}, api.UserCount{Users: 7}},
		"unreadable":     {[]userSummary{unreadable}, api.UserCount{Users: 7, Exact: true}},
	} {
		if got := mergeUsers(c.summaries); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for first := range 20 { // the estimates of some of these are outside
		same := mergeUsers([]userSummary{summaryOf(first, first+3000), summaryOf(first, first+3000)})
		distinct := mergeUsers([]userSummary{summaryOf(first, first+3000), summaryOf(first+3000, first+6000)})
		if same.Users < 3000 || same.Exact || distinct.Users > 6000 || distinct.Exact {
			t.Errorf("from %d: %+v and %+v", first, same, distinct)
		}
	}
}

package queue

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	for _, c := range []struct {
		name string // of the bad option, empty for none
		opts Options
	}{
		{"", Options{}},
		{"", Options{Prefix: "prod:", ClientTTL: time.Millisecond}},
		{"Prefix", Options{Prefix: "{prod}:"}},
		{"Prefix", Options{Prefix: "}"}},
		{"ClientCap", Options{ClientCap: -1}},
		{"ChannelCap", Options{ChannelCap: -1}},
		{"ChannelMaxBytes", Options{ChannelMaxBytes: -1}},
		{"RequestCap", Options{RequestCap: -1}},
		{"ClientTTL", Options{ClientTTL: time.Microsecond}},
		{"RecordTTL", Options{RecordTTL: -time.Hour}},
		{"ChannelTTL", Options{ChannelTTL: -1}},
		{"MetaTTL", Options{MetaTTL: -time.Minute}},
		{"RequestBytes", Options{RequestBytes: -1}},
		{"RequestShare", Options{RequestShare: -1}},
		{"RequestShareBytes", Options{RequestShareBytes: -1}},
		{"RequestTTL", Options{RequestTTL: -1}},
		{"KeyTTL", Options{KeyTTL: -1}},
	} {
		err := c.opts.Validate()
		if c.name == "" {
			ok(t, err)
		} else if err == nil || !strings.HasPrefix(err.Error(), "queue: "+c.name+" ") {
			t.Errorf("%+v: got %v, want one about %s", c.opts, err, c.name)
		}
	}
}

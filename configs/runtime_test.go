package configs

import (
	"strings"
	"testing"
	"time"
)

func TestRuntimeSettings(t *testing.T) {
	for _, c := range []struct {
		yaml  string
		slack time.Duration
		spare int
	}{
		{"", 5 * time.Millisecond, AutoSpare},
		{"runtime: {timer_slack: 0, spare_procs: off}", 0, 0},
		{"runtime: {timer_slack: 1ms, spare_procs: 3}", time.Millisecond, 3},
		{`runtime: {spare_procs: "0"}`, 5 * time.Millisecond, 0},
	} {
		b, err := LoadBroker([]string{"--config", write(t, "b.yaml", c.yaml)}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.yaml, err)
			continue
		}
		if spare, err := b.Runtime.Spare(); spare != c.spare || err != nil || b.Runtime.TimerSlack != c.slack {
			t.Errorf("%s: a slack of %v and %d spare (%v)", c.yaml, b.Runtime.TimerSlack, spare, err)
		}
	}
	b, err := LoadBroker(nil, []string{"SWITCHBOARD_RUNTIME_TIMER_SLACK=2ms", "SWITCHBOARD_RUNTIME_SPARE_PROCS=2"})
	if spare, _ := b.Runtime.Spare(); err != nil || spare != 2 || b.Runtime.TimerSlack != 2*time.Millisecond {
		t.Errorf("from the environment: %+v, %v", b.Runtime, err)
	}
	for _, text := range []string{"-1", "some", "1025", "1.5"} {
		_, err := LoadBroker(nil, []string{"SWITCHBOARD_RUNTIME_SPARE_PROCS=" + text})
		if err == nil || !strings.Contains(err.Error(), "runtime.spare_procs: want auto") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

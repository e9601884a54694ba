package configs

import (
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	tests := []struct {
		name, help string
		flags      string
	}{
		{"broker", BrokerHelp(), "config http tcp peer advertise name redis prefix insecure log-level log-format max-connections drain-time version help"},
		{"janitor", JanitorHelp(), "config redis prefix once dry-run dead-letters retry http servers-every queues-every max-age max-messages log-level log-format version help"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for flag := range strings.FieldsSeq(tt.flags) {
				if !strings.Contains(tt.help, "--"+flag) {
					t.Errorf("--%s is missing", flag)
				}
			}
			for i, line := range strings.Split(tt.help, "\n") {
				if len(line) > 120 || strings.TrimRight(line, " ") != line {
					t.Errorf("line %d: %q is too long or ends with a space", i+1, line)
				}
			}
			for _, part := range []string{"Usage: " + tt.name + " [flags]", "Examples", "Exit codes", "  0  ", "  1  ", "  2  "} {
				if !strings.Contains(tt.help, part) {
					t.Errorf("%q is missing", part)
				}
			}
		})
	}
}

func TestHelpHasEverySetting(t *testing.T) {
	for _, p := range []*program{brokerProgram, janitorProgram} {
		for _, s := range p.rows() {
			name := "  " + s.Key
			if s.Flag {
				name = "  --" + s.FlagName()
			}
			_, after, found := strings.Cut(p.help(), name)
			item, _, _ := strings.Cut(after, "env ")
			if !found || !strings.Contains(after, "env "+p.env(s.Key)+"\n") || strings.Contains(item, "--") && !strings.Contains(s.text+s.Unset, "--") {
				t.Errorf("%s: %s or its variable is missing", p.name, name)
			}
			if !strings.Contains(item, s.DefaultText()) {
				t.Errorf("%s: the default of %s is missing", p.name, s.Key)
			}
		}
	}
}

func TestHelpText(t *testing.T) {
	for _, item := range []string{
		"  --drain-time DURATION   time over which the reconnects of the clients are spread at a shutdown\n" +
			"                          default 10s; env SWITCHBOARD_DRAIN_TIME\n",
		"  times.refresh           interval at which each client's binding is renewed; a binding lasts five intervals\n" +
			"                          default 30m; env SWITCHBOARD_TIMES_REFRESH\n",
		"  limits.channel_messages\n" +
			"                          messages that a channel keeps, until the janitor trims it to the newest 1000\n" +
			"                          default 10000; env SWITCHBOARD_LIMITS_CHANNEL_MESSAGES\n",
	} {
		if !strings.Contains(BrokerHelp(), item) {
			t.Errorf("missing:\n%s\nin\n%s", item, BrokerHelp())
		}
	}
	if !strings.Contains(JanitorHelp(), "required; env SWITCHBOARD_REDIS\n") || !strings.Contains(JanitorHelp(), "env SWITCHBOARD_JANITOR_HTTP\n") {
		t.Error(JanitorHelp())
	}
}

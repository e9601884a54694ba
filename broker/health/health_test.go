package health

import (
	"errors"
	"strings"
	"testing"
	"time"

	"switchboard/janitor/heartbeat"
	"switchboard/registry"
)

var now = time.UnixMilli(1795330758518)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// wellFacts are those of a system in which nothing needs attention.
func wellFacts() Facts {
	return Facts{
		Now: now, Lease: 10 * time.Second, Shared: true,
		Servers: []registry.Server{{ID: "a", LastActive: now}, {ID: "b", LastActive: ago(2 * time.Second)}},
		Listed:  []string{"a", "b"},
		Died:    []registry.Death{{Server: "old", At: ago(2 * time.Hour)}},
		Loads: []Load{
			{Server: "a", Connections: 89, MaxConnections: 100, Certificate: now.Add(15 * 24 * time.Hour)},
			{Server: "b", Connections: 5},
		},
		Janitors: []heartbeat.Janitor{{
			ID: "j", Seen: ago(5 * time.Second), Webhooks: true,
			Rounds: map[string]heartbeat.Round{"servers": {Every: 3000, Idle: 4000, Failed: 1}, "queues": {Every: 300_000, Idle: 900_000}},
		}},
		Redis:    []Memory{{Server: "r:6379", Used: 79, Max: 100, Policy: "noeviction"}, {Server: "s:6379", Used: 1 << 40}},
		Webhooks: &Webhooks{URL: "https://b", Waiting: 3, Oldest: ago(50 * time.Second), Status: 200},
	}
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *Facts)
		want   string // level code subject, separated by ;
	}{
		"all is well": {func(*Facts) {}, ""},
		"in memory":   {func(f *Facts) { f.Shared, f.Janitors, f.Redis = false, nil, nil }, ""},

		"a server died":                  {func(f *Facts) { f.Died[0].At = ago(59 * time.Minute) }, "warning server_died old"},
		"a server has no lease":          {func(f *Facts) { f.Listed = append(f.Listed, "c") }, "problem server_gone c"},
		"a dead server is still listed":  {func(f *Facts) { f.Listed, f.Died[0].At = append(f.Listed, "old"), now }, "problem server_gone old"},
		"a late heartbeat":               {func(f *Facts) { f.Servers[1].LastActive = ago(6 * time.Second) }, "problem server_late b"},
		"a server does not answer":       {func(f *Facts) { f.Silent = []string{"b"} }, "problem server_silent b"},
		"many connections":               {func(f *Facts) { f.Loads[0].Connections = 90 }, "warning connections_limit a"},
		"as many connections as allowed": {func(f *Facts) { f.Loads[0].Connections = 100 }, "problem connections_limit a"},
		"a certificate ends soon":        {func(f *Facts) { f.Loads[0].Certificate = now.Add(13 * 24 * time.Hour) }, "warning certificate_ends a"},
		"a certificate has ended":        {func(f *Facts) { f.Loads[0].Certificate = ago(time.Hour) }, "problem certificate_ends a"},

		"no janitor":        {func(f *Facts) { f.Janitors = nil }, "problem janitor_absent "},
		"a dead janitor":    {func(f *Facts) { f.Janitors[0].Seen = ago(time.Minute) }, "problem janitor_absent ;warning janitor_died j"},
		"one for each hour": {func(f *Facts) { f.Janitors[0].Seen, f.Janitors[0].Once = ago(50*time.Minute), true }, ""},
		"one of two janitors died": {func(f *Facts) {
			f.Janitors = append(f.Janitors, heartbeat.Janitor{ID: "k", Seen: ago(time.Minute)}, heartbeat.Janitor{ID: "l", Seen: ago(2 * time.Hour)})
		}, "warning janitor_died k"},
		"no webhooks.url":  {func(f *Facts) { f.Janitors[0].Webhooks = false }, "problem janitor_without_webhooks "},
		"without webhooks": {func(f *Facts) { f.Janitors[0].Webhooks, f.Webhooks = false, nil }, ""},
		"a round fails": {func(f *Facts) {
			f.Janitors[0].Rounds["servers"] = heartbeat.Round{Every: 3000, Idle: 9000, Failed: 2}
		}, "problem janitor_failing j"},
		"a round is late": {func(f *Facts) {
			f.Janitors[0].Rounds["servers"] = heartbeat.Round{Every: 3000, Idle: 40_000}
		}, "problem janitor_late j"},

		"the backend refuses":    {func(f *Facts) { f.Webhooks.Attempts, f.Webhooks.Status = 2, 503 }, "problem webhooks_failing https://b"},
		"the backend is slow":    {func(f *Facts) { f.Webhooks.Oldest = ago(2 * time.Minute) }, "problem webhooks_late https://b"},
		"there are dead letters": {func(f *Facts) { f.Webhooks.Dead = 1 }, "problem dead_letters https://b"},

		"Redis is rather full": {func(f *Facts) { f.Redis[0].Used = 80 }, "warning redis_memory r:6379"},
		"Redis is full":        {func(f *Facts) { f.Redis[0].Used = 95 }, "problem redis_memory r:6379"},
		"Redis evicts":         {func(f *Facts) { f.Redis[0].Policy = "allkeys-lru" }, "problem redis_evicts r:6379"},
		"Redis is away":        {func(f *Facts) { f.Unavailable = []error{errors.New("x")} }, "problem store_unavailable "},
		"the janitors are not known": {func(f *Facts) {
			f.Janitors, f.JanitorsUnknown, f.Unavailable = nil, true, []error{errors.New("x")}
		}, "problem store_unavailable "},
		"problems come first": {func(f *Facts) { f.Redis[0].Used, f.Webhooks.Dead, f.Silent = 80, 1, []string{"b"} },
			"problem dead_letters https://b;problem server_silent b;warning redis_memory r:6379"},
	} {
		f := wellFacts()
		tt.change(&f)
		r := Check(f)
		var got []string
		for _, one := range r.Findings {
			got = append(got, string(one.Level)+" "+one.Code+" "+one.Subject)
			for _, text := range []string{one.Message, one.Remedy} {
				if !strings.HasSuffix(text, ".") {
					t.Errorf("%s: %s: %q is no sentence", name, one.Code, text)
				}
			}
		}
		if text := strings.Join(got, ";"); text != tt.want {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
		status, _, _ := strings.Cut(tt.want, " ")
		if status == "" {
			status = "healthy"
		}
		if string(r.Status) != status {
			t.Errorf("%s: status %s", name, r.Status)
		}
	}
}

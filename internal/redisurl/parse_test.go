package redisurl

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]target{
		"redis://localhost":                {hosts: []string{"localhost:6379"}},
		"redis://10.0.0.1:7000/3":          {hosts: []string{"10.0.0.1:7000"}, path: "3"},
		"REDISS://[::1]:7000/":             {tls: true, hosts: []string{"[::1]:7000"}},
		"redis://[::1]":                    {hosts: []string{"[::1]:6379"}},
		"redis://:p%40ss@h":                {password: "p@ss", hosts: []string{"h:6379"}},
		"redis://u:a@b:c@h":                {user: "u", password: "a@b:c", hosts: []string{"h:6379"}},
		"redis-cluster://h1,h2:7001":       {kind: cluster, hosts: []string{"h1:6379", "h2:7001"}},
		"rediss-cluster://u:p@h1:1,h2:2/":  {kind: cluster, tls: true, user: "u", password: "p", hosts: []string{"h1:1", "h2:2"}},
		"redis-sentinel://h1,h2:7/my%20ma": {kind: sentinel, hosts: []string{"h1:26379", "h2:7"}, path: "my ma"},
		"rediss-sentinel://:p@h1:1/m?db=2": {kind: sentinel, tls: true, password: "p", hosts: []string{"h1:1"}, path: "m"},
		"redis-sentinel://h/m?sentinel_username=su&sentinel_password=sp": {
			kind: sentinel, hosts: []string{"h:26379"}, path: "m", sentinelUser: "su", sentinelPassword: "sp",
		},
	} {
		got, err := parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got.kind != want.kind || got.tls != want.tls || got.user != want.user || got.password != want.password ||
			strings.Join(got.hosts, ",") != strings.Join(want.hosts, ",") || got.path != want.path ||
			got.sentinelUser != want.sentinelUser || got.sentinelPassword != want.sentinelPassword {
			t.Errorf("%s:\n got %+v\nwant %+v", raw, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                                  "scheme",
		"localhost:6379":                                    "scheme",
		"hunter2@localhost":                                 "scheme",
		"http://:hunter2@h":                                 "scheme",
		"redis://":                                          "host",
		"redis://u:hunter2@":                                "host",
		"redis://u:hunter2@h:port":                          `port "port"`,
		"redis://u:hunter2@h:70000":                         "port",
		"redis://u:hunter2@a:1:2":                           "host",
		"redis://u:hunter2@a b":                             "host",
		"redis://u:hunter2@h1,h2":                           "redis-cluster",
		"redis://u:hunter2@h/x":                             `path "x"`,
		"redis://u:hunter2@h/1/2":                           "path",
		"redis://u:hunter2@h/%zz":                           "path",
		"redis://u:hunter2@h#x":                             "#",
		"redis://u:hunter2/hunter2@h":                       "user and password",
		"redis://u:hunter2?hunter2@h":                       "user and password",
		"redis://u:hunter2#hunter2@h":                       "user and password",
		"redis://u:hunter2%zz@h":                            "user and password",
		"redis://hunter2@h":                                 "user and password",
		"redis://u:hunter2@h?pool_size=lots":                "pool_size",
		"redis://u:hunter2@h?read_timeout=x":                "read_timeout",
		"redis://u:hunter2@h?nonsense=1":                    "nonsense",
		"redis://u:hunter2@h?max_retries=3":                 "max_retries",
		"redis://h?password=hunter2":                        "password",
		"redis-cluster://u:hunter2@h1,,h2":                  `host ""`,
		"redis-cluster://u:hunter2@h1/2":                    `path "2"`,
		"redis-cluster://h?read_only=true":                  "read_only",
		"redis-sentinel://u:hunter2@h":                      "name of the master",
		"redis-sentinel://h/m?sentinel_password=hunter2%zz": "query",
		"redis-sentinel://h/m?db=x":                         "database number",
		"redis-sentinel://h/m?route_randomly=true":          "route_randomly",
	} {
		client, _, err := Open(raw)
		if err == nil {
			_ = client.Close()
			t.Errorf("%s is accepted", raw)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q is not one line that names %q", raw, text, want)
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q contains the password", raw, text)
		}
		if strings.Contains(Redact(raw), "hunter2") {
			t.Errorf("%s: redacted to %s", raw, Redact(raw))
		}
	}
}

func TestOpenOptions(t *testing.T) {
	open := func(raw string) redis.UniversalClient {
		client, _, err := Open(raw)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	for _, raw := range []string{"rediss://u:p@h/3", "rediss-sentinel://u:p@h1,h2/m?db=3"} {
		o := open(raw).(*redis.Client).Options()
		if o.Username != "u" || o.Password != "p" || o.DB != 3 || o.TLSConfig == nil || o.MaxRetries != 0 || // -1 became 0
			!o.ContextTimeoutEnabled || o.PoolSize != poolSize || o.ReadTimeout != timeout || o.DialTimeout != timeout {
			t.Errorf("%s: %+v", raw, o)
		}
	}
	o := open("rediss-cluster://u:p@h1:1,h2:2?pool_size=5&dial_timeout=7s").(*redis.ClusterClient).Options()
	if o.Username != "u" || o.Password != "p" || len(o.Addrs) != 2 || o.TLSConfig == nil || o.TLSConfig.ServerName != "" ||
		o.MaxRetries != 0 && o.MaxRetries != -1 || !o.ContextTimeoutEnabled || o.PoolSize != 5 || o.DialTimeout != 7*time.Second {
		t.Errorf("cluster: %+v", o)
	}
	if o := open("rediss-cluster://shared.example").(*redis.ClusterClient).Options(); o.TLSConfig.ServerName != "shared.example" {
		t.Errorf("the name of all nodes is %q", o.TLSConfig.ServerName)
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://u:secret@h:1/2?client_name=x": "redis://h:1/2",
		"redis-sentinel://:secret@a,b/m":       "redis-sentinel://a:26379,b:26379/m",
		"nonsense":                             "(malformed Redis URL)",
	} {
		if got := Redact(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("redis-sentinel://u:p@h1:1,h2/m?db=1&pool_size=3")
	f.Add("redis://[::1]:1/0")
	f.Add("redis-cluster://h1,h2")
	f.Fuzz(func(t *testing.T, raw string) {
		client, _, err := Open(raw)
		if err == nil {
			_ = client.Close()
		} else if strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q: %q has more than one line", raw, err)
		}
	})
}

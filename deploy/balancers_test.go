//go:build deploy

package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"

	"switchboard/internal/testbed"
)

// haproxy starts HAProxy with haproxy.cfg on the ports of the cluster.
func haproxy(c *cluster) *testbed.Process {
	text := replaceAll(c.t, readFile(c.t, "haproxy.cfg"),
		"bind :8080", "bind "+c.web, "bind :7070", "bind "+c.line, "bind 127.0.0.1:8404", "bind "+c.status,
		"maxconn 100000", "maxconn 2000",
		"broker-1:8080", c.brokers[0].http, "broker-2:8080", c.brokers[1].http, "broker-3:8080", c.brokers[2].http,
	)
	for i, n := range c.brokers {
		_, port, _ := strings.Cut(n.http, ":")
		name := "broker-" + string(rune('1'+i))
		text = replaceAll(c.t, text,
			name+":7070 send-proxy-v2 check port 8080", n.tcp+" send-proxy-v2 check port "+port)
	}
	config := writeFile(c.t, filepath.Join(c.t.TempDir(), "haproxy.cfg"), text)
	return c.execute("haproxy", exec.Command("haproxy", "-db", "-f", config))
}

// nginx starts nginx with nginx.conf on the ports of the cluster.
func nginx(c *cluster) *testbed.Process {
	text := replaceAll(c.t, readFile(c.t, "nginx.conf"),
		"listen 8080;", "listen "+c.web+";", "listen 7070;", "listen "+c.line+";",
		"worker_connections 100000;", "worker_connections 2000;", "worker_rlimit_nofile 200100;", "worker_rlimit_nofile 4100;",
		"broker-1:8080", c.brokers[0].http, "broker-2:8080", c.brokers[1].http, "broker-3:8080", c.brokers[2].http,
		"broker-1:7070", c.brokers[0].tcp, "broker-2:7070", c.brokers[1].tcp, "broker-3:7070", c.brokers[2].tcp,
	)
	dir := c.t.TempDir()
	config := writeFile(c.t, filepath.Join(dir, "nginx.conf"), text)
	own := "daemon off; error_log stderr; pid " + filepath.Join(dir, "nginx.pid") + ";"
	return c.execute("nginx", exec.Command("nginx", "-e", "stderr", "-c", config, "-g", own))
}

package system

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"switchboard/bench/swarm"
	"switchboard/internal/freeport"
)

// Nchan is nginx with the module nchan from the distribution. Messages are in memory shared by its
// workers.
type Nchan struct {
	Log io.Writer // receives a line before installing. Zero means standard error
}

// nchanModule is the path of the module on Debian.
const nchanModule = "/usr/lib/nginx/modules/ngx_nchan_module.so"

// nchanConfig is the configuration file, with the user line, the directory, the address and the
// history size to fill in. worker_connections fits a limit of 20,000 descriptors per process.
const nchanConfig = `load_module ` + nchanModule + `;
%[1]s
worker_processes 2;
daemon off;
pid %[2]s/nginx.pid;
error_log stderr error;
events { worker_connections 19000; }
http {
	access_log off;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	nchan_shared_memory_size 1G;
	server {
		listen %[3]s reuseport backlog=4096;
		location ~ ^/pub/(.+)$ {
			nchan_publisher;
			nchan_channel_id $1;
			nchan_message_buffer_length %[4]d;
			nchan_message_timeout 1h;
		}
		location ~ ^/sub/(.+)$ {
			nchan_subscriber websocket;
			nchan_channel_id $1;
			nchan_websocket_ping_interval 25s;
		}
	}
}
`

// Version returns the versions of the packages.
func (*Nchan) Version() string {
	return fmt.Sprintf("%s, nginx %s", debianVersion("libnginx-mod-nchan"), debianVersion("nginx"))
}

// Notes describes the configuration.
func (*Nchan) Notes() string {
	return "two workers with a listening socket each (reuseport), 1 GiB of shared memory, 10,000 messages kept per channel " +
		"for an hour, a ping every 25 s, no access log; subscribers over WebSocket, publishers use POST with keep-alive, answered when " +
		"the message is stored in memory"
}

// Start implements [System].
func (n *Nchan) Start(ctx context.Context, s Setup) (Running, error) {
	nginx, err := findProgram("nginx")
	if _, missing := os.Stat(nchanModule); err != nil || missing != nil {
		if err := installDebian(ctx, n.Log, "nginx-light", "libnginx-mod-nchan"); err != nil {
			return nil, err
		}
		if nginx, err = findProgram("nginx"); err != nil {
			return nil, err
		}
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the owner of the directory
	}
	kept := 10_000
	if !s.History {
		kept = 0
	}
	config := filepath.Join(s.Dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nchanConfig, user, s.Dir, addr, kept), 0o644); err != nil {
		return nil, err
	}
	p, err := startPeer(ctx, "nchan", addr, exec.Command(nginx, "-p", s.Dir, "-c", config))
	if err != nil {
		return nil, err
	}
	return &nchan{p}, nil
}

type nchan struct{ *peer }

func (r *nchan) Dialect() swarm.Dialect { return &swarm.Nchan{Addr: r.addr} }

func (r *nchan) Publisher() (Publisher, error) {
	conn, err := DialHTTP(r.addr)
	if err != nil {
		return nil, err
	}
	return &httpPublisher{HTTPConn: conn, path: "/pub/"}, nil
}

// httpPublisher posts each message to a path with the channel.
type httpPublisher struct {
	noBatch
	*HTTPConn
	path, suffix string // before and after the channel
}

func (p *httpPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	_, err := p.Post(ctx, p.path+channel+p.suffix, jsonHeader, data)
	return err
}

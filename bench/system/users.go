package system

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"switchboard/bench/swarm"
	"switchboard/internal/testbed"
)

// Users is a [Switchboard] in which each client is a separate user. With Webhooks a janitor sends
// the events to an HTTP server in this process.
type Users struct {
	Switchboard
	Webhooks bool
}

// Notes describes the configuration.
func (u *Users) Notes() string {
	if !u.Webhooks {
		return "each client is a user"
	}
	return "each client is a user; a janitor, whose CPU counts as the server's, sends all events to an HTTP server in " +
		"the generator that answers 200"
}

// buildJanitor builds ./cmd/janitor into the directory of the broker unless it exists.
func (u *Users) buildJanitor(ctx context.Context) (program string, err error) {
	program = filepath.Join(filepath.Dir(u.Program), "janitor")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, testbed.Build(ctx, "-o", program, "switchboard/cmd/janitor")
}

// Start implements [System].
func (u *Users) Start(ctx context.Context, s Setup) (_ Running, err error) {
	r := &users{webhooks: u.Webhooks}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Stop())
		}
	}()
	broker := u.Switchboard
	if u.Webhooks {
		if err := r.listen(); err != nil {
			return nil, err
		}
		broker.Env = append(broker.Env, r.webhookEnv()...)
	}
	running, err := broker.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	r.switchboard = running.(*switchboard)
	if !u.Webhooks {
		return r, nil
	}
	program, err := u.buildJanitor(ctx)
	if err != nil {
		return nil, err
	}
	r.janitor = &testbed.Program{Name: "janitor", Path: program, Args: []string{"--redis", "redis://" + s.Redis, "--log-level", "warn"}, Env: r.webhookEnv()}
	return r, r.janitor.Start()
}

// users is a set of running brokers with the janitor and the backend.
type users struct {
	*switchboard
	webhooks bool
	janitor  *testbed.Program // nil without webhooks

	server *http.Server
	url    string
	events atomic.Int64
}

func (r *users) webhookEnv() []string {
	return []string{"SWITCHBOARD_WEBHOOKS_URL=" + r.url, "SWITCHBOARD_WEBHOOKS_SECRETS=a secret of the benchmark"}
}

// listen starts the backend.
func (r *users) listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.url = "http://" + l.Addr().String()
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(l) }() // ends with Close
	return nil
}

// ServeHTTP counts the events of a webhook call.
func (r *users) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var delivery struct{ Events []json.RawMessage }
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &delivery)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.events.Add(int64(len(delivery.Events)))
}

// Dialect returns a dialect that names a user in each connect.
func (r *users) Dialect() swarm.Dialect {
	d := r.switchboard.Dialect().(*swarm.Switchboard)
	d.Users = true
	return d
}

// PIDs returns the ids of the brokers and of the janitor.
func (r *users) PIDs() []int {
	pids := r.switchboard.PIDs()
	if r.janitor != nil {
		pids = append(pids, r.janitor.PID())
	}
	return pids
}

// WebhookEvents implements [WebhookCounter].
func (r *users) WebhookEvents() (events int64, janitor int, ok bool) {
	if !r.webhooks {
		return 0, 0, false
	}
	return r.events.Load(), r.janitor.PID(), true
}

// Stop ends the brokers, then the janitor, then the backend.
func (r *users) Stop() (err error) {
	if r.switchboard != nil {
		err = r.switchboard.Stop()
	}
	if r.janitor != nil && r.janitor.Process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err = errors.Join(err, r.janitor.End(ctx, syscall.SIGTERM))
		r.janitor.Kill()
	}
	if r.server != nil {
		err = errors.Join(err, r.server.Close())
	}
	return err
}

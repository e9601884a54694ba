package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"switchboard/client/backend"
	"switchboard/internal/redisurl"
	"switchboard/webhook"
)

const (
	// popWait is how long a call to Redis waits for a request. A worker ends after this time at the
	// latest.
	popWait = time.Second
	// popTimeout bounds the call itself.
	popTimeout = popWait + 5*time.Second
	// maxRequest bounds the body of a request, in bytes.
	maxRequest = 4 << 20
)

// work takes requests from the lists in Redis and answers them, until ctx ends.
func (r *runner) work(ctx context.Context, sb *backend.Client, f requestsFlags) error {
	lists, watch, err := redisurl.Open(f.redis)
	if err != nil {
		return usage("--redis: %w", err)
	}
	defer lists.Close()
	if err := watch.Begin(ctx); err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	r.note("waiting for requests in %d lists of %s", f.queues, redisurl.Redact(f.redis))
	group, ctx := errgroup.WithContext(ctx)
	for n := range f.queues {
		list := fmt.Sprintf("%sqq_{%d}", f.prefix, n)
		group.Go(func() error { return r.workOn(ctx, sb, lists, list) })
	}
	return group.Wait()
}

// workOn answers the requests of one list, one after another.
func (r *runner) workOn(ctx context.Context, sb *backend.Client, lists redis.UniversalClient, list string) error {
	pause := firstPause
	for ctx.Err() == nil {
		text, err := pop(lists, list)
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			r.note("%s: %v; trying again", list, err)
			wait(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		r.reply(sb, text)
	}
	return nil
}

// pop returns the next request of a list. It does not end with the context of the worker: a request
// that Redis has handed out must not be dropped.
func pop(lists redis.UniversalClient, list string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), popTimeout)
	defer cancel()
	pair, err := lists.BLPop(ctx, popWait, list).Result()
	if err != nil {
		return nil, err
	}
	return []byte(pair[1]), nil
}

// reply answers one request through the broker.
func (r *runner) reply(sb *backend.Client, text []byte) {
	var q request
	if err := json.Unmarshal(text, &q); err != nil || q.Client == "" {
		r.note("an element of a list is not a request of a broker")
		return
	}
	data, failed := r.answer(text)
	if failed != nil {
		data, _ = json.Marshal(map[string]*failure{"error": failed}) // texts and JSON can be encoded
	}
	if data == nil {
		data = json.RawMessage("null")
	}
	if err := sb.Reply(context.Background(), q.Client, q.Ref, data); err != nil {
		r.note("the reply to %s is lost: %v", q.Client, err)
	}
}

// listen serves requests.url until ctx ends, and then finishes the requests under way.
func (r *runner) listen(ctx context.Context, f requestsFlags) error {
	text, err := os.ReadFile(f.secrets)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	secrets := secretsIn(string(text))
	if len(secrets) == 0 {
		return fmt.Errorf("--secret-file: %s: there is no secret in it", f.secrets)
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	r.note("waiting for requests on http://%s", l.Addr())
	server := &http.Server{Handler: r.handler(secrets), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		drain, cancel := context.WithTimeout(context.Background(), r.timeout+time.Second)
		defer cancel()
		_ = server.Shutdown(drain) // what is left is lost with the process
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("--listen: %w", err)
	}
	<-stopped
	return nil
}

// secretsIn returns the lines of a secret file, without blank lines and comments.
func secretsIn(text string) (secrets []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			secrets = append(secrets, line)
		}
	}
	return secrets
}

func (r *runner) handler(secrets []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
		if err != nil || req.Method != http.MethodPost {
			http.Error(w, "want a request of a broker", http.StatusBadRequest)
			return
		}
		if err := webhook.Verify(secrets, req.Header, body, 0); err != nil {
			r.note("a request from %s is refused: %v", req.RemoteAddr, err)
			http.Error(w, "bad signature", http.StatusUnauthorized)
			return
		}
		reply, failed := r.answer(body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case failed != nil && failed.Code == "timeout":
			w.WriteHeader(http.StatusGatewayTimeout)
		case failed != nil:
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(map[string]*failure{"error": failed})
		case reply == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write(reply)
		}
	})
}

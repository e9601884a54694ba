// Command centrifuge is a small server on the centrifuge library, to compare with this project's
// broker. Subscribers use its JSON protocol over WebSocket, a backend publishes with HTTP POST.
// Messages go through Redis, which keeps them for the recovery of clients. Without --redis they are
// in the memory of the process.
//
// With --map, the subscriptions are map subscriptions. With --nodes, the process has more nodes
// than the one that takes connections.
//
//	centrifuge --addr 127.0.0.1:8000 --redis 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/centrifugal/centrifuge"
)

// The history of a channel, the same as in this project's broker.
const (
	historySize = 10_000
	historyTime = time.Hour
)

// shutdownTime bounds the end of the node.
const shutdownTime = time.Second

func main() {
	addr := flag.String("addr", "127.0.0.1:8000", "host:port to listen on")
	redis := flag.String("redis", "", "host:port of the Redis; empty means the memory of the process")
	maps := flag.String("map", noMaps, "mode of the channels' maps: persistent or ephemeral; empty means no maps")
	nodes := flag.Int("nodes", 1, "number of nodes in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *addr, *redis, *maps, *nodes); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, redis, maps string, nodes int) error {
	var node *centrifuge.Node // the one that takes connections
	for range nodes {
		one, err := newNode(redis, maps)
		if err != nil {
			return err
		}
		if err := one.Run(); err != nil {
			return fmt.Errorf("run the node: %w", err)
		}
		if node == nil {
			node = one
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/connection/websocket", authenticated(centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		UseWriteBufferPool: true, // otherwise each connection holds a write buffer
	})))
	mux.HandleFunc("POST /publish/{channel}", func(w http.ResponseWriter, r *http.Request) { publish(node, w, r) })
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, r *http.Request) { publishBatch(node, w, r) })
	mux.HandleFunc("POST /map/{channel}/{key...}", func(w http.ResponseWriter, r *http.Request) { publishEntry(node, w, r) })
	mux.HandleFunc("POST /map/{channel}", func(w http.ResponseWriter, r *http.Request) { fillMap(node, w, r) })
	mux.HandleFunc("GET /map/{channel}", func(w http.ResponseWriter, r *http.Request) { readMap(node, w, r) })
	mux.HandleFunc("POST /heap", heap)
	server := &http.Server{Addr: addr, Handler: mux}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		// The load has ended, so connections need no orderly end. Other nodes learn of the end.
		shutdown, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		_ = node.Shutdown(shutdown) // an error means that time is over
		err = server.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// newNode creates a node with the library's defaults, history and recovery. All clients may do
// everything.
func newNode(redis, maps string) (*centrifuge.Node, error) {
	config := centrifuge.Config{
		LogLevel:   centrifuge.LogLevelError,
		LogHandler: func(e centrifuge.LogEntry) { log.Println(e.Message, e.Fields) },
	}
	if maps != noMaps {
		config.Map.GetMapChannelOptions = mapOptions(maps)
	}
	node, err := centrifuge.New(config)
	if err != nil {
		return nil, err
	}
	subscribeOptions := centrifuge.SubscribeOptions{EnableRecovery: true}
	if maps != noMaps {
		subscribeOptions = centrifuge.SubscribeOptions{Type: centrifuge.SubscriptionTypeMap}
	}
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(func(_ centrifuge.SubscribeEvent, answer centrifuge.SubscribeCallback) {
			answer(centrifuge.SubscribeReply{Options: subscribeOptions}, nil)
		})
		// Clients publish without history.
		client.OnPublish(func(_ centrifuge.PublishEvent, answer centrifuge.PublishCallback) {
			answer(centrifuge.PublishReply{}, nil)
		})
		client.OnMapPublish(func(e centrifuge.MapPublishEvent, answer centrifuge.MapPublishCallback) {
			answer(centrifuge.MapPublishReply{Key: e.Key}, nil)
		})
	})
	return node, setBrokers(node, redis, maps)
}

// setBrokers sets what keeps the messages and the maps: Redis or, without an address, the memory of
// the process.
func setBrokers(node *centrifuge.Node, redis, maps string) error {
	if redis == "" {
		return nil // the library's default
	}
	shard, err := centrifuge.NewRedisShard(node, centrifuge.RedisShardConfig{Address: redis})
	if err != nil {
		return fmt.Errorf("connect to Redis at %s: %w", redis, err)
	}
	shards := []*centrifuge.RedisShard{shard}
	broker, err := centrifuge.NewRedisBroker(node, centrifuge.RedisBrokerConfig{Shards: shards})
	if err != nil {
		return err
	}
	node.SetBroker(broker)
	if maps == noMaps {
		return nil
	}
	mapBroker, err := centrifuge.NewRedisMapBroker(node, centrifuge.RedisMapBrokerConfig{Shards: shards})
	if err == nil {
		node.SetMapBroker(mapBroker)
	}
	return err
}

// authenticated gives every client the credentials of the anonymous user.
func authenticated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(centrifuge.SetCredentials(r.Context(), &centrifuge.Credentials{})))
	})
}

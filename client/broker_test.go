package client_test

import (
	"context"
	"log"

	"switchboard/broker"
	"switchboard/queue"
	"switchboard/registry"
)

// startBroker runs a broker in memory and returns its URL. stop ends it.
func startBroker() (url string, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	members := registry.NewMemory(registry.Options{})
	b, err := broker.New(broker.Options{
		Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "off"},
		Store: broker.StoreOptions{
			Registry: members,
			Queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
				servers, _ := members.ChannelServers(context.Background(), channel)
				return servers
			}),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.Run(ctx); err != nil {
			log.Print(err)
		}
	}()
	addrs, err := b.Addrs(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return "ws://" + addrs.HTTP + "/ws", func() { cancel(); <-ended }
}

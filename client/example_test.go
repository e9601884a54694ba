package client_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"switchboard/client"
)

func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.New(client.Options{
		URLs:      []string{"ws://127.0.0.1:8080/ws", "tcp://127.0.0.1:7070"},
		Client:    "phone",
		User:      "alice",
		OnMessage: func(m client.Message) { fmt.Println(m.Channel, m.ID, string(m.Data)) },
		OnGap:     func(g client.Gap) { fmt.Println("messages are missing in", g.Channel) },
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if _, err := c.Subscribe(ctx, "news", client.SubscribeOptions{}); err != nil {
			log.Print(err)
		}
		if _, err := c.Publish(ctx, "news", map[string]string{"title": "hi"}); err != nil {
			log.Print(err)
		}
	}()
	if err := c.Run(ctx); err != nil { // until interrupted
		log.Print(err)
	}
}

package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"sync"

	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/kit/kittest"
)

// table stands for a table of a database.
type table struct {
	broker *backend.Client

	mu   sync.Mutex // guards the fields below
	rows map[string]int
}

// read returns the rows, and a position of the channel that is not newer than they are.
func (t *table) read(ctx context.Context) (rows map[string]int, after int64, err error) {
	channel, err := t.broker.Channel(ctx, "prices") // first the position, then the rows
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.rows), channel.ID, err
}

// change changes a row and publishes the change.
func (t *table) change(ctx context.Context, name string, price int) error {
	t.mu.Lock()
	t.rows[name] = price // first the commit, then the push
	t.mu.Unlock()
	_, err := t.broker.Push(ctx, backend.Push{Channel: "prices", Data: map[string]int{name: price}})
	return err
}

// The rows of a database, and then each change of them.
func ExampleSubscribeOptions_load() {
	b, stop := kittest.NewMemory().Run(nil)
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broker, err := backend.New(backend.Options{URLs: []string{"http://" + b.HTTP}})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	database := &table{broker: broker, rows: map[string]int{"tea": 3}}

	var shown map[string]int // only callbacks use it
	shows := make(chan string)
	c, err := client.New(client.Options{
		URLs: []string{b.URL()},
		OnMessage: func(m client.Message) {
			if err := json.Unmarshal(m.Data, &shown); err != nil { // changes the rows that it names
				log.Print(err)
			}
			shows <- fmt.Sprint("changed: ", shown)
		},
		OnLoadError: func(channel string, err error) { log.Print(channel, ": ", err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = c.Run(ctx) }()
	_, err = c.Subscribe(ctx, "prices", client.SubscribeOptions{
		Load: func(ctx context.Context) (client.Loaded, error) {
			rows, after, err := database.read(ctx)
			return client.Loaded{After: &after, Apply: func() {
				shown = rows
				shows <- fmt.Sprint("loaded: ", shown)
			}}, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-shows)
	if err := database.change(ctx, "tea", 4); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-shows)
	// Output:
	// loaded: map[tea:3]
	// changed: map[tea:4]
}

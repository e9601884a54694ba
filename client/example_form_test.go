package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"switchboard/client"
	"switchboard/kit/kittest"
)

// editor is one person who edits the form in the channel form:7.
type editor struct {
	*client.Client
	name    string
	arrived chan client.Snapshot
	changed chan client.Message
}

// open connects an editor, and waits for the fields of the form.
func open(ctx context.Context, url, name string) *editor {
	e := &editor{name: name, arrived: make(chan client.Snapshot, 1), changed: make(chan client.Message, 16)}
	var err error
	e.Client, err = client.New(client.Options{
		URLs: []string{url}, Client: name,
		// The fields replace what the form shows. They arrive again if changes were missed.
		OnFields: func(s client.Snapshot) { e.arrived <- s },
		// Each change arrives once, in the same order for all editors.
		OnMessage: func(m client.Message) {
			if m.Changes != nil {
				e.changed <- m
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := e.Run(ctx); err != nil {
			log.Print(err)
		}
	}()
	if _, err := e.Subscribe(ctx, "form:7", client.SubscribeOptions{State: true}); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s opens the form: %d fields\n", name, len((<-e.arrived).Fields))
	return e
}

// save sets a field if it still has the version that the editor has seen; 0 stands for an absent
// field. After a conflict it asks resolve for the text that unites both.
func (e *editor) save(ctx context.Context, field, text string, seen int64, resolve func(other string) string) {
	for {
		_, err := e.Update(ctx, "form:7", client.Set(field, text), client.IfID(field, seen))
		refused, conflict := errors.AsType[*client.Refusal](err)
		switch {
		case err == nil:
			return
		case !conflict || refused.Err.Code != client.Conflict:
			log.Fatal(err)
		}
		seen = 0 // the other editor has deleted the field
		if current := refused.Fields[field]; current != nil {
			var other string
			if err := json.Unmarshal(current.Value, &other); err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s: %s is %q by now\n", e.name, field, other)
			text, seen = resolve(other), current.ID
		}
	}
}

// next waits for a change and prints it.
func (e *editor) next() {
	m := <-e.changed
	for field, value := range m.Changes.Set {
		fmt.Printf("%s sees %s = %s\n", e.name, field, value)
	}
}

// Two people edit a form. Each input is a field of a channel. No editor overwrites a text without
// having seen it: a save names the version on which it is based.
func ExampleClient_Update() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b, closeBroker := kittest.NewMemory().Run(nil)
	defer closeBroker()
	url := b.URL()

	amy := open(ctx, url, "amy")
	amy.save(ctx, "title", "Plan", 0, nil)
	amy.next()
	bob := open(ctx, url, "bob")

	// Both start from "Plan". Bob is faster.
	seen, _ := amy.Field("form:7", "title")
	bob.save(ctx, "title", "Plan for May", seen.ID, nil)
	bob.next()
	amy.save(ctx, "title", "Our plan", seen.ID, func(other string) string { return "Our " + other })
	bob.next()

	// Output:
	// amy opens the form: 0 fields
	// amy sees title = "Plan"
	// bob opens the form: 1 fields
	// bob sees title = "Plan for May"
	// amy: title is "Plan for May" by now
	// bob sees title = "Our Plan for May"
}

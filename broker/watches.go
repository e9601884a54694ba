package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"switchboard/broker/api"
)

// watchChannel implements api.Options.Watch.
func (b *Broker) watchChannel(ctx context.Context, channel string) (api.Watch, error) {
	return b.hub.Watch(ctx, channel)
}

// clientWatches are the calls that wait for messages of clients.
type clientWatches struct {
	count atomic.Int32 // of all channels in byClient: without calls a hint costs one load

	mu       sync.Mutex // guards byClient
	byClient map[string][]chan struct{}
}

// add implements api.Options.WatchClient.
func (w *clientWatches) add(client string) (changed <-chan struct{}, stop func()) {
	signal := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byClient == nil {
		w.byClient = make(map[string][]chan struct{})
	}
	w.byClient[client] = append(w.byClient[client], signal)
	w.count.Add(1)
	return signal, func() { w.remove(client, signal) }
}

func (w *clientWatches) remove(client string, signal chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Add(-1)
	list := w.byClient[client]
	i := slices.Index(list, signal)
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		w.byClient[client] = list
	} else {
		delete(w.byClient, client)
	}
}

// hint wakes the calls that wait for messages of a client.
func (w *clientWatches) hint(client string) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, signal := range w.byClient[client] {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}

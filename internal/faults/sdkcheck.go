package main

import (
	"context"
	"errors"
	"time"

	"switchboard/internal/await"
)

// checkInboxesOfSDK waits until the clients of client/js have acknowledged all messages of their
// inboxes, and records how many are left.
func (tb *bed) checkInboxesOfSDK(ctx context.Context) error {
	if tb.journal.countKind(javaScript).Delivered == 0 {
		return errors.New("no message was delivered")
	}
	deadline := time.Now().Add(tb.deliveryTimeout())
	for {
		kept, detail, err := tb.keptInboxes(ctx)
		if err != nil || kept == 0 {
			return err
		}
		if time.Now().After(deadline) {
			tb.keptInJS = kept
			tb.journal.update(func() { tb.journal.evidence.add("kept", "%s has not acknowledged all messages", detail) })
			return nil
		}
		if err := await.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// keptInboxes counts the messages in the inboxes of these clients, and names a client with some.
func (tb *bed) keptInboxes(ctx context.Context) (kept int, client string, err error) {
	for _, spec := range tb.clientSpecs {
		if spec.listener != javaScript {
			continue
		}
		n, err := tb.store.client.LLen(ctx, "mq_c_{"+spec.client+"}").Result()
		if err != nil {
			return 0, "", err
		}
		if kept += int(n); n > 0 {
			client = spec.client
		}
	}
	return kept, client, nil
}

package main

import (
	"context"
	"errors"
	"time"
)

// checkInboxesOfSDK waits until the clients of client/js have acknowledged all messages of their
// inboxes, and records how many are left.
func (tb *bed) checkInboxesOfSDK(ctx context.Context) error {
	if tb.journal.countKind(javaScript).Delivered == 0 {
		return errors.New("no message was delivered")
	}
	var kept int
	var detail string
	err := within(ctx, tb.deliveryTimeout(), 100*time.Millisecond, func() (err error) {
		if kept, detail, err = tb.keptInboxes(ctx); err == nil && kept > 0 {
			err = errNotYet
		}
		return err
	})
	if errors.Is(err, errNotYet) {
		tb.keptInJS = kept
		tb.journal.update(func() { tb.journal.evidence.add("kept", "%s has not acknowledged all messages", detail) })
		return nil
	}
	return err
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

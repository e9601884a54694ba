package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"switchboard/internal/await"
)

// Every eraseEvery-th message of a channel is erased. Some are erased as soon as they are accepted,
// while they are on their way, and others when most clients have them: the delays are multiples of
// eraseDelay, up to eraseDelays of them.
const (
	eraseEvery  = 5
	eraseDelay  = 700 * time.Millisecond
	eraseDelays = 4
)

// eraseLater erases message n of a channel after a while, if it is one of those to be erased.
func (p *publisher) eraseLater(ctx context.Context, push acceptedPush, id int64) {
	if push.queue == "" || push.n%eraseEvery != 0 {
		return
	}
	p.journal.erasing(push, id)
	p.erasing.Go(func() {
		_ = await.Pause(ctx, time.Duration(push.n/eraseEvery%eraseDelays)*eraseDelay)
		p.eraseUntilAccepted(ctx, messageKey{push.queue, id})
	})
}

// eraseUntilAccepted repeats an erasure at the next broker until one accepts it, or the store does
// not know the message.
func (p *publisher) eraseUntilAccepted(ctx context.Context, key messageKey) {
	body := map[string]any{"channel": key.channel, "id": key.id}
	if p.durable {
		body["durable"] = true
	}
	for ctx.Err() == nil {
		at := p.nextBroker()
		status, text, err := p.roundTrip(ctx, p.brokers[at], "/v1/erase", body)
		var answer struct{ Report int64 }
		switch {
		case errors.Is(err, errNoAnswer):
			p.avoid(at)
		case err == nil && status == http.StatusNotFound:
			p.journal.erasedUnknown(key)
			return
		case err == nil && status == http.StatusOK && json.Unmarshal([]byte(text), &answer) == nil:
			p.journal.erased(key, answer.Report, time.Now())
			return
		case err == nil:
			p.journal.refuse(fmt.Sprint("erase: status ", status))
		}
		_ = await.Pause(ctx, pushRetryDelay)
	}
}

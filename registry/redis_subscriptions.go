package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/internal/redispipe"
)

// Subscribe changes a list of subscriptions that the backend makes. The online clients are those
// that were bound before: a client that is bound later finds the change with BindUsers and
// Subscriptions. Clients without a user are not returned. All servers find the user or the client
// with RevokedSince.
func (r *Redis) Subscribe(ctx context.Context, c SubscriptionChange) (SubscriptionsChanged, error) {
	fail := func(err error) (SubscriptionsChanged, error) {
		return SubscriptionsChanged{}, fmt.Errorf("subscriptions of %s%s: %w", c.User, c.Client, err)
	}
	after := ""
	if c.After >= 0 {
		after = strconv.FormatInt(c.After, 10)
	}
	args := []any{string(rune(c.Kind)), after, r.opts.SubscribedTTL.Milliseconds(), MaxSubscriptions}
	for _, channel := range c.Channels {
		args = append(args, channel)
	}
	list := []string{r.keys.subscriptions(c.User, c.Client)}
	if c.User != "" {
		list = append(list, r.keys.user(c.User))
	}
	answer, err := r.pipe.Eval(ctx, subscribeScript, list, args...)
	if err != nil {
		return fail(err)
	}
	reply, _ := answer.([]any)
	if len(reply) == 0 {
		return fail(ErrTooManySubscriptions)
	}
	var changed SubscriptionsChanged
	changed.Until, _ = reply[0].(int64)
	changed.Clients = onlineOf(bindingsOf(fieldsOf(reply[1:])), c.Client)
	name := c.User
	if name == "" {
		name = anonymousMark + c.Client
	}
	if _, err := r.eval(ctx, listRevokedScript, []string{r.keys.revokedList()}, name, revokedListTTL.Milliseconds()); err != nil {
		return fail(err)
	}
	return changed, nil
}

// anonymousMark begins the names of clients without a user in u_revoked. No user begins with it.
const anonymousMark = "\n"

// AnonymousClient returns the client of a name that RevokedSince returns for a client without a
// user.
func AnonymousClient(name string) (client string, ok bool) {
	return strings.CutPrefix(name, anonymousMark)
}

// Subscriptions returns the lists of clients, in the order of list, and renews their TTL.
func (r *Redis) Subscriptions(ctx context.Context, list []Subscriber) []SubscriptionsOutcome {
	targets := make([]redispipe.Target, len(list))
	for i, s := range list {
		own := r.keys.subscriptions(s.User, s.Client)
		both := []string{own, own}
		if s.User != "" {
			both[0] = r.keys.subscriptions(s.User, "")
		}
		targets[i] = redispipe.Target{Script: r.subscriptions, Keys: both, Args: []any{heldText(s.Held.User), heldText(s.Held.Client)}}
	}
	outcomes := make([]SubscriptionsOutcome, len(list))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		lists, _ := answer.Value.([]any)
		err := answer.Err
		if err == nil && len(lists) != 2 {
			err = errors.New("malformed reply")
		}
		if err != nil {
			outcomes[i].Err = fmt.Errorf("subscriptions of %s: %w", list[i].Client, err)
			continue
		}
		outcomes[i].User, outcomes[i].Client = parseSubscriptions(lists[0]), parseSubscriptions(lists[1])
	}
	return outcomes
}

// heldText returns entries as the script takes them: channels and values, each on a line.
func heldText(list []Subscription) string {
	var text strings.Builder
	for _, s := range list {
		text.WriteString(s.Channel + "\n" + s.entry() + "\n")
	}
	return text.String()
}

// parseSubscriptions parses the fields and values of a list. It skips malformed ones.
func parseSubscriptions(reply any) (list []Subscription) {
	words, _ := reply.([]any)
	for channel, value := range fieldsOf(words) {
		if s, ok := parseSubscription(channel, value); ok {
			list = append(list, s)
		}
	}
	sortSubscriptions(list)
	return list
}

// fieldsOf returns the fields and values of a hash as a map.
func fieldsOf(words []any) map[string]string {
	fields := make(map[string]string, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		name, _ := words[i].(string)
		fields[name], _ = words[i+1].(string)
	}
	return fields
}

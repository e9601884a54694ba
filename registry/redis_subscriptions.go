package registry

import (
	"cmp"
	"context"
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
	reply, err := r.pipe.EvalArray(ctx, subscribeScript, list, args...)
	if err != nil {
		return fail(err)
	}
	if reply.Len() == 0 {
		return fail(ErrTooManySubscriptions)
	}
	changed := SubscriptionsChanged{Until: reply.Int()}
	changed.Clients = onlineOf(bindingsOf(redispipe.Pairs(reply.Rest())), c.Client)
	if reply.Err != nil {
		return fail(reply.Err)
	}
	name := c.User
	if name == "" {
		name = anonymousMark + c.Client
	}
	if _, err := r.pipe.EvalInt(ctx, listRevokedScript, []string{r.keys.revokedList()}, name, revokedListTTL.Milliseconds()); err != nil {
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
		lists := redispipe.ReplyOf(answer.Value)
		outcomes[i].User, outcomes[i].Client = parseSubscriptions(lists.Texts()), parseSubscriptions(lists.Texts())
		if err := cmp.Or(answer.Err, lists.Err); err != nil {
			outcomes[i] = SubscriptionsOutcome{Err: fmt.Errorf("subscriptions of %s: %w", list[i].Client, err)}
		}
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
func parseSubscriptions(words []string) (list []Subscription) {
	for channel, value := range redispipe.Pairs(words) {
		if s, ok := parseSubscription(channel, value); ok {
			list = append(list, s)
		}
	}
	sortSubscriptions(list)
	return list
}

package registry

import (
	"context"

	"switchboard/internal/slots"
)

// contract is the methods that [Redis] and [Memory] share. The conformance suite tests both through
// it.
type contract interface {
	Join(ctx context.Context, s Server) error
	Beat(ctx context.Context, s Server) error
	Renew(ctx context.Context, s Server, since int64) (Changes, error)
	Leave(ctx context.Context, server string) error
	Servers(ctx context.Context) ([]Server, error)
	NotifyStates(ctx context.Context, servers []string) error
	BindChannel(ctx context.Context, server, channel string) error
	BindChannels(ctx context.Context, server string, channels []string) []error
	RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error)
	UnbindChannel(ctx context.Context, server, channel string) error
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error)
	PruneChannel(ctx context.Context, channel string) (pruned bool, err error)
	ListedIn(channel string, of *slots.Set) bool
	KeepChannelList(keep bool)
	MoveChannelList(ctx context.Context) (moved int, err error)
	HoldClients(ctx context.Context, server string, clients []string) error
	HoldChannels(ctx context.Context, server string, channels []string) error
	ListChannels(ctx context.Context, server string, channels []string) error
	DropClient(ctx context.Context, server, client string) error
	BindUsers(ctx context.Context, list []UserBinding) []error
	UsersHave(ctx context.Context, list []UserBinding) ([]bool, error)
	ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error)
	WatchUsers(ctx context.Context, server string, users []string) []WatchOutcome
	UnwatchUsers(ctx context.Context, list []UserWatch) error
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	Revoke(ctx context.Context, v Revocation) (Revoked, error)
	CheckTokens(ctx context.Context, list []UserBinding) []error
	RevokedSince(ctx context.Context, since int64) (users []string, next int64, more bool, err error)
	RevokedBefore(ctx context.Context, user string) (int64, error)
	Subscribe(ctx context.Context, c SubscriptionChange) (SubscriptionsChanged, error)
	Subscriptions(ctx context.Context, list []Subscriber) []SubscriptionsOutcome
	Spend(ctx context.Context, list []Spending) []SpendOutcome
	User(ctx context.Context, user string) ([]Binding, error)
	Users(ctx context.Context, users []string) ([][]Binding, error)
	Listed(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, server string) (s Server, live bool, err error)
	DeclareDead(ctx context.Context, server string) (done bool, err error)
	DeclaredDead(ctx context.Context, server string) (bool, error)
	HeldChannels(ctx context.Context, server string, n int) ([]string, error)
	HeldClients(ctx context.Context, server string, n int) ([]string, error)
	ClientPage(ctx context.Context, server, cursor string, limit int) ([]string, string, error)
	HeldCounts(ctx context.Context, server string) (channels, clients int, err error)
	HoldsChannels(ctx context.Context, server string, channels []string) ([]bool, error)
	RosterVersions(ctx context.Context, server string, channels []string) ([]int64, error)
	Forget(ctx context.Context, server string) error
	Died(ctx context.Context) ([]Death, error)
	ChangePresence(ctx context.Context, server string, changes []RosterChange) []RosterOutcome
	Roster(ctx context.Context, server, channel string) (Roster, error)
	RosterPage(ctx context.Context, server, channel, cursor string, limit int) (members []Member, next string, err error)
	RosterHas(ctx context.Context, server, channel string, clients []string) ([]bool, error)
	RosterSizes(ctx context.Context, channel string, servers []string) ([]int, error)
	WatchPresence(ctx context.Context, server, channel string) error
	UnwatchPresence(ctx context.Context, server, channel string) error
}

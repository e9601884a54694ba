package account

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/kit"
)

// newCollector returns the number of accounts.
func (a *Accounts) newCollector() prometheus.Collector {
	accounts := prometheus.NewDesc("switchboard_accounts", "Accounts by state, in all brokers.", []string{"state"}, nil)
	return kit.Gauges{
		Descs: []*prometheus.Desc{accounts},
		Count: func(ctx context.Context, set func(*prometheus.Desc, int, ...string)) {
			counts, err := a.index.Count(ctx, string(Open), string(Locked), string(Deleted))
			if err != nil {
				return
			}
			for i, state := range []State{Open, Locked, Deleted} {
				set(accounts, counts[i], string(state))
			}
		},
	}
}

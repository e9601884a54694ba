package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

func (a *app) userCommand() *cobra.Command {
	return group("user", "Budgets of users, and the end of users",
		"Shows how many rooms, boards and avatars users have, and removes what users have that do not exist any more, see docs/kit.md.",
		a.userBudgetCommand(), a.userForgetCommand())
}

func (a *app) userBudgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "budget USER", Short: "Shows how many objects a user has and may have, and what it has stored",
		Long: `Shows how many rooms, boards and avatars a user has made as a client, and the most, see docs/kit.md. What a backend
makes does not count. Kinds that the brokers do not have are missing. Below them are the bytes that the user's
publishes have stored lately and the channels that they have created, see limits.user_stored in docs/access.md.`,
		Example: `  switchboard user budget alice`,
		Args:    args(1, 1, "USER"), ValidArgsFunction: a.completeFirst(a.userNames),
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		budget, err := sb.Budget(ctx, users[0])
		return a.show(budget, err, func() {
			rows := append(usageRows("", budget.Objects), usageRows("stored ", budget.Stored)...)
			if len(rows) == 0 {
				a.note("the brokers have no kinds with a budget")
				return
			}
			a.screen.Table([]string{"kind", "used", "max"}, rows)
		})
	})
	return c
}

// usageRows returns a row for each kind of budget, in order.
func usageRows(prefix string, kinds map[string]backend.Usage) (rows [][]screen.Cell) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		used := kinds[kind]
		rows = append(rows, []screen.Cell{{Text: prefix + kind, Color: screen.Bold}, screen.Number(used.Used), screen.Number(used.Max)})
	}
	return rows
}

func (a *app) userForgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "forget USER", Short: "Removes what a user has that does not exist any more",
		Long: `Removes the scores, avatars and session documents of a user. The user leaves its rooms, and those that it made and
that have no other members end. Holds and sales stay. Accounts that end are forgotten without this command.
The API key needs the scope admin.`,
		Example: `  switchboard user forget alice`,
		Args:    args(1, 1, "USER"), ValidArgsFunction: a.completeFirst(a.userNames),
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		forgotten, err := sb.ForgetUser(ctx, users[0])
		return a.show(forgotten, err, func() {
			var pairs []string
			for _, kind := range slices.Sorted(maps.Keys(forgotten.Removed)) {
				pairs = append(pairs, kind, fmt.Sprint(forgotten.Removed[kind]))
			}
			a.screen.Pairs(pairs...)
		})
	})
	return c
}

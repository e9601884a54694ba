package account

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"switchboard/internal/state"
	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/queue"
)

// Check compares the records of accounts with their names and with the list of accounts. Each
// difference lasts for a moment while an account is changed. If the process that changes it stops,
// a broker corrects it within a minute.
func Check(o kit.CheckOptions) task.Check {
	return task.Check{Name: "accounts", Apart: task.Apart, Find: func(ctx context.Context) ([]task.Finding, error) {
		c := checker{CheckOptions: o, reported: map[task.Finding]bool{}}
		known, err := kit.EachBatch(ctx, o.States, map[string]kit.Visit{accountPrefix: c.checkAccounts, namePrefix: c.checkNames})
		if err == nil {
			err = kit.EachUnknown(ctx, o.Index, allAccounts, accountPrefix, known, c.checkLost)
		}
		return c.found, err
	}}
}

// checker is one look of a check.
type checker struct {
	kit.CheckOptions
	found    []task.Finding
	reported map[task.Finding]bool
}

func (c *checker) report(channel, remedy, format string, args ...any) {
	f := task.Finding{Subject: channel, Problem: fmt.Sprintf(format, args...), Remedy: remedy}
	if !c.reported[f] { // an account is read with its record, and with its name
		c.reported[f], c.found = true, append(c.found, f)
	}
}

// checkAccounts compares accounts with their names and cards.
func (c *checker) checkAccounts(ctx context.Context, ids []string) error {
	accounts, err := c.readAccounts(ctx, ids)
	if err != nil {
		return err
	}
	var digests []string
	for _, a := range accounts {
		digests = append(digests, named(a.record.value.Name).digest) // "" for guests, which nothing has
	}
	holders, err := c.readHolders(ctx, digests)
	if err != nil {
		return err
	}
	cards, err := c.Index.Get(ctx, ids...)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		if !a.exists() {
			continue
		}
		if digests[i] != "" && holders[i] != a.id {
			c.report(accountPrefix+a.id, "give the account another name, and its name again, by the API",
				"its record has a name whose %s names %s", namePrefix+digests[i], orNone(holders[i]))
		}
		want, have := card(a.id, a.record.id, &a.record.value), cards[i]
		delete(have.Lists, endList)
		if have.Version != want.Version || !maps.Equal(have.Lists, want.Lists) || !bytes.Equal(have.Data, want.Data) {
			c.report(accountPrefix+a.id, "brokers correct it some minutes after a failover; if it stays, any change of the account, such as a login, writes the card again",
				"its card in the list is not that of the record with the id %d", a.record.id)
		}
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "no account"
	}
	return "the account " + id
}

// checkNames finds names whose holder neither has nor claims them.
func (c *checker) checkNames(ctx context.Context, digests []string) error {
	holders, err := c.readHolders(ctx, digests)
	if err != nil {
		return err
	}
	accounts, err := c.readAccounts(ctx, holders) // after the names, see Accounts.holder
	if err != nil {
		return err
	}
	for i, a := range accounts {
		owns := a.exists() && named(a.record.value.Name).digest == digests[i]
		if a.id != "" && !owns && (a.claim.id == 0 || a.claim.value != digests[i]) {
			c.report(namePrefix+digests[i], "none: another account may take the name",
				"it names %s, whose record has another name", orNone(a.id))
		}
	}
	return nil
}

// checkLost finds accounts that have a card, and no record.
func (c *checker) checkLost(ctx context.Context, ids []string) error {
	accounts, err := c.readAccounts(ctx, ids) // one may be new
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if !a.exists() {
			c.report(accountPrefix+a.id, "remove the id from the keys ix_ of the list, or restore the account from a backup",
				"it has a card in the list, but no record")
		}
	}
	return nil
}

// readAccounts reads the records and the claims of accounts. An account without an id, or with a
// malformed record, does not exist.
func (c *checker) readAccounts(ctx context.Context, ids []string) ([]*snapshot, error) {
	accounts := make([]*snapshot, len(ids))
	pages, err := c.read(ctx, accountPrefix, ids, recordField, claimField)
	if err != nil {
		return nil, err
	}
	for i, fields := range pages {
		accounts[i] = &snapshot{id: ids[i]}
		if f := fields[claimField]; f != nil && accounts[i].claim.read(f) != nil {
			c.report(accountPrefix+ids[i], "the claim ends by itself", "its field %s is malformed", claimField)
		}
		if f := fields[recordField]; f != nil && accounts[i].record.read(f) != nil {
			c.report(accountPrefix+ids[i], "restore the account from a backup", "its field %s is malformed", recordField)
			accounts[i].record.id = 0
		}
		if err := kit.CheckFormat(accounts[i].record.value.Version, formatVersion); err != nil {
			return nil, fmt.Errorf("account %s: %w", ids[i], err)
		}
	}
	return accounts, nil
}

// readHolders reads the accounts that names name, "" for none.
func (c *checker) readHolders(ctx context.Context, digests []string) ([]string, error) {
	holders := make([]string, len(digests))
	pages, err := c.read(ctx, namePrefix, digests, idField)
	if err != nil {
		return nil, err
	}
	for i, fields := range pages {
		if f := fields[idField]; f != nil && json.Unmarshal(f.Value, &holders[i]) != nil {
			c.report(namePrefix+digests[i], "remove the field", "its field %s is malformed", idField)
		}
	}
	return holders, nil
}

// read reads fields of channels in one round trip.
func (c *checker) read(ctx context.Context, prefix string, names []string, fields ...string) ([]map[string]*state.Field, error) {
	return kit.ReadEach(ctx, c.States, prefix, names, fields, func(_ string, found []queue.NamedField) (map[string]*state.Field, error) {
		byName := map[string]*state.Field{}
		for _, f := range found {
			byName[f.Name] = f.Field
		}
		return byName, nil
	})
}

package account

import (
	"context"

	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/queue"
)

// Check compares the records of accounts with their names and with the list of accounts. Each
// difference lasts for a moment while an account is changed. If the process that changes it stops,
// a broker corrects it within a minute.
func Check(o kit.CheckOptions) task.Check {
	return kit.Check("accounts", func(ctx context.Context, f *kit.Findings) error {
		c := checker{o, f}
		known, err := kit.EachBatch(ctx, o.States, map[string]kit.Visit{accountPrefix: c.checkAccounts, namePrefix: c.checkNames})
		if err != nil {
			return err
		}
		return kit.EachUnknown(ctx, o.Index, allAccounts, accountPrefix, known, c.checkLost)
	})
}

// checker is one look of a check. An account is read with its record, and with its name.
type checker struct {
	kit.CheckOptions
	*kit.Findings
}

// checkAccounts compares accounts with their names and cards.
func (c *checker) checkAccounts(ctx context.Context, ids []string) error {
	accounts, err := c.readAccounts(ctx, ids)
	if err != nil {
		return err
	}
	var digests []string
	for _, a := range accounts {
		digests = append(digests, named(a.record.Value.Name).digest) // "" for guests, which nothing has
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
		if !a.Exists() {
			continue
		}
		if digests[i] != "" && holders[i] != a.id {
			c.Add(accountPrefix+a.id, "give the account another name, and its name again, by the API",
				"its record has a name whose %s names %s", namePrefix+digests[i], orNone(holders[i]))
		}
		want, have := card(a.id, a.record.ID, &a.record.Value), cards[i]
		delete(have.Lists, endList)
		if !kit.SameCard(have, want) {
			c.Add(accountPrefix+a.id, "brokers correct it some minutes after a failover; if it stays, any change of the account, such as a login, writes the card again",
				"its card in the list is not that of the record with the id %d", a.record.ID)
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
		owns := a.Exists() && named(a.record.Value.Name).digest == digests[i]
		if a.id != "" && !owns && (a.claim.ID == 0 || a.claim.Value != digests[i]) {
			c.Add(namePrefix+digests[i], "none: another account may take the name",
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
		if !a.Exists() {
			c.Add(accountPrefix+a.id, "remove the id from the keys ix_ of the list, or restore the account from a backup",
				"it has a card in the list, but no record")
		}
	}
	return nil
}

// readAccounts reads the records and the claims of accounts. An account without an id, or with a
// malformed record, does not exist.
func (c *checker) readAccounts(ctx context.Context, ids []string) ([]*snapshot, error) {
	read := queue.StateRead{Fields: []string{recordField, claimField}}
	return kit.ReadEach(ctx, c.States, accountPrefix, ids, read, func(id string, page *queue.StatePage) (*snapshot, error) {
		a := &snapshot{id: id}
		for _, f := range page.Fields {
			switch {
			case f.Name == claimField && a.claim.Read(f.Field) != nil:
				c.Add(accountPrefix+id, "the claim ends by itself", "its field %s is malformed", claimField)
			case f.Name == recordField && a.record.Read(f.Field) != nil:
				c.Add(accountPrefix+id, "restore the account from a backup", "its field %s is malformed", recordField)
				a.record.ID = 0
			}
		}
		return a, kit.CheckFormat(a.record.Value.Version, formatVersion)
	})
}

// readHolders reads the accounts that names name, "" for none.
func (c *checker) readHolders(ctx context.Context, digests []string) ([]string, error) {
	read := queue.StateRead{Fields: []string{idField}}
	return kit.ReadEach(ctx, c.States, namePrefix, digests, read, func(digest string, page *queue.StatePage) (string, error) {
		var holder kit.Record[string]
		if len(page.Fields) > 0 && holder.Read(page.Fields[0].Field) != nil {
			c.Add(namePrefix+digest, "remove the field", "its field %s is malformed", idField)
		}
		return holder.Value, nil
	})
}

// Restore returns a round of a janitor that makes the brokers compute again the cards of accounts
// that are not there, or older than the records, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{Name: "accounts", Prefix: accountPrefix, Record: recordField})
}

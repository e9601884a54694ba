package registry

import "time"

// Spending is what the clients of a user, or those of an address without a user, have used of a
// budget that all servers share. Each amount is the time in which the budget refills it.
type Spending struct {
	User    string // "" for clients without a user
	Address string // of clients without a user
	Bytes   Spent  // bytes that they stored
	// Channels are the channels that they created.
	Channels Spent
}

// Spent is a use of one budget.
type Spent struct {
	Cost time.Duration // at least 0
	Most time.Duration // what the budget may owe after it
}

// Owed is how long it takes until each budget is full again.
type Owed struct{ Bytes, Channels time.Duration }

// SpendOutcome is the result of Spend for one Spending.
type SpendOutcome struct {
	Owed
	Err error
}

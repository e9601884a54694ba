// Package board keeps leaderboards: a score for each player, ordered, with ranks. A board is named
// by a pattern of [Options.Boards]. The channel board:NAME has the field top with the first ten, so
// a client that subscribes with the state sees them change.
//
// # Order
//
// Scores are whole numbers. The highest is first, or the lowest, as the board says. Of players with
// equal scores the one who reached the score first is before the others. Submitting one's own score
// again changes nothing.
//
// # Seasons
//
// A board may begin anew at the times of a cron expression. The season is a pure function of the
// time: nothing is stored, and nothing has to run at its end. Each change names its season with its
// bounds, and the store's clock decides whether it is the current one. The field top is a lease
// until the end of the season.
//
// # Keys
//
// All keys of a board are in the slot of its channel. A board without seasons has no :SEASON.
//
//	lb_{board:NAME}:SEASON               ZSET    "<arrival>:<player>" by place; see below
//	lb_p_{board:NAME}:SEASON             HASH    player -> "<score> <arrival>"; "" -> next arrival
//	lb_o_{board:NAME}:PLAYER OPERATION   STRING  the reply of a change with an operation id
//
// The place is the score, or its negative on a board with the highest score first. The arrival
// counts changes of the season, as 12 hexadecimal digits. So ZRANK is the rank: Redis orders equal
// scores by member. The keys of a season end by a TTL, see [Board.Keep].
//
// The list of boards is the index boards, see package index. A board is in it while it has a
// player.
//
// A player is a user, or any other name that your backend chooses.
package board

// Package backend is the Go client of Switchboard's HTTP API, for backends and tools.
//
//	sb, err := backend.New(backend.Options{URLs: []string{"http://127.0.0.1:8080"}, Key: key})
//	badge := map[string]int{"badge": 3}
//	results, err := sb.Push(ctx, backend.Push{User: "alice", Data: badge, Key: "badge-81"})
//	if err == nil {
//		err = results.Err() // a push to several targets can be refused for some of them
//	}
//
// The rooms, holds, boards, accounts and scenes of a broker have types of their own:
//
//	view, err := backend.Boards{Client: sb}.Top(ctx, "chess", backend.BoardQuery{Limit: 3})
//
// # Errors
//
// A call that the broker refuses returns an [*Error] with the code, the message, and the current
// fields or data. errors.AsType also finds it as a [*client.Error]. A call that reaches no instance
// returns an [*UnreachableError].
//
// # Repetition
//
// A Client has the addresses of several instances. A call that one of them cannot have received
// goes to the next one at once. A call that an instance may have executed is repeated only if that
// is safe: a call that reads, and a push with a Key. A repeated push with the same Key is stored
// once. All attempts of a call end after [Options.RetryFor].
//
// # Files
//
// Files in reading order: accounts_gen.go, boards_gen.go, client_gen.go, holds_gen.go,
// operator.go, push.go, repeats_gen.go, rooms_gen.go, scenes_gen.go, sessions_gen.go, kit.go,
// users.go, types_gen.go, call.go, errors.go, read.go, fields.go, client.go.
package backend

// Package room is the client of rooms.
//
//	rooms := room.New(c) // c is a *client.Client that runs
//	r, err := rooms.Join(ctx, "battle:arena", room.JoinOptions{Nickname: "Amy"})
//	if errors.Is(err, …) // see Join for the codes
//	members := r.Members()          // kept up to date by the broker
//	err = r.Set(ctx, "position", p) // a field of this player: p/{n}/position
//	err = r.Leave(ctx)
//
// Messages and changes of the room arrive at the callbacks of the client, in [Room.Channel].
package room

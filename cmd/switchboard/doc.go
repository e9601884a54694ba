// Command switchboard runs brokers and talks to them; see --help and docs/cli.md.
//
// # Files
//
// Files in reading order: main.go, worker.go, webhooks.go, watch.go, tail.go, state.go, load.go,
// access.go, check.go, client.go, token.go, clientcommands.go, clientevents.go, top.go,
// clientparse.go, disconnect.go, doctor.go, erase.go, history.go, kitcommands_gen.go,
// kitprint.go, pipe_unix.go, profile.go, requests.go, serve.go, runner.go, look.go,
// subscribe.go, signingkey.go, revoke.go, exit.go, pipe_windows.go, user.go, positions.go,
// who.go, push.go, payload.go, complete.go, kitcommands.go, connect.go, settings.go, stream.go,
// kit.go, app.go.
package main

package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

const (
	getCall    = http.MethodGet
	postCall   = http.MethodPost
	putCall    = http.MethodPut
	patchCall  = http.MethodPatch
	deleteCall = http.MethodDelete
)

func (a *app) roomCommand() *cobra.Command {
	return a.kit("room", "Lists, creates and changes rooms", "rooms.md")
}

func (a *app) holdCommand() *cobra.Command {
	return a.kit("hold", "Holds and sells seats and units", "holds.md")
}

func (a *app) boardCommand() *cobra.Command {
	return a.kit("board", "Lists and reads leaderboards, and submits scores", "boards.md")
}

func (a *app) accountCommand() *cobra.Command {
	c := a.kit("account", "Lists and changes accounts, and sessions", "accounts.md")
	c.AddCommand(a.kit("session", "Reads and changes the sessions of users", "accounts.md"))
	return c
}

func (a *app) sceneCommand() *cobra.Command {
	c := a.kit("scene", "Lists and changes scenes and avatars", "scenes.md")
	c.AddCommand(a.kit("avatar", "Lists, changes and moves avatars", "scenes.md"))
	return c
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/configs"
)

// The exit codes. docs/cli.md and the help describe them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitForbidden   = 4
	exitConflict    = 5
	exitUnavailable = 6
)

// exit prints an error and returns the exit code for it.
func (a *app) exit(err error) int {
	if err == nil || errors.Is(err, errPipeClosed) && a.screen != nil && errors.Is(err, a.screen.Err()) {
		return exitOK // the reader of the output has seen enough
	}
	if done, ok := errors.AsType[errDone](err); ok {
		return int(done)
	}
	code := exitCode(err)
	if !a.started {
		code = exitUsage // cobra has refused the command line
	}
	if a.json {
		a.printJSON(err, code)
		return code
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", a.name, strings.ReplaceAll(err.Error(), "\n", "; "))
	if hint := a.hint(err, code); hint != "" {
		fmt.Fprintln(a.stderr, hint)
	}
	return code
}

// printJSON prints the error as the API does, with the exit code.
func (a *app) printJSON(err error, code int) {
	refused, ok := errors.AsType[*backend.Error](err)
	if !ok {
		refused = &backend.Error{Code: codeOf(code), Message: err.Error()}
	}
	text, _ := json.Marshal(map[string]any{"error": refused, "exit": code}) // both can be encoded
	fmt.Fprintf(a.stderr, "%s\n", text)
}

// codeOf returns the code of an error that does not come from the broker.
func codeOf(exit int) client.ErrorCode {
	switch exit {
	case exitUsage:
		return client.BadRequest
	case exitNotFound:
		return client.NotFound
	case exitUnavailable:
		return client.Unavailable
	}
	return "failed"
}

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[configs.UsageError](err); ok {
		return exitUsage
	}
	if isUnreachable(err) {
		return exitUnavailable
	}
	if closed, ok := errors.AsType[*client.ClosedError](err); ok {
		return exitOfClose(closed.Reason)
	}
	if _, ok := errors.AsType[*unreachableError](err); ok {
		return exitUnavailable
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return exitFailed
	}
	switch refused.Code {
	case client.BadRequest, client.TooLarge:
		return exitUsage
	case client.NotFound, client.Expired:
		return exitNotFound
	case client.Unauthorized, client.Forbidden, client.BadCode:
		return exitForbidden
	case client.Conflict, client.Full, client.OutOfRange, client.Locked:
		return exitConflict
	case client.Unavailable, client.Timeout, client.RateLimited:
		return exitUnavailable
	}
	return exitFailed
}

// exitOfClose returns the exit code for the reason for which the broker has ended a connection.
func exitOfClose(reason client.CloseReason) int {
	switch reason {
	case client.CloseUnauthorized, client.CloseExpired, client.CloseDisconnected:
		return exitForbidden
	case client.CloseSuperseded:
		return exitConflict
	case client.CloseBadRequest:
		return exitUsage
	}
	return exitUnavailable
}

// hint returns what the user can do about an error, or "".
func (a *app) hint(err error, code int) string {
	if lost, ok := errors.AsType[*backend.UnreachableError](err); ok {
		return fmt.Sprintf("Is a broker running at %s? SWITCHBOARD_URL or --url names another one; `switchboard serve` starts one.", lost.URL)
	}
	if _, ok := errors.AsType[usageError](err); ok || !a.started {
		return "Try " + a.name + " --help."
	}
	if closed, ok := errors.AsType[*client.ClosedError](err); ok && closed.Reason == client.CloseUnauthorized {
		return "The broker does not accept the token, or needs one (--token-file). `switchboard check --token` says why."
	}
	refused, ok := errors.AsType[*backend.Error](err)
	if !ok {
		return ""
	}
	switch {
	case refused.Code == client.Unauthorized:
		if key, _ := a.key(); key == "" {
			return "This broker needs an API key: give it in SWITCHBOARD_KEY or --key-file. `switchboard key` makes one."
		}
		return "The broker does not know this key: is its entry in auth.keys, and was the broker reloaded (SIGHUP)?"
	case refused.Code == client.Forbidden:
		return "`switchboard self` shows the scopes of the key."
	case refused.Code == client.NotFound && strings.HasPrefix(refused.Message, "there is no ") && strings.Contains(refused.Message, " /v1/"):
		return "This broker has no such call: `switchboard self` shows its version, and which systems of the kit it has."
	case refused.After > 0:
		return fmt.Sprintf("The broker asks to try again in %s.", refused.After.Round(time.Second))
	case len(refused.Fields) > 0 || len(refused.Data) > 0:
		return "Current values: " + current(refused)
	}
	return ""
}

// current returns the values that led to a refusal, as JSON.
func current(e *backend.Error) string {
	if len(e.Data) > 0 {
		return string(e.Data)
	}
	text, _ := json.Marshal(backend.Fields(e.Fields)) // fields that were decoded can be encoded
	return string(text)
}

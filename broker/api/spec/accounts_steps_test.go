package spec_test

import "strings"

// accountSteps are calls about accounts. {{client_first}} is a first message of SCRAM.
var accountSteps = []step{
	{op: "register", body: `{"name":"amy@example.com","password":"correct horse","nickname":"Amy","client":"phone"}`, save: "id=account.id renewal=renewal token=token"},
	{op: "register", body: `{"nickname":"Guest"}`, save: "guest=account.id guest_token=token"},
	{op: "register", body: `{"name":"Amy@Example.com","password":"correct horse"}`, status: 409, code: "conflict"},
	{op: "logIn", body: `{"name":"amy@example.com","password":"correct horse","client":"phone"}`},
	{op: "logIn", body: `{"name":"amy@example.com","password":"wrong"}`, status: 401, code: "unauthorized"},
	{op: "requestChallenge", body: `{"message":"n,,n=amy@example.com,r=fyko+d2lbbFgONRv9qkxdawL"}`},
	{op: "renewSession", body: `{"renewal":"{{renewal}}"}`, save: "newer=renewal"},
	{op: "renewSession", body: `{"renewal":"nonsense"}`, status: 401, code: "unauthorized"},
	{op: "getMyAccount", header: "Authorization: Bearer {{token}}"},
	{op: "getMyAccount", status: 401, code: "unauthorized"},
	{op: "patchMyAccount", header: "Authorization: Bearer {{token}}", body: `{"nickname":"Amélie"}`},
	{op: "patchMyAccount", header: "Authorization: Bearer {{guest_token}}", body: `{"name":"guest","password":"battery staple"}`},
	{op: "patchMyAccount", header: "Authorization: Bearer {{guest_token}}", body: `{"name":"amy@example.com","password":"battery staple"}`, status: 409, code: "conflict"},
	{op: "patchMyAccount", body: `{"nickname":"x"}`, status: 401, code: "unauthorized"},
	{op: "changeMyPassword", header: "Authorization: Bearer {{token}}", body: `{"password":"correct horse","new":"battery staple"}`},
	{op: "changeMyPassword", header: "Authorization: Bearer {{guest_token}}", body: `{"password":"wrong","new":"battery staple"}`, status: 401, code: "unauthorized"},
	{op: "logIn", body: `{"name":"amy@example.com","password":"battery staple"}`, save: "renewal=renewal"},
	{op: "logOut", body: `{"renewal":"{{renewal}}","everywhere":true}`},
	{op: "logOut", body: `{"renewal":"{{renewal}}"}`, status: 401, code: "unauthorized"},

	// Calls of the backend.
	{op: "listAccounts", query: "limit=1&state=open", save: "cursor=cursor"},
	{op: "listAccounts", query: "limit=1&state=open&cursor={{cursor}}"},
	{op: "listAccounts", query: "name=amy@example.com"},
	{op: "listAccounts", query: "name=unknown", status: 404, code: "not_found"},
	{op: "getAccount", path: "{{id}}"},
	{op: "getAccount", path: "unknown", status: 404, code: "not_found"},
	{op: "getAccountHistory", path: "{{id}}"},
	{op: "getAccountHistory", path: "unknown", status: 404, code: "not_found"},
	{op: "renameAccount", path: "{{id}}", body: `{"name":"amy@example.org"}`},
	{op: "renameAccount", path: "{{id}}", body: `{"name":"guest"}`, status: 409, code: "conflict"},
	{op: "renameAccount", path: "unknown", body: `{"name":"x"}`, status: 404, code: "not_found"},
	{op: "setAccountPassword", path: "{{id}}", body: `{"password":"correct horse"}`},
	{op: "setAccountPassword", path: "unknown", body: `{"password":"correct horse"}`, status: 404, code: "not_found"},
	{op: "register", body: `{}`, save: "nameless=account.id"},
	{op: "setAccountPassword", path: "{{nameless}}", body: `{"password":"correct horse"}`, status: 409, code: "conflict"},

	{op: "lockAccount", path: "{{id}}"},
	{op: "lockAccount", path: "unknown", status: 404, code: "not_found"},
	{op: "logIn", body: `{"name":"amy@example.org","password":"correct horse"}`, status: 423, code: "locked"},
	{op: "patchMyAccount", header: "Authorization: Bearer {{token}}", body: `{"nickname":"x"}`, status: 423, code: "locked"},
	{op: "changeMyPassword", header: "Authorization: Bearer {{token}}", body: `{"password":"correct horse","new":"battery staple"}`, status: 423, code: "locked"},
	{op: "deleteMyAccount", header: "Authorization: Bearer {{token}}", body: `{"password":"correct horse"}`, status: 423, code: "locked"},
	{op: "restoreAccount", path: "{{id}}", status: 409, code: "conflict"},
	{op: "unlockAccount", path: "{{id}}"},
	{op: "unlockAccount", path: "unknown", status: 404, code: "not_found"},
	{op: "deleteMyAccount", header: "Authorization: Bearer {{token}}", body: `{"password":"correct horse"}`},
	{op: "deleteMyAccount", body: `{"password":"correct horse"}`, status: 401, code: "unauthorized"},
	{op: "lockAccount", path: "{{id}}", status: 409, code: "conflict"},
	{op: "unlockAccount", path: "{{id}}", status: 409, code: "conflict"},
	{op: "restoreAccount", path: "{{id}}"},
	{op: "restoreAccount", path: "unknown", status: 404, code: "not_found"},
	{op: "deleteAccount", path: "{{nameless}}"},
	{op: "deleteAccount", path: "unknown", status: 404, code: "not_found"},

	// Documents of users.
	{op: "putSession", path: "amy", query: "ttl=60", body: `{"room":"7"}`, header: "If-None-Match: *", save: "version=version"},
	{op: "putSession", path: "amy", body: `{"room":"8"}`, header: "If-None-Match: *", status: 409, code: "conflict"},
	{op: "putSession", path: "bob", body: `1`, header: "If-Match: *", status: 409, code: "conflict"},
	{op: "putSession", path: "amy", query: "ttl=0", body: `{}`, status: 400, code: "bad_request"},
	{op: "putSession", path: "amy", body: `"` + strings.Repeat("x", 17_000) + `"`, status: 413, code: "too_large"},
	{op: "getSession", path: "amy"},
	{op: "getSession", path: "bob", status: 404, code: "not_found"},
	{op: "deleteSession", path: "amy", header: `If-Match: "1"`, status: 409, code: "conflict"},
	{op: "deleteSession", path: "amy", header: `If-Match: "{{version}}"`},
	{op: "putSession", path: "amy", body: `{"room":"7"}`},
}

// floods are calls that are repeated until the limits of attempts refuse them.
var floods = []step{
	{op: "register", body: `{}`},
	{op: "requestChallenge", body: `{"message":"n,,n=eve,r=fyko+d2lbbFgONRv9qkxdawL"}`},
	{op: "logIn", body: `{"name":"eve","password":"wrong"}`},
	{op: "patchMyAccount", header: "Authorization: Bearer {{guest_token}}", body: `{"name":"x","password":"wrong"}`},
	{op: "changeMyPassword", header: "Authorization: Bearer {{guest_token}}", body: `{"password":"wrong","new":"battery staple"}`},
	{op: "deleteMyAccount", header: "Authorization: Bearer {{guest_token}}", body: `{"password":"wrong"}`},
}

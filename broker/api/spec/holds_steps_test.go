package spec_test

import "strings"

// holdSteps are calls about holds. {{in_an_hour}} is a time in ms since 1970.
var holdSteps = []step{
	{op: "putResource", path: "play-7", body: `{"seats":["A1..A20","box-left"],"per_user":1,"hold_ms":60000,"max_life_ms":60000,"data":{"title":"Hamlet"}}`,
		header: "If-None-Match: *", save: "version=version"},
	{op: "putResource", path: "play-7", body: `{"seats":["A1..A20"]}`, header: "If-None-Match: *", status: 409, code: "conflict"},
	{op: "putResource", path: "units", body: `{"capacity":2}`},
	{op: "putResource", path: "import", body: `{"seats":["A1..A3"],"import":[{"id":"o-1","seats":["A1"]},{"id":"o-2","user":"amy","seats":["Z1"]}]}`, status: 404, code: "not_found"},
	{op: "putResource", path: "import", body: `{"seats":["A1..A3"],"import":[{"id":"o-1","seats":["A1"]},{"id":"o-2","user":"amy","seats":["A2"],"until":{{in_an_hour}}}]}`},
	{op: "putResource", path: "units", body: `{"capacity":2,"data":"` + strings.Repeat("x", 5000) + `"}`, status: 413, code: "too_large"},

	{op: "holdPlaces", path: "play-7", body: `{"id":"order-1","user":"bob","seats":["A1","A2"],"hold_ms":60000}`},
	{op: "holdPlaces", path: "play-7", body: `{"id":"order-2","user":"amy","seats":["A2","A3"]}`, status: 409, code: "conflict"},
	{op: "holdPlaces", path: "play-7", body: `{"id":"order-2","user":"bob","seats":["A3"]}`, status: 409, code: "conflict"},
	{op: "holdPlaces", path: "play-7", body: `{"seats":["Z1"]}`, status: 404, code: "not_found"},
	{op: "holdPlaces", path: "nowhere", body: `{"seats":["Z1"]}`, status: 404, code: "not_found"},
	{op: "holdPlaces", path: "units", body: `{"count":2}`, save: "units=id"},
	{op: "holdPlaces", path: "units", body: `{"count":1}`, status: 409, code: "full"},
	{op: "holdPlaces", path: "units", body: `{"count":65}`, status: 413, code: "too_large"},
	{op: "sellPlaces", path: "units", body: `{"count":1}`, status: 409, code: "full"},
	{op: "sellPlaces", path: "units", body: `{"count":65}`, status: 413, code: "too_large"},
	{op: "sellPlaces", path: "play-7", body: `{"id":"order-9","user":"amy","seats":["A9"]}`},
	{op: "sellPlaces", path: "play-7", body: `{"seats":["Z1"]}`, status: 404, code: "not_found"},

	{op: "getHold", path: "play-7 order-1"},
	{op: "getHold", path: "play-7 nothing", status: 404, code: "not_found"},
	{op: "listHoldsOfUser", path: "play-7 bob"},
	{op: "listHoldsOfUser", path: "nowhere bob", status: 404, code: "not_found"},
	{op: "renewHold", path: "units {{units}}", body: `{"durable":false}`},
	{op: "renewHold", path: "play-7 nothing", status: 404, code: "not_found"},
	{op: "renewHold", path: "play-7 order-1", status: 409, code: "limit"},
	{op: "confirmHold", path: "play-7 order-1"},
	{op: "confirmHold", path: "play-7 nothing", status: 404, code: "not_found"},
	{op: "releaseHold", path: "units {{units}}"},
	{op: "releaseHold", path: "units nothing", status: 404, code: "not_found"},
	{op: "releaseHold", path: "import o-2"},

	// A hold that has ended.
	{op: "confirmHold", path: "units {{units}}", status: 410, code: "expired"},
	{op: "renewHold", path: "units {{units}}", status: 410, code: "expired"},
	{op: "holdPlaces", path: "units", body: `{"id":"{{units}}","count":2}`, status: 410, code: "expired"},
	{op: "sellPlaces", path: "units", body: `{"id":"{{units}}","count":2}`, status: 410, code: "expired"},
	{op: "getResource", path: "import", save: "version=version"},
	{op: "putResource", path: "import", body: `{"seats":["A1..A3"],"import":[{"id":"o-2","user":"amy","seats":["A2"]}]}`, header: `If-Match: "{{version}}"`, status: 410, code: "expired"},

	{op: "getResource", path: "play-7"},
	{op: "getResource", path: "nowhere", status: 404, code: "not_found"},
	{op: "queryResources", body: `{"resources":["play-7","nowhere"]}`},
	{op: "queryResources", body: `{"resources":["x"` + strings.Repeat(`,"x"`, 100) + `]}`, status: 413, code: "too_large"},
	{op: "listResources", query: "limit=2"},
	{op: "deleteResource", path: "import", header: `If-Match: "1"`, status: 409, code: "conflict"},
	{op: "deleteResource", path: "import"},
	{op: "deleteResource", path: "import", status: 404, code: "not_found"},
}

// boardSteps are calls about boards. {{last_week}} is the id of the season before the current one.
var boardSteps = []step{
	{op: "submitScore", path: "chess", body: `{"player":"amy","score":1500}`},
	{op: "submitScore", path: "chess", body: `{"player":"bob","score":75,"mode":"add","operation":"game-811"}`},
	{op: "submitScore", path: "chess", body: `{"player":"bob","score":75,"mode":"add","operation":"game-811"}`},
	{op: "submitScore", path: "chess", body: `{"player":"bob","score":9007199254740991,"mode":"add","operation":"game-812"}`, status: 409, code: "limit"},
	{op: "submitScore", path: "weekly", body: `{"board":"weekly","player":"amy","score":3,"mode":"set"}`},
	{op: "submitScore", path: "weekly", body: `{"player":"amy","score":3,"season":"{{last_week}}"}`, status: 410, code: "expired"},
	{op: "submitScore", path: "nowhere", body: `{"player":"amy","score":3}`, status: 404, code: "not_found"},
	{op: "listBoards", query: "limit=100"},
	{op: "listBoards", query: "limit=101", status: 400, code: "bad_request"},
	{op: "getBoard", path: "chess", query: "offset=0&limit=2"},
	{op: "getBoard", path: "weekly", query: "season=previous"},
	{op: "getBoard", path: "nowhere", status: 404, code: "not_found"},
	{op: "getStanding", path: "chess bob"},
	{op: "getStanding", path: "weekly amy"},
	{op: "getStanding", path: "chess cat", status: 404, code: "not_found"},
	{op: "getStanding", path: "chess a_SPACE_b", status: 400, code: "bad_request"},
	{op: "getNeighbors", path: "chess bob", query: "limit=1"},
	{op: "getNeighbors", path: "chess cat", status: 404, code: "not_found"},
	{op: "removePlayer", path: "chess bob"},
	{op: "removePlayer", path: "nowhere bob", status: 404, code: "not_found"},
	{op: "removePlayer", path: "chess a_SPACE_b", status: 400, code: "bad_request"},
}

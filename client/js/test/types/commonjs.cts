// The types of CommonJS.
import client = require("switchboard-client");
import kit = require("switchboard-client/kit");
import server = require("switchboard-client/server");

const sb: client.Switchboard = new client.Switchboard("ws://127.0.0.1:8080/ws");
void new kit.Rooms(sb).get("r").then((info) => info.room.status);
void new server.Backend("http://127.0.0.1:8080").servers();

// A small game server on Colyseus, to compare with this project's rooms. A room holds players, each
// with a position. A client sends "move" with {x, y}, which becomes the position of its player.
//
//   node server.js HOST PORT each     every change is sent at once, in a patch of its own
//   node server.js HOST PORT 50       changes are collected and sent every 50 ms, the default
import { Room, Server } from "@colyseus/core";
import { schema, t } from "@colyseus/schema";
import { WebSocketTransport } from "@colyseus/ws-transport";

const [host, port, patches] = process.argv.slice(2);
const each = patches === "each";

const Player = schema({ x: t.int32(), y: t.int32() }, "Player");
const State = schema({ players: t.map(Player) }, "State");

class Field extends Room {
  // Without a patch rate, the room would instead wake 60 times a second for its clock. An hour is
  // never reached, and costs nothing.
  patchRate = each ? 3_600_000 : Number(patches);

  onCreate({ capacity, keep }) {
    this.maxClients = capacity;
    this.state = new State();
    if (keep) {
      // The room stays without players, and the seat of its creator is free at once.
      this.autoDispose = false;
      this.seatReservationTimeout = 0.1;
    }
    this.onMessage("move", (client, { x, y }) => {
      const player = this.state.players.get(client.sessionId);
      player.x = x;
      player.y = y;
      this.changed();
    });
  }

  onJoin(client) {
    this.state.players.set(client.sessionId, new Player());
    this.changed();
  }

  onLeave(client) {
    this.state.players.delete(client.sessionId);
    this.changed();
  }

  changed() {
    if (each) {
      this.broadcastPatch();
    }
  }
}

const server = new Server({ transport: new WebSocketTransport(), greet: false, gracefullyShutdown: false });
server.define("field", Field);
await server.listen(Number(port), host);

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => process.exit(0));
}

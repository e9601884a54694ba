// A small server on socket.io with its Redis adapter, to compare with this project's broker.
// Subscribers join rooms over WebSocket, a backend publishes with HTTP POST /publish/ROOM.
//
//   node server.js HOST PORT redis://HOST:PORT
import { createServer } from "node:http";
import { createAdapter } from "@socket.io/redis-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";

const [host, port, redis] = process.argv.slice(2);

const http = createServer();
const io = new Server(http, { transports: ["websocket"], serveClient: false });

if (redis) {
  const publisher = createClient({ url: redis });
  const subscriber = publisher.duplicate();
  for (const client of [publisher, subscriber]) {
    client.on("error", (err) => console.error(err.message));
  }
  await Promise.all([publisher.connect(), subscriber.connect()]);
  io.adapter(createAdapter(publisher, subscriber));
}

io.on("connection", (socket) => {
  // Joining is asynchronous with some adapters.
  socket.on("subscribe", async (room, answer) => {
    await socket.join(room);
    answer();
  });
});

// socket.io handles its own path. This handles all others.
http.on("request", (req, res) => {
  if (req.method !== "POST" || !req.url.startsWith("/publish/")) {
    return;
  }
  const parts = [];
  req.on("data", (part) => parts.push(part));
  req.on("end", () => {
    io.to(decodeURIComponent(req.url.slice("/publish/".length))).emit("message", JSON.parse(Buffer.concat(parts)));
    res.end();
  });
});

http.keepAliveTimeout = 0; // do not close idle connections of publishers
http.listen(Number(port), host);

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => process.exit(0));
}

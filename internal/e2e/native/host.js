// Runs the bundle that is given as the argument in Hermes, and is the native part of React Native
// for it, see environment.js. Input and output are those of js/clients.js. The lines "background"
// and "foreground" suspend and continue the application.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import WebSocket from "ws";

const hermes = spawn(
  "native/node_modules/hermes-engine-cli/linux64-bin/hermes",
  ["-prompt=", "-prompt2="], // without a file, it executes each line of its input
  { stdio: ["pipe", "pipe", "inherit"] },
);
const ascii = (value) =>
  JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
hermes.stdin.write(`void (0, eval)(${ascii(readFileSync(process.argv[2], "utf8"))})\n`);

let suspended; // the events of a suspended application
const emit = (event, data = null) =>
  suspended ? suspended.push([event, data]) : hermes.stdin.write(`fromHost(${ascii(event)}, ${ascii(data)})\n`);

const timers = new Map();
const sockets = new Map();
const requests = new Map();

/** Handles a message of the application. */
function handle(m) {
  if (m.report) process.stdout.write(`${JSON.stringify(m.report)}\n`);
  else if (m.log) process.stderr.write(`${m.log}\n`);
  else if (m.timer) {
    const start = m.repeat ? setInterval : setTimeout;
    timers.set(
      m.timer,
      start(() => emit("timer", m.timer), m.delay),
    );
  } else if (m.clear) clearTimeout(timers.get(m.clear));
  else if (m.connect) connect(m.connect, m.socket);
  else if (m.send !== undefined) sockets.get(m.socket)?.send(m.send);
  else if (m.close) sockets.get(m.socket)?.close(m.close);
  else if (m.request) void request(m);
  else requests.get(m.abort)?.abort();
}

function connect(url, id) {
  const socket = new WebSocket(url);
  sockets.set(id, socket);
  let failure;
  socket.on("open", () => emit("websocketOpen", { id, protocol: "" }));
  socket.on("message", (data) => emit("websocketMessage", { id, type: "text", data: String(data) }));
  socket.on("error", (error) => (failure = error));
  socket.on("close", (code, reason) => {
    if (!sockets.delete(id)) return;
    if (failure || code === 1006) emit("websocketFailed", { id, message: String(failure) });
    else emit("websocketClosed", { id, code, reason: String(reason) });
  });
}

async function request({ request: id, method, url, headers, body }) {
  const abort = new AbortController();
  requests.set(id, abort);
  try {
    const response = await fetch(url, { method, headers, body, signal: abort.signal });
    emit("didReceiveNetworkResponse", [id, response.status, Object.fromEntries(response.headers), url]);
    const text = await response.text();
    emit("didReceiveNetworkData", [id, { blobId: text, offset: 0, size: text.length, type: "" }]);
    emit("didCompleteNetworkResponse", [id, null, false]);
  } catch (error) {
    emit("didCompleteNetworkResponse", [id, String(error), false]);
  }
}

createInterface({ input: hermes.stdout }).on("line", (line) => {
  const start = line.indexOf("\u001e");
  if (start >= 0) handle(JSON.parse(line.slice(start + 1)));
  else if (line !== "undefined") process.stdout.write(`${line}\n`); // an exception: the test fails
});

createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (line === "background") {
      emit("appStateDidChange", { app_state: "background" });
      suspended = [];
      for (const [id, socket] of sockets) {
        sockets.delete(id); // no event follows
        socket.terminate();
      }
    } else if (line === "foreground") {
      const events = suspended;
      suspended = undefined;
      emit("appStateDidChange", { app_state: "active" });
      for (const [event, data] of events) emit(event, data);
    } else emit(...(line === "leave" ? ["leave"] : ["plans", JSON.parse(line)]));
  })
  .on("close", () => {
    hermes.kill();
    process.exit();
  });

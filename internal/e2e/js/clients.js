// Runs many clients in one process. The first line of stdin is a JSON array of plans. Every event
// of a client is one JSON line on stdout. The line "leave" disconnects all clients. The end of
// stdin ends the process.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import WebSocket from "ws";
import { newClient } from "./roles.js";

globalThis.WebSocket ??= WebSocket; // Node before 22 has none

function openWebSocket(url, on) {
  const socket = new WebSocket(url);
  socket.on("open", on.opened);
  socket.on("message", (data) => on.text(data.toString()));
  socket.on("error", () => {}); // close follows
  socket.on("close", on.closed);
  return { send: (text) => socket.send(text), close: () => socket.close(), drop: () => socket.terminate() };
}

/** Interval in ms of pings over nc: it notices a dead peer only when it writes. */
const heartbeat = 250;

function openNetcat(url, on) {
  const { hostname, port } = new URL(url);
  const nc = spawn("nc", ["-N", hostname, port], { stdio: ["pipe", "pipe", "inherit"] });
  const send = (text) => nc.stdin.write(text + "\n");
  const beat = setInterval(send, heartbeat, '{"type":"ping"}');
  let rest = ""; // an incomplete line; a killed broker may leave one
  nc.stdout.setEncoding("utf8").on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    lines.forEach((line) => on.text(line));
  });
  nc.stdin.on("error", () => {}); // close follows
  nc.on("close", () => {
    clearInterval(beat);
    on.closed();
  });
  queueMicrotask(on.opened); // stdin accepts text before nc is connected
  return {
    send,
    close: () => {
      clearInterval(beat);
      nc.stdin.end();
    },
  };
}

const report = (event) => process.stdout.write(JSON.stringify(event) + "\n");

let sessions;
const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  if (line === "leave") {
    sessions.forEach((s) => s.leave());
    return;
  }
  sessions = JSON.parse(line).map((plan) =>
    newClient(plan, plan.urls[0].startsWith("tcp:") ? openNetcat : openWebSocket, report));
});
input.on("close", () => process.exit());

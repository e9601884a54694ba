// Runs the clients of one page. It posts their events in batches to the server of the page, one
// batch at a time. The server answers GET /leave when the clients must disconnect.
import { newClient } from "./roles.js";

function open(url, on) {
  const socket = new WebSocket(url);
  socket.onopen = on.opened;
  socket.onmessage = (m) => on.text(m.data);
  socket.onclose = on.closed;
  return { send: (text) => socket.send(text), close: () => socket.close() };
}

let events = [];
let posting = false;

async function report(event) {
  events.push(event);
  if (posting) {
    return;
  }
  posting = true;
  while (events.length > 0) {
    const body = JSON.stringify(events);
    events = [];
    await fetch("/events", { method: "POST", body });
  }
  posting = false;
}

const plans = await (await fetch("/plans")).json();
const sessions = plans.map((plan) => newClient(plan, open, report));
await fetch("/leave");
sessions.forEach((s) => s.leave());

// Runs clients of client/js, as it was built, for the fault ledger. Each line of stdin is a command:
//
//	{"start": plan}      starts a client
//	{"reload": client}   closes it, and starts another one with its storage
//	{"leave": client}    ends it
//	{"held": true}       asks each client that follows a state for all of its fields
//
// Each line of stdout is an event of a client, see the type sdkEvent in Go. A message is reported by
// the handler of the application. The end of stdin ends the process.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Switchboard } from "../../client/js/dist/index.js";

const WebSocket = createRequire(new URL("../e2e/js/", import.meta.url))("ws");
const clients = new Map();

class Client {
  constructor(plan) {
    this.plan = plan;
    this.storage = new Map();
    this.missing = new Set(plan.channels); // channels that were never subscribed
    this.failed = new Set(); // ids of messages that a handler has failed to handle
    this.handled = 0;
    this.open();
  }

  /** Does what a page does that is loaded. The positions are in the storage. */
  open() {
    const { plan } = this;
    const sb = (this.sb = new Switchboard(plan.urls, {
      WebSocket, client: plan.client, token: plan.token, storage: this.storage, backoffMin: plan.backoffMin, backoffMax: plan.backoffMax,
    }));
    sb.on("connected", ({ server }) => this.report("connected", { server }));
    sb.on("disconnected", () => this.report("disconnected"));
    sb.on("closed", ({ code, message }) => sb === this.sb && this.report("left", { detail: `${code}: ${message}` }));
    sb.on("error", (error) => error === later || this.report("failed", { detail: String(error) }));
    sb.inbox.on("message", (data, info) => {
      if (data.n % plan.failEvery === 0 && !this.failed.has(info.id)) {
        this.failed.add(info.id);
        throw later;
      }
      return this.handle(data, info);
    });
    sb.all.on("message", (data, info) => this.handle(data, info));
    const channels = plan.channels.map((name) => sb.channel(name, { state: name === plan.state }));
    for (const channel of channels) {
      channel.on("message", (data, info) => this.handle(data, info));
      channel.on("subscribed", () => this.missing.delete(channel.name) && this.missing.size === 0 && this.report("ready"));
      channel.on("unsubscribed", (error) => this.report("failed", { channel: channel.name, detail: String(error) }));
    }
    for (const feed of [sb.inbox, sb.all, ...channels]) {
      feed.on("erase", (id, { channel }) => this.report("erase", { channel, id }));
      feed.on("gap", ({ after, id }) => this.report("gap", { channel: feed.name, after: after ?? 0, id }));
    }
    if (plan.state) sb.channel(plan.state).state.on("change", (change) => this.changed(change));
  }

  /** Does what a reload of a page does, unless it is doing so, or the client has ended. */
  async reload() {
    const closing = this.sb;
    if (!closing || closing.phase === "closed") return;
    this.sb = undefined;
    this.report("disconnected");
    await (this.closed = closing.close());
    this.open();
  }

  async leave() {
    await this.closed;
    await this.sb.close();
  }

  handle(data, { id, channel }) {
    const { slowEvery, slowTime } = this.plan;
    this.report("message", { channel, id, stream: data.stream, n: data.n });
    if (slowEvery && ++this.handled % slowEvery === 0) return new Promise((done) => setTimeout(done, slowTime));
  }

  report(event, more) {
    process.stdout.write(JSON.stringify({ client: this.plan.client, event, ...more }) + "\n");
  }

  /** Reports a change of the state. Of the fields, it reports only those with limits. */
  changed({ id, full, away, gone }) {
    const fields = this.fields((name) => this.plan.limited.some((prefix) => name.startsWith(prefix)));
    const names = (part) => Object.keys(part ?? {});
    this.report(full ? "pages" : "change", { channel: this.plan.state, id, away: names(away), gone: names(gone), fields });
  }

  /** The fields that match, as on the wire. */
  fields(match) {
    const entries = [...this.sb.channel(this.plan.state).state.entries()].filter(([name]) => match(name));
    return Object.fromEntries(
      entries.map(([name, { id, value, until, away }]) => [name, [id, value, until ?? 0, ...(away ? ["away"] : [])]]),
    );
  }
}

/** The error of a handler that succeeds when it is called again. */
const later = new Error("later");

const commands = {
  start: (plan) => clients.set(plan.client, new Client(plan)),
  reload: (client) => clients.get(client).reload(),
  leave: (client) => clients.get(client).leave(),
  held: () => {
    for (const client of clients.values()) {
      if (client.plan.state) client.report("held", { fields: client.fields(() => true) });
    }
  },
};
const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  for (const [name, argument] of Object.entries(JSON.parse(line))) commands[name](argument);
});
input.on("close", () => process.exit());

// A client of client/js, as it was built. It runs in Node, in a browser and in React Native.
import { Switchboard } from "../../../client/js/dist/index.js";

/**
 * Reports each message once the handler has it. One of fifteen messages of the inbox fails at first,
 * so it must arrive again. Each message of plan.state must come with the change that it made. For
 * every sixth message to all clients, it increments a field by a transaction. `options` are more
 * options of the Switchboard.
 */
export class SdkClient {
  constructor(plan, _open, report, options) {
    this.report = (event, more) => report({ client: plan.client, event, ...more });
    const sb = (this.sb = new Switchboard(plan.urls, {
      client: plan.client,
      user: plan.user,
      backoffMin: 20,
      backoffMax: 500,
      pingAfter: 1000,
      pingTimeout: 1000,
      ...options,
    }));
    const message = (data, { id, channel }) =>
      this.report("message", { channel, id, stream: data.stream, n: data.n, pad: data.pad?.length ?? 0 });
    const fail = (event) => (gap) => this.report(event, { detail: JSON.stringify(gap) });

    let server;
    let missing = 0; // channels that are not subscribed on this connection
    const subscribed = () => --missing === 0 && this.report("ready", { server });
    const names = [...plan.channels, plan.state, plan.total];
    sb.on("connected", (connected) => {
      server = connected.server;
      missing = names.length;
    });
    sb.on("disconnected", () => this.report("closed"));
    sb.on("closed", () => this.report("left"));
    sb.on("error", (error) => error.message === "later" || this.report("error", { detail: String(error) }));

    const failed = new Set();
    sb.inbox.on("message", async (data, info) => {
      await new Promise((resolve) => setTimeout(resolve));
      if (data.n % 15 === 0 && !failed.has(info.id)) {
        failed.add(info.id);
        throw new Error("later");
      }
      message(data, info);
    });
    sb.all.on("message", message);
    sb.all.on("message", (data) => {
      if (data.n % 6 === 0) total.transact((s) => (s.n = (s.n ?? 0) + 1)).catch(fail("error"));
    });
    for (const name of plan.channels) sb.channel(name).on("message", message);
    const state = sb.channel(plan.state, { state: true });
    state.on("message", (data, info) => {
      if (state.state.get("n") !== data.n)
        this.report("wrong state", { detail: `${state.state.get("n")} at ${data.n}` });
      message(data, info);
    });
    const total = sb.channel(plan.total, { state: true });
    for (const feed of [sb.inbox, sb.all, ...names.map((name) => sb.channel(name))]) feed.on("gap", fail("gap"));
    for (const name of names) sb.channel(name).on("subscribed", subscribed);
  }

  leave() {
    this.sb.close();
  }
}

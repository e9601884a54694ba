// The client's side of the protocol, over whatever carries lines of text: the same code
// runs in Node over the package ws and over nc, and in a browser over its own WebSocket.

/**
 * A client that stays: when its connection ends it goes to the next URL under the same
 * client id and resumes every channel behind the last id it saw.
 */
export class Session {
  /**
   * @param plan {client, user?, urls, channels, ackEvery}
   * @param open (url, {opened, text, closed}) => {send(text), close()}
   * @param report called with every event, an object with `client` and `event`
   */
  constructor(plan, open, report) {
    this.plan = plan;
    this.open = open;
    this.report = (event, more) => report({ client: plan.client, event, conn: this.conn, ...more });
    this.conn = 0;
    this.leaving = false;
    this.after = new Map(); // channel -> last id seen
    this.seen = new Map(); // queue -> ids seen; "" is the client queue
    this.instance = Math.random().toString(36).slice(2, 10); // so that no attempt takes the client back from a later one
    this.connect();
  }

  connect() {
    const url = this.plan.urls[this.conn % this.plan.urls.length];
    this.conn++;
    this.subscribing = new Set(this.plan.channels);
    this.owed = { count: 0, id: 0 }; // to be acknowledged: only what came on this connection may be
    this.link = this.open(url, {
      opened: () => this.send({
        type: "connect", ref: 1, client: this.plan.client, user: this.plan.user, after: this.after.get("$all"),
        instance: this.instance, attempt: this.conn,
      }),
      text: (text) => this.receive(JSON.parse(text)),
      closed: () => this.closed(),
    });
  }

  closed() {
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    this.report(this.leaving ? "left" : "closed");
    if (!this.leaving) {
      this.retryTimer = setTimeout(() => this.connect(), 10 + 90 * Math.random());
    }
  }

  send(message) {
    this.link.send(JSON.stringify(message));
  }

  receive(m) {
    switch (m.type) {
      case "connected":
        this.server = m.server;
        if (!this.after.has("$all")) {
          this.after.set("$all", m.id);
        }
        for (const channel of this.plan.channels) {
          this.send({ type: "subscribe", ref: 2, channel, after: this.after.get(channel) });
        }
        this.readyWhenSubscribed();
        break;
      case "subscribed":
        if (!this.after.has(m.channel)) {
          this.after.set(m.channel, m.id);
        }
        if (m.recovered === false) {
          this.report("gap", { channel: m.channel, detail: "not recovered" });
        }
        this.subscribing.delete(m.channel);
        this.readyWhenSubscribed();
        break;
      case "message":
        this.message(m);
        break;
      case "ping":
        this.send({ type: "pong" });
        break;
      case "pong":
        break;
      case "closing":
        this.leaving ||= !m.reconnect;
        this.report("closing", { detail: m.code });
        break;
      default: // gap, error, and what must not come at all
        this.report(m.type, { channel: m.channel, detail: JSON.stringify(m) });
    }
  }

  readyWhenSubscribed() {
    if (this.subscribing.size === 0) {
      this.report("ready", { server: this.server });
    }
  }

  message(m) {
    const queue = m.channel ?? "";
    const seen = this.seen.get(queue) ?? new Set();
    this.seen.set(queue, seen);
    this.report(seen.has(m.id) ? "duplicate" : "message", {
      channel: queue, id: m.id, stream: m.data.stream, n: m.data.n, pad: m.data.pad?.length ?? 0,
    });
    seen.add(m.id);
    if (queue !== "") {
      this.after.set(queue, m.id);
    } else {
      this.acknowledge(m.id);
    }
  }

  /** Acknowledges once for several messages, or when no more came for a moment. */
  acknowledge(id) {
    this.owed.id = id;
    if (++this.owed.count >= this.plan.ackEvery) {
      this.sendAck();
    } else {
      this.ackTimer ??= setTimeout(() => this.sendAck(), 50);
    }
  }

  sendAck() {
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    if (this.owed.count > 0) {
      this.send({ type: "ack", id: this.owed.id });
      this.owed.count = 0;
    }
  }

  /** Ends the connection, for good. */
  leave() {
    this.leaving = true;
    clearTimeout(this.retryTimer);
    this.sendAck();
    this.link.close();
  }
}

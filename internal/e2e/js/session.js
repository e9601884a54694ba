// The client side of the protocol. It runs over any connection that carries lines of text: in Node
// over the package ws and over nc, and in a browser over its WebSocket.

/**
 * A client that reconnects. When its connection ends, it connects to the next URL with the same
 * client id and resumes every channel after the last id that it has received.
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
    this.after = new Map(); // channel -> last id received
    this.received = new Map(); // queue -> ids received; "" is the client queue
    this.instance = Math.random().toString(36).slice(2, 10); // an older attempt must not replace a newer one
    this.connect();
  }

  connect() {
    const url = this.plan.urls[this.conn % this.plan.urls.length];
    this.conn++;
    this.subscribing = new Set(this.plan.channels);
    this.unacked = { count: 0, id: 0 }; // messages of this connection; only they may be acknowledged on it
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
      default: // gap, error, and unexpected types
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
    const received = this.received.get(queue) ?? new Set();
    this.received.set(queue, received);
    this.report(received.has(m.id) ? "duplicate" : "message", {
      channel: queue, id: m.id, stream: m.data.stream, n: m.data.n, pad: m.data.pad?.length ?? 0,
    });
    received.add(m.id);
    if (queue !== "") {
      this.after.set(queue, m.id);
    } else {
      this.acknowledge(m.id);
    }
  }

  /** Acknowledges several messages at once, after plan.ackEvery messages or 50 ms. */
  acknowledge(id) {
    this.unacked.id = id;
    if (++this.unacked.count >= this.plan.ackEvery) {
      this.sendAck();
    } else {
      this.ackTimer ??= setTimeout(() => this.sendAck(), 50);
    }
  }

  sendAck() {
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    if (this.unacked.count > 0) {
      this.send({ type: "ack", id: this.unacked.id });
      this.unacked.count = 0;
    }
  }

  /** Disconnects and does not reconnect. */
  leave() {
    this.leaving = true;
    clearTimeout(this.retryTimer);
    this.sendAck();
    this.link.close();
  }
}

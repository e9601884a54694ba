// The client side of channel state. It runs in Node and in a browser, like session.js.

/** The fields of one channel, from pages and messages. */
export class Fields {
  constructor() {
    this.fields = new Map(); // name -> [id, value]
    this.series = 0; // id of the last series of pages
    this.complete = false; // the last page of the series has arrived
  }

  page(m) {
    if (m.first) {
      this.fields.clear();
    }
    for (const [name, field] of Object.entries(m.fields)) {
      this.fields.set(name, field);
    }
    this.series = m.id;
    this.complete = !m.more;
  }

  message(m) {
    if (m.id <= this.series) {
      return;
    }
    if (m.cleared) {
      this.fields.clear();
    }
    for (const name of [...Object.keys(m.gone ?? {}), ...(m.del ?? [])]) {
      this.fields.delete(name);
    }
    for (const [name, value] of Object.entries(m.set ?? {})) {
      this.fields.set(name, [m.id, value]);
    }
  }

  /** The names and ids of a group, in the order of names, as JSON. */
  list(group) {
    const found = [...this.fields].filter(([name]) => name.startsWith(group));
    return JSON.stringify(found.map(([name, field]) => [name, field[0]]).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  count(group) {
    return [...this.fields.keys()].filter((name) => name.startsWith(group)).length;
  }
}

/**
 * A client that is subscribed to one channel with its state. When its connection ends, it connects
 * to the next URL with the same client id. It resumes after the last id that it has received, and
 * every second time without new pages.
 *
 * A subclass has the methods subscribed(), changed(), published(m) and refused(m).
 */
export class StateClient {
  /**
   * @param plan {client, user, urls, channel}
   * @param open (url, {opened, text, closed}) => {send(text), close(), drop()}
   * @param report called with every event, an object with `client` and `event`
   */
  constructor(plan, open, report) {
    this.plan = plan;
    this.open = open;
    this.report = (event, more) => report({ client: plan.client, event, conn: this.conn, ...more });
    this.conn = 0;
    this.ref = 10;
    this.leaving = false;
    this.state = new Fields();
    this.position = undefined;
    this.instance = Math.random().toString(36).slice(2, 10);
    this.connect();
  }

  connect() {
    const url = this.plan.urls[this.conn % this.plan.urls.length];
    const conn = ++this.conn;
    const current = (f) => (...args) => conn === this.conn && f(...args); // an old connection may still report
    this.isSubscribed = false;
    this.link = this.open(url, {
      opened: current(() => {
        this.send({
          type: "connect", ref: 1, client: this.plan.client, user: this.plan.user, instance: this.instance, attempt: conn,
        });
        this.subscribe();
      }),
      text: current((text) => this.receive(JSON.parse(text))),
      closed: current(() => this.closed()),
    });
  }

  subscribe() {
    const held = this.conn % 2 === 0 && this.state.complete;
    this.send({ type: "subscribe", ref: 2, channel: this.plan.channel, state: true, after: this.position, held });
  }

  closed() {
    this.isSubscribed = false;
    this.report(this.leaving ? "left" : "closed");
    if (!this.leaving) {
      this.retryTimer = setTimeout(() => this.connect(), 10 + 90 * Math.random());
    }
  }

  send(message) {
    this.link.send(JSON.stringify(message));
  }

  publish(change) {
    this.send({ type: "publish", ref: ++this.ref, channel: this.plan.channel, ...change });
  }

  receive(m) {
    switch (m.type) {
      case "connected":
        this.server = m.server;
        break;
      case "subscribed":
        this.position = m.id;
        if (m.recovered !== true || !(this.conn % 2 === 0 && this.state.complete)) {
          this.state.complete = false; // pages follow
        } else {
          this.ready();
        }
        break;
      case "state":
        this.state.page(m);
        if (this.state.complete) {
          this.ready();
        }
        break;
      case "message":
        if (m.id <= this.position) {
          this.report("disorder", { detail: `${m.id} after ${this.position}` });
        }
        this.position = m.id;
        this.state.message(m);
        this.changed();
        break;
      case "published":
        this.published(m);
        break;
      case "error":
        this.refused(m);
        break;
      case "ping":
        this.send({ type: "pong" });
        break;
      case "unsubscribed":
      case "pong":
        break;
      case "closing":
        this.leaving ||= !m.reconnect && m.code !== "superseded";
        this.report("closing", { detail: m.code });
        break;
      default:
        this.report(m.type, { channel: m.channel, detail: JSON.stringify(m) });
    }
  }

  ready() {
    this.isSubscribed = true;
    this.report("ready", { server: this.server });
    this.subscribed();
  }

  /** Disconnects and does not reconnect. */
  leave() {
    this.leaving = true;
    clearTimeout(this.retryTimer);
    this.link.close();
  }
}

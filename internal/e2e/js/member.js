// A client that enters and leaves a room in random ways. The room has a field for each member,
// which the client owns, and a limit.
import { StateClient } from "./state.js";

const random = (n) => Math.floor(n * Math.random());

export class MemberClient extends StateClient {
  constructor(plan, open, report) {
    super(plan, open, report);
    this.rounds = 0;
    this.field = "member/" + plan.user;
  }

  subscribed() {
    this.enter();
  }

  changed() {}

  enter() {
    this.seen = this.position;
    this.publish({ set: { [this.field]: this.plan.client } });
  }

  published(m) {
    if (m.ref === this.deletion) {
      this.enter();
      return;
    }
    this.report("entered", { field: this.field, id: m.id });
    this.next(["drop", "drop", "close", "takeOver", "leave", "remove", "again"]);
  }

  refused(m) {
    if (m.code !== "full" || m.group !== "member/" || m.max !== this.plan.max) {
      this.report("refused", { detail: JSON.stringify(m) });
      return;
    }
    this.report("full", { id: this.seen, detail: JSON.stringify(m.fields) });
    this.next(["again", "again", "again", "drop", "leave"]);
  }

  /** Does one of the actions a moment later, if the connection lasts that long. */
  next(actions) {
    const conn = this.conn;
    setTimeout(() => {
      if (conn !== this.conn || !this.isSubscribed || this.leaving) {
        return;
      }
      if (++this.rounds > this.plan.rounds) {
        this.report("done");
        this.leave();
      } else {
        this[actions[random(actions.length)]]();
      }
    }, random(80));
  }

  drop() {
    this.link.drop();
  }

  close() {
    this.link.close();
  }

  /** Connects elsewhere while the old connection is open: the new one replaces it. */
  takeOver() {
    this.connect();
  }

  leave() {
    if (this.rounds > this.plan.rounds || this.leaving) {
      super.leave();
      return;
    }
    this.isSubscribed = false;
    this.send({ type: "unsubscribe", ref: 3, channel: this.plan.channel });
    this.subscribe();
  }

  remove() {
    this.deletion = this.ref + 1;
    this.publish({ del: [this.field] });
  }

  again() {
    this.enter();
  }
}

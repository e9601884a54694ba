// A client that claims one of the seats of a channel, while many others do the same.
import { StateClient } from "./state.js";

const names = 120; // more than the seats that may be taken

export class SeatClient extends StateClient {
  constructor(plan, open, report) {
    super(plan, open, report);
    this.attempts = 0;
  }

  subscribed() {
    if (this.seat && !this.result) {
      this.claim(); // with the same key: the broker may have stored the first claim
    }
    this.changed();
  }

  changed() {
    if (this.state.count("seat/") > this.plan.max) {
      this.report("oversold", { id: this.position, detail: this.state.list("seat/") });
    }
    if (!this.isSubscribed) {
      return;
    }
    if (this.state.fields.has("open") && !this.seat && !this.result) {
      this.choose();
    }
    if (this.state.fields.has("closed") && !this.reported) {
      this.reported = true;
      this.report("final", { detail: this.state.list("seat/") });
    }
  }

  /** Chooses a seat that is free as far as the client knows. */
  choose() {
    const free = [];
    for (let i = 0; i < names; i++) {
      if (!this.state.fields.has("seat/" + i)) {
        free.push("seat/" + i);
      }
    }
    this.seat = free[Math.floor(Math.random() * free.length)];
    this.attempts++;
    this.claim();
  }

  claim() {
    this.before = this.position;
    this.publish({ set: { [this.seat]: this.plan.client }, key: "claim-" + this.attempts });
  }

  published(m) {
    if (this.plan.drops && !this.dropped) {
      this.dropped = true; // as if the answer had been lost
      this.link.drop();
      return;
    }
    this.result = "hold";
    const repeated = m.id <= this.before; // the claim was stored before it was repeated
    this.report(repeated ? "repeated hold" : "hold", { field: this.seat, id: m.id });
  }

  refused(m) {
    const current = m.fields?.[this.seat];
    if (m.code === "conflict" && current?.[0] > 0 && current[1] !== this.plan.client) {
      this.report("conflict", { field: this.seat, id: current[0], detail: current[1] });
      this.seat = undefined;
      this.changed();
    } else if (m.code === "full" && m.group === "seat/" && m.max === this.plan.max) {
      this.result = "full";
      this.report("full", { detail: JSON.stringify(m.fields) });
    } else {
      this.report("refused", { detail: JSON.stringify(m) });
    }
  }
}

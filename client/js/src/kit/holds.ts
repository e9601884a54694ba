import type { Switchboard } from "../index.js";
import type { Hold, HoldRequest, Resource } from "./types.gen.js";
import { View } from "./view.js";

/** Holds: see docs/holds.md. Your backend confirms them. */
export class Holds {
  constructor(private readonly sb: Switchboard) {}

  /**
   * Holds all of the places, or none. A `conflict` has `data.taken`, the seats that are not free.
   */
  take(resource: string, request: HoldRequest): Promise<Hold> {
    return this.sb.call("hold.hold", { resource, ...request });
  }

  renew(resource: string, id: string): Promise<Hold> {
    return this.sb.call("hold.renew", { resource, id });
  }

  /** Ends a hold or a sale of the user. */
  release(resource: string, id: string): Promise<Hold> {
    return this.sb.call("hold.release", { resource, id });
  }

  get(resource: string, id: string): Promise<Hold> {
    return this.sb.call("hold.get", { resource, id });
  }

  /** The holds and sales of the user, the newest first, with those that ended lately. */
  async mine(resource: string): Promise<Hold[]> {
    return (await this.sb.call<{ holds: Hold[] }>("hold.mine", { resource })).holds;
  }

  /** Up to 100 resources; null for one that does not exist. */
  async resources(resources: string[]): Promise<(Resource | null)[]> {
    return (await this.sb.call<{ resources: (Resource | null)[] }>("hold.resources", { resources })).resources;
  }

  /** Follows the seats of a resource. */
  seats(resource: string): SeatMap {
    return new SeatMap(this.sb, `hold:${resource}`);
  }
}

/** The seats of a resource that are not free, kept up to date. */
export class SeatMap extends View {
  get resource(): Resource | undefined {
    return this.channel.state.get("$resource") as Resource | undefined;
  }

  /** The state of a seat, and the end of its hold in ms since 1970. */
  get(seat: string): { state: "free" | "held" | "sold"; until?: number | undefined } {
    const entry = this.channel.state.entry(`seat/${seat}`);
    return entry ? { state: (entry.value as { s: "held" | "sold" }).s, until: entry.until } : { state: "free" };
  }

  /** The names of the seats that are not free. */
  get taken(): string[] {
    return this.entriesOf("seat/").map(([seat]) => seat);
  }
}

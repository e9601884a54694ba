import type { Json, JsonInput, Switchboard, SwitchboardError } from "../index.js";
import type { MyRoom, NewRoom, Player, RoomCard, RoomDocument, RoomInfo, RoomPatch, RoomQuery } from "./types.gen.js";
import { View } from "./view.js";

interface Joined {
  room: string;
  channel: string;
  n: number;
}

/** Rooms: see docs/rooms.md. The client needs a user. */
export class Rooms {
  /** Rooms that this user may have joined, though the call failed: what ends their subscription. */
  private readonly undecided = new Map<string, () => Promise<void>>();

  constructor(private readonly sb: Switchboard) {}

  /** Makes a room whose owner and first member is this user, and follows it. */
  create(room: NewRoom): Promise<Room> {
    const made = (info: RoomInfo) => new Room(this.sb, info.id, info.channel, info.n!, info.code);
    return this.enter("room.create", room, room.id, made);
  }

  /**
   * Makes this user a member, and follows the room. Refusals: not_found, bad_code, locked, full.
   */
  join(room: string, options: { nickname?: string; code?: string } = {}): Promise<Room> {
    return this.enter("room.join", { room, ...options }, room, (joined: Joined) => this.joined(joined));
  }

  /** Joins an open public room of the mode, or makes one, and follows it. */
  quick(options: Pick<NewRoom, "mode" | "region" | "nickname" | "name" | "app_version" | "data">): Promise<Room> {
    return this.enter("room.quick", options, undefined, (joined: Joined) => this.joined(joined));
  }

  get(room: string): Promise<RoomInfo> {
    return this.sb.call("room.get", { room });
  }

  /** A page of public rooms. It may be short, or empty, and have a `cursor`. `next` is its former name. */
  list(query: RoomQuery = {}): Promise<{ rooms: RoomCard[]; cursor?: string; next?: string }> {
    return this.sb.call("room.list", query);
  }

  /** A page of the rooms that this user is in. */
  mine(page: { cursor?: string; limit?: number } = {}): Promise<{ rooms: MyRoom[]; cursor?: string; next?: string }> {
    return this.sb.call("room.mine", page);
  }

  /** Follows the newest rooms of a mode that can be joined. */
  lobby(mode: string, region?: string): Lobby {
    return new Lobby(this.sb, region ? `lobby:${mode}:${region}` : `lobby:${mode}`);
  }

  private joined({ room, channel, n }: Joined): Room {
    return new Room(this.sb, room, channel, n);
  }

  /**
   * Makes this user a member and follows the room, in one round trip if its id is known: the broker
   * handles the call and the subscription in order. If the outcome is open, the subscription stays,
   * because its end would end the membership; the next call for the room continues with it.
   */
  private async enter<Answer>(
    method: string,
    data: object,
    id: string | undefined,
    made: (answer: Answer) => Room,
  ): Promise<Room> {
    if (!id) return made(await this.sb.call<Answer>(method, data)).ready();
    const channel = this.sb.channel(`room:${id}`, { subscribe: false, state: true });
    const handled = channel.on("unsubscribed", () => {}); // if the call is refused, that is the error
    const answer = this.sb.call<Answer>(method, data);
    const release = this.undecided.get(id) ?? channel.hold();
    this.undecided.delete(id);
    try {
      return await made(await answer).ready();
    } catch (error) {
      if (isOpen(error)) this.undecided.set(id, release);
      throw error;
    } finally {
      handled();
      if (!this.undecided.has(id)) release().catch(() => {}); // without a connection it waits for one
    }
  }
}

/** isOpen reports whether a call may have run, or an earlier one for the same room. */
function isOpen(error: unknown): boolean {
  return /^(rate_limited|unavailable|timeout|unknown_outcome)$/.test((error as SwitchboardError).code);
}

/** A lobby: the public rooms that can be joined, kept up to date. */
export class Lobby extends View {
  /** The rooms, the newest first. */
  get rooms(): RoomCard[] {
    return this.entriesOf<RoomCard>("room/")
      .map(([, entry]) => entry.value)
      .sort((a, b) => b.room.created - a.room.created || (a.id < b.id ? -1 : 1));
  }
}

/** A room that this user is in, kept up to date. */
export class Room extends View {
  constructor(
    private readonly sb: Switchboard,
    readonly id: string,
    channel: string,
    /** The number of this user. */
    readonly n: number,
    /** The code of a private room that this client has created. */
    readonly code?: string,
  ) {
    super(sb, channel);
  }

  /** Undefined after the room has ended. */
  get document(): RoomDocument | undefined {
    return this.channel.state.get("$room") as RoomDocument | undefined;
  }

  /** The members and the reserved places, by number. */
  get players(): Player[] {
    return this.entriesOf<Omit<Player, "n">>("member/")
      .map(([n, { value, away, until }]) => ({ n: Number(n), ...value, away, until }))
      .sort((a, b) => a.n - b.n);
  }

  /** A field of a player, of this one if `n` is absent. */
  get<Value = Json>(name: string, n = this.n): Value | undefined {
    return this.channel.state.get(`p/${n}/${name}`) as Value | undefined;
  }

  /** Sets a field of this player. It ends with the membership. */
  async set(name: string, value: JsonInput): Promise<void> {
    await this.channel.set(`p/${this.n}/${name}`, value);
  }

  /** Ends the membership on all devices of the user. */
  async leave(): Promise<void> {
    const handled = this.channel.on("unsubscribed", () => {}); // the broker ends the subscription
    try {
      await this.call("leave");
    } finally {
      handled();
    }
    await this.close();
  }

  /** Removes a player, or a reserved place. For the owner, like the following ones. */
  kick(n: number): Promise<void> {
    return this.call("kick", { n });
  }

  lock(locked = true): Promise<void> {
    return this.call("lock", { locked });
  }

  start(): Promise<void> {
    return this.call("start");
  }

  finish(): Promise<void> {
    return this.call("finish");
  }

  patch(patch: RoomPatch): Promise<RoomInfo> {
    return this.call("patch", patch);
  }

  private call<Answer>(method: string, data: object = {}): Promise<Answer> {
    return this.sb.call<Answer>(`room.${method}`, { room: this.id, ...data });
  }
}

import { encode, type Change, type ChangeOptions, type Published, type PublishOptions } from "./change.js";
import { entryOf, type Entry } from "./errors.js";
import { Feed, type FeedEvents } from "./feed.js";
import type { History } from "./options.js";
import type { Incoming, Member, Outgoing, Sent, Stored } from "./wire.js";

/** The calls of a channel, which need no subscription. */
export abstract class ChannelCalls<Data, Fields extends object, Events extends FeedEvents<Data>> extends Feed<
  Data,
  Events
> {
  /** Publishes data, and returns the id of the message. */
  publish(data: Sent<Data>, options: PublishOptions = {}): Promise<Published> {
    return this.update({ ...options, data });
  }

  /** Changes fields, all of them or none. A refusal by the state has the current `fields`. */
  async update(change: Change<Fields, Data>): Promise<Published> {
    const m = await this._ask({ type: "publish", ...encode(change as Change) }, change.timeout);
    return { id: m.id!, fields: (m.fields ?? {}) as unknown as Record<string, number> };
  }

  /** Sets one field. */
  set<K extends keyof Fields & string>(
    name: K,
    value: Sent<Fields[K]>,
    options: ChangeOptions<Fields, Data> = {},
  ): Promise<Published> {
    return this.update({ ...options, set: { [name]: value } as Change<Fields, Data>["set"] & object });
  }

  /** Removes fields. An absent one is no error. */
  del<K extends keyof Fields & string>(names: K | K[], options: ChangeOptions<Fields, Data> = {}): Promise<Published> {
    return this.update({ ...options, del: listOf(names) });
  }

  /** Adds to a whole number, within bounds, and returns the result. */
  async add(
    name: keyof Fields & string,
    by: number,
    options: ChangeOptions<Fields, Data> & { min?: number; max?: number } = {},
  ): Promise<number> {
    const { min, max, ...rest } = options;
    const add = { [name]: { by, min, max } } as Change<Fields, Data>["add"] & object;
    return (await this.update({ ...rest, add } as Change<Fields, Data>)).fields[name]!;
  }

  /** Gives fields a new lease of `ttl` seconds. */
  touch<K extends keyof Fields & string>(
    names: K | K[],
    options: ChangeOptions<Fields, Data> = {},
  ): Promise<Published> {
    return this.update({ ...options, touch: listOf(names) });
  }

  /** Reads stored messages, the oldest first, without a subscription. */
  async history(options: { after?: number; limit?: number; state?: boolean | string } = {}): Promise<History<Data>> {
    const m = await this._ask({ type: "history", after: 0, ...options });
    const messages = (m.messages ?? []) as Stored<Data>[];
    const last = m.id ?? messages.at(-1)?.id ?? options.after ?? 0;
    return { messages, more: !!m.more, last, recovered: m.recovered !== false };
  }

  /**
   * Reads a page of the clients in the channel, without a subscription. In a channel that shows
   * aliases, `alias` is that of this client, or empty.
   */
  async presence(
    options: { limit?: number; cursor?: string | undefined } = {},
  ): Promise<{ clients: Member[]; count: number; users?: number; next?: string; alias?: string }> {
    const m = await this._ask({ type: "presence", ...options });
    return { clients: m.clients ?? [], count: m.count ?? 0, users: m.users!, next: m.next!, alias: m.alias! };
  }

  /** Reads a page of the fields, without a subscription. */
  async readState(
    options: { prefix?: string; limit?: number; cursor?: string } = {},
  ): Promise<{ id: number; fields: Record<string, Entry>; cursor?: string }> {
    const m = await this._ask({ type: "state", ...options });
    const fields = Object.entries(m.fields ?? {}).map(([name, f]) => [name, entryOf(f!)]);
    return { id: m.id!, fields: Object.fromEntries(fields) as Record<string, Entry>, cursor: m.cursor! };
  }

  /** @internal */
  _ask(message: Outgoing, timeout?: number): Promise<Incoming> {
    return this._sb._call({ ...message, channel: this.name }, timeout);
  }
}

function listOf<Name>(names: Name | Name[]): Name[] {
  return Array.isArray(names) ? names : [names];
}

import { ChannelCalls } from "./channelcalls.js";
import { type Loaded } from "./load.js";
import { Members } from "./members.js";
import type { ChannelEvents, ChannelOptions, Subscribed } from "./options.js";
import { State } from "./state.js";
import { type Draft, type TransactOptions } from "./transact.js";
import type { Json, JsonInput } from "./wire.js";
/** A channel. It stays subscribed over all reconnects, until `unsubscribe`. */
export declare class Channel<Data = Json, Fields extends object = Record<string, Json>, Snapshot extends Loaded = Loaded> extends ChannelCalls<Data, Fields, ChannelEvents<Data, Snapshot>> {
    /** The live fields. The first use adds them to the subscription. */
    get state(): State<Fields>;
    /** The live members. The first use adds them to the subscription. */
    get members(): Members;
    /** Resolves when the broker has accepted the subscription, and rejects if it refuses it. */
    subscribe(options?: Omit<ChannelOptions<Snapshot>, "subscribe">): Promise<Subscribed>;
    /**
     * Subscribes for one part of the application. The returned function ends the subscription, unless
     * another part holds it, or you have subscribed by `channel` or `subscribe`.
     */
    hold(): () => Promise<void>;
    /** Ends the subscription for all parts, and forgets the position, the state and the members. */
    unsubscribe(): Promise<void>;
    /**
     * Reads and writes fields as properties of a draft: `await room.transact((s) => { s.turn =
     * next(s.turn); })`. It is published under the condition that no field that was read has changed.
     * After a conflict, `change` is called again with the current values. Returns its result.
     */
    transact<Result>(change: (fields: Draft<Fields>) => Result | Promise<Result>, options?: TransactOptions): Promise<Result>;
    /**
     * Shows a value to the members that watch: a cursor, or "is typing". It is not stored. At most
     * every 50 ms the newest value is sent, and again after a reconnect. null ends it.
     */
    here(value: JsonInput): void;
}

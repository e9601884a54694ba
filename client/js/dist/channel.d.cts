import { type Change, type ChangeOptions, type Published, type PublishOptions } from "./change.cjs";
import { SwitchboardError, type Entry } from "./errors.cjs";
import { Feed, type FeedEvents } from "./feed.cjs";
import { Members } from "./members.cjs";
import { State } from "./state.cjs";
import { type Draft, type TransactOptions } from "./transact.cjs";
import type { Json, JsonInput, Member, Sent, Stored } from "./wire.cjs";
export interface ChannelOptions {
    /** Subscribe at once. Absent: true. */
    subscribe?: boolean;
    /**
     * Where a new subscription starts: the last id seen; 0 is the beginning. Absent: the stored
     * position, or now.
     */
    after?: number;
    /** Keeps `state`: all fields (true), or those that begin with a prefix. */
    state?: boolean | string;
    /** Keeps `members`. */
    presence?: boolean;
}
/** The start of a subscription, or its continuation after a reconnect. */
export interface Subscribed {
    id: number | undefined;
    /** false: messages after the last position are missing. A `gap` says which. */
    recovered: boolean;
}
export type ChannelEvents<Data> = FeedEvents<Data> & {
    subscribed: [subscribed: Subscribed];
    /** The broker has refused or ended the subscription. `subscribe` may be called again. */
    unsubscribed: [error: SwitchboardError];
};
export interface History<Data> {
    messages: Stored<Data>[];
    /** The channel holds messages after the last one. */
    more: boolean;
    /**
     * The id for the `after` of the next page. A page may have no messages and `more`, if you see none of many messages that
     * the channel holds.
     */
    last: number;
    /** false: messages after `after` are missing. */
    recovered: boolean;
}
/** A channel. It stays subscribed over all reconnects, until `unsubscribe`. */
export declare class Channel<Data = Json, Fields extends object = Record<string, Json>> extends Feed<Data, ChannelEvents<Data>> {
    /** The live fields. The first use adds them to the subscription. */
    get state(): State<Fields>;
    /** The live members. The first use adds them to the subscription. */
    get members(): Members;
    /** Resolves when the broker has accepted the subscription, and rejects if it refuses it. */
    subscribe(options?: Omit<ChannelOptions, "subscribe">): Promise<Subscribed>;
    /**
     * Subscribes for one part of the application. The returned function ends the subscription, unless
     * another part holds it, or you have subscribed by `channel` or `subscribe`.
     */
    hold(): () => Promise<void>;
    /** Ends the subscription for all parts, and forgets the position, the state and the members. */
    unsubscribe(): Promise<void>;
    /** Publishes data, and returns the id of the message. */
    publish(data: Sent<Data>, options?: PublishOptions): Promise<Published>;
    /** Changes fields, all of them or none. A refusal by the state has the current `fields`. */
    update(change: Change<Fields, Data>): Promise<Published>;
    /** Sets one field. */
    set<K extends keyof Fields & string>(name: K, value: Sent<Fields[K]>, options?: ChangeOptions<Fields, Data>): Promise<Published>;
    /** Removes fields. An absent one is no error. */
    del<K extends keyof Fields & string>(names: K | K[], options?: ChangeOptions<Fields, Data>): Promise<Published>;
    /** Adds to a whole number, within bounds, and returns the result. */
    add(name: keyof Fields & string, by: number, options?: ChangeOptions<Fields, Data> & {
        min?: number;
        max?: number;
    }): Promise<number>;
    /** Gives fields a new lease of `ttl` seconds. */
    touch<K extends keyof Fields & string>(names: K | K[], options?: ChangeOptions<Fields, Data>): Promise<Published>;
    /**
     * Reads and writes fields as properties of a draft: `await room.transact((s) => { s.turn =
     * next(s.turn); })`. It is published under the condition that no field that was read has changed.
     * After a conflict, `change` is called again with the current values. Returns its result.
     */
    transact<Result>(change: (fields: Draft<Fields>) => Result | Promise<Result>, options?: TransactOptions): Promise<Result>;
    /** Reads stored messages, the oldest first, without a subscription. */
    history(options?: {
        after?: number;
        limit?: number;
        state?: boolean | string;
    }): Promise<History<Data>>;
    /**
     * Reads a page of the clients in the channel, without a subscription. In a channel that shows
     * aliases, `alias` is that of this client, or empty.
     */
    presence(options?: {
        limit?: number;
        cursor?: string | undefined;
    }): Promise<{
        clients: Member[];
        count: number;
        users?: number;
        next?: string;
        alias?: string;
    }>;
    /** Reads a page of the fields, without a subscription. */
    readState(options?: {
        prefix?: string;
        limit?: number;
        cursor?: string;
    }): Promise<{
        id: number;
        fields: Record<string, Entry>;
        cursor?: string;
    }>;
    /**
     * Shows a value to the members that watch: a cursor, or "is typing". It is not stored. At most
     * every 50 ms the newest value is sent, and again after a reconnect. null ends it.
     */
    here(value: JsonInput): void;
}

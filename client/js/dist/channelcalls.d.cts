import { type Change, type ChangeOptions, type Published, type PublishOptions } from "./change.cjs";
import { type Entry } from "./errors.cjs";
import { Feed, type FeedEvents } from "./feed.cjs";
import type { History } from "./options.cjs";
import type { Member, Sent } from "./wire.cjs";
/** The calls of a channel, which need no subscription. */
export declare abstract class ChannelCalls<Data, Fields extends object, Events extends FeedEvents<Data>> extends Feed<Data, Events> {
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
}

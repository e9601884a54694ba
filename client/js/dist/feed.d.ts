import { Emitter } from "./emitter.js";
import type { Incoming, Json } from "./wire.js";
/** What is known about a message besides its data. */
export interface MessageInfo {
    /** The position in its queue. It only grows. */
    id: number;
    /** The channel; "" for the client queue. */
    channel: string;
    /** The author: the id of the client that published it, or its alias. The broker sets it. Undefined for a message of the backend, and without the right to see presence. */
    by?: string | undefined;
}
/** Messages with ids above `after`, up to `id`, are gone. */
export interface Gap {
    after: number | undefined;
    id: number;
}
export type FeedEvents<Data> = {
    message: [data: Data, info: MessageInfo];
    gap: [gap: Gap];
    /** The message `id` was erased: remove it where you show it. `info` is that of the report. */
    erase: [id: number, info: MessageInfo];
};
/**
 * Feed is a queue of messages with a position. It drops messages that it has seen. It calls the
 * handlers for one message after another, and waits for those that return a promise. Only then
 * does `position` move.
 */
export declare class Feed<Data = Json, Events extends FeedEvents<Data> = FeedEvents<Data>> extends Emitter<Events> {
    readonly name: string;
    /** The last id that the handlers have seen. Undefined before the first one. */
    position: number | undefined;
}
export declare function infoOf(m: Incoming): MessageInfo;

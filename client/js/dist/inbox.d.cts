import { Feed } from "./feed.cjs";
import type { Json } from "./wire.cjs";
/**
 * Inbox is the device's own queue. The broker keeps each message until the handlers have returned
 * and, if they returned promises, until these have resolved. If a handler fails, the message stays
 * unacknowledged, and the handler is called again after a backoff. Later messages wait for it, so
 * the order is kept. If the page or process ends before, the message arrives again.
 *
 * The option `ack: "auto"` only ends the repetition after a failure. It is not the "auto" of the
 * protocol, with which a message counts as acknowledged when the broker has written it: that loses
 * what is on the way when the connection ends, and what waits for handlers when the page ends.
 */
export declare class Inbox<Data = Json> extends Feed<Data> {
}

import type { Channel, Entry, StateChange, Switchboard } from "../index.cjs";
/** View is a live view of the state of a channel. */
export declare abstract class View {
    /** The channel, for messages and for fields that the view does not show. */
    readonly channel: Channel;
    constructor(sb: Switchboard, channel: string);
    /** Calls a handler after each change. Returns a function that removes it. */
    on(event: "change", handler: (change: StateChange) => unknown): () => void;
    /** Resolves when the view is complete, and rejects if the broker refuses it. */
    ready(): Promise<this>;
    /** Ends the view. The channel stays subscribed if another view, or your application, uses it. */
    close(): Promise<void>;
    /** The fields that begin with a prefix, by the rest of their names. */
    protected entriesOf<Value>(prefix: string): [name: string, entry: Entry<Value>][];
}

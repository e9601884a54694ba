import type { Channel, Entry, StateChange, Switchboard } from "../index.js";

/** View is a live view of the state of a channel. */
export abstract class View {
  /** The channel, for messages and for fields that the view does not show. */
  readonly channel: Channel;
  private readonly release: () => Promise<void>;

  constructor(sb: Switchboard, channel: string) {
    this.channel = sb.channel(channel, { subscribe: false, state: true });
    this.release = this.channel.hold();
  }

  /** Calls a handler after each change. Returns a function that removes it. */
  on(event: "change", handler: (change: StateChange) => unknown): () => void {
    return this.channel.state.on(event, handler);
  }

  /** Resolves when the view is complete, and rejects if the broker refuses it. */
  async ready(): Promise<this> {
    await this.channel.state.ready();
    return this;
  }

  /** Ends the view. The channel stays subscribed if another view, or your application, uses it. */
  close(): Promise<void> {
    return this.release();
  }

  /** The fields that begin with a prefix, by the rest of their names. */
  protected entriesOf<Value>(prefix: string): [name: string, entry: Entry<Value>][] {
    return [...this.channel.state.entries()]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, entry]) => [name.slice(prefix.length), entry as Entry<Value>]);
  }
}

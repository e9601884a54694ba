import { Emitter, Queue } from "./emitter.js";
import type { Switchboard } from "./switchboard.js";
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
export class Feed<Data = Json, Events extends FeedEvents<Data> = FeedEvents<Data>> extends Emitter<Events> {
  /** The last id that the handlers have seen. Undefined before the first one. */
  position: number | undefined;
  /** @internal The last id received. The messages up to it wait in `_queue`. */
  _received: number | undefined;
  /** @internal Grows when ids become meaningless: then earlier messages move no position. */
  _epoch = 0;
  /** @internal Grows when what waits must not be delivered. */
  _generation = 0;
  /** @internal */
  readonly _queue = new Queue();

  /** @internal */
  constructor(
    readonly name: string,
    /** @internal */ readonly _sb: Switchboard,
  ) {
    super((error, event) => _sb._report(error, event, name));
  }

  /** @internal Starts at a position. */
  _start(position: number | undefined): void {
    this.position = this._received = position;
  }

  /** @internal */
  _message(m: Incoming): void {
    if (this._received !== undefined && m.id! <= this._received) return this._duplicate();
    this._received = m.id!;
    this._enqueue(
      m.id!,
      this._current(() => this._deliver(m)),
    );
  }

  /**
   * @internal Moves the position to the end of a gap. If it is higher already, it stays: a gap may
   * arrive after a later message. An id below `after` is a reset: the store has forgotten ids, and
   * everything above the id arrives again.
   */
  _gap(after: number | undefined, id: number): void {
    after ??= this._received;
    const reset = after !== undefined && id < after;
    if (reset) this._epoch++;
    if (reset || this._received === undefined || id > this._received) this._received = id;
    this._enqueue(
      id,
      this._current(() => this._missed({ after, id })),
      reset,
    );
  }

  /**
   * @internal Sets the position by the answer to a subscribe or connect with `asked` as `after`.
   */
  _answered(asked: number | undefined, m: Incoming): void {
    const lost = asked !== undefined && m.recovered === false;
    if (m.id === undefined || (asked !== undefined && !lost)) return;
    if (!lost) {
      this._received = m.id;
      this._enqueue(m.id, () => {});
    } else if (m.id !== asked) {
      this._received = m.id; // also if it is lower: after a failover, the ids continue from there
      this._epoch++;
      this._enqueue(
        m.id,
        this._current(() => this._missed({ after: asked, id: m.id! })),
        true,
      );
    } // else a gap is among the messages
  }

  /** @internal Calls `run` after all earlier messages, and then moves the position. */
  _enqueue(id: number, run: () => Promise<unknown> | void | undefined, reset = false): void {
    const epoch = this._epoch;
    const done = () => {
      if (epoch !== this._epoch) return;
      this.position = reset || this.position === undefined ? id : Math.max(id, this.position);
      this._moved();
    };
    this._queue._push(() => {
      const result = run();
      if (result) return result.then(done);
      return done();
    });
    this._sb._waits(this._queue._length);
  }

  /** @internal */
  _deliver(m: Incoming): Promise<unknown> | undefined {
    if (m.erase !== undefined) return this._emit("erase", ...args(m.erase, infoOf(m)));
    if (m.data === undefined) return;
    return this._emit("message", ...args(m.data, infoOf(m)));
  }

  /** @internal Messages are gone. */
  _missed(gap: Gap): Promise<unknown> | undefined {
    return this._emit("gap", ...args(gap));
  }

  private _current(run: () => Promise<unknown> | undefined): () => Promise<unknown> | undefined {
    const generation = this._generation;
    return () => (generation === this._generation ? run() : undefined);
  }

  /** @internal Is called after `position` has changed. */
  _moved(): void {
    this._sb._store._changed();
  }

  /** @internal Is called for a message that was received before. */
  _duplicate(): void {}
}

/** args is what TypeScript cannot see: subclasses keep the arguments of the events of a Feed. */
function args(...list: unknown[]): never {
  return list as never;
}

export function infoOf(m: Incoming): MessageInfo {
  return { id: m.id!, channel: m.channel ?? "", by: m.by };
}

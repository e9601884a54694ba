import { Backoff } from "./backoff.js";
import { Feed, infoOf } from "./feed.js";
import type { Incoming, Json } from "./wire.js";

type Timer = ReturnType<typeof setTimeout>;

/** The broker sends at most 256 messages that are not acknowledged. One ack covers up to 64. */
const ackEvery = 64;
/** How long an acknowledgement may wait for more messages, in ms. */
const ackWithin = 100;

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
export class Inbox<Data = Json> extends Feed<Data> {
  private _unacked = 0; // handled since the last acknowledgement
  private _ackTimer: Timer | undefined;
  private _retryTimer: Timer | undefined;
  private _lastGap = "";
  private _wake: (() => void) | undefined; // a message waits for a handler

  /** @internal */
  override _added(): void {
    this._wake?.();
  }

  /** @internal Calls no handler again. */
  _stop(): void {
    clearTimeout(this._retryTimer);
    this._ack();
    this._handlers.clear();
  }

  /** @internal Another client id has another queue. */
  _changed(): void {
    this._epoch++;
    this._unacked = 0;
    this._lastGap = "";
    this._start(undefined);
  }

  /** @internal */
  override async _deliver(m: Incoming): Promise<void> {
    const backoff = new Backoff(250, 30_000);
    const done = new Set<unknown>();
    for (;;) {
      const handlers = [...(this._handlers.get("message") ?? [])];
      if (!handlers.length) {
        await new Promise<void>((resolve) => (this._wake = resolve));
        continue;
      }
      for (const handler of handlers) {
        if (!done.has(handler)) await this._run("message", handler, [m.data, infoOf(m)], () => done.add(handler));
      }
      if (this._sb._acksFailures) return;
      if (handlers.every((handler) => done.has(handler))) return;
      await new Promise((resolve) => (this._retryTimer = setTimeout(resolve, backoff._next())));
    }
  }

  /** @internal */
  override _gap(after: number | undefined, id: number): void {
    const gap = `${after} ${id}`;
    if (gap === this._lastGap && id >= (after ?? 0)) return; // it is reported at every connect
    this._lastGap = gap;
    super._gap(after, id);
  }

  /** @internal */
  override _moved(): void {
    super._moved();
    if (++this._unacked >= ackEvery || this._queue._length <= 1) this._ack();
    else this._ackTimer ??= setTimeout(() => this._ack(), ackWithin);
  }

  /** @internal The broker sends unacknowledged messages again: its ack was lost. */
  override _duplicate(): void {
    this._ack();
  }

  /** @internal Acknowledges all messages that are handled. */
  _ack(): void {
    this._unacked = 0;
    clearTimeout(this._ackTimer);
    this._ackTimer = undefined;
    if (this.position !== undefined) this._sb._send(`{"type":"ack","id":${this.position}}`);
  }
}

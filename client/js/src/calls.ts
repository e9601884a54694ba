import { SwitchboardError, refusal } from "./errors.js";
import type { Incoming, Outgoing } from "./wire.js";

/**
 * How long after its first sending a publish with a key may be repeated, in ms. It is much less
 * than the time for which the broker knows the key.
 */
const repeatWithin = 60_000;

/**
 * The broker lets 64 messages with 128 KiB wait for their answers. More would close the connection.
 */
const maxOpen = 48;
const maxOpenSize = 96 << 10;

interface Call {
  ref: number;
  message: Outgoing;
  sent: boolean; // on this connection
  firstSent: number; // ms since 1970; 0 before
  timer: ReturnType<typeof setTimeout> | undefined;
  resolve: (answer: Incoming) => void;
  reject: (error: SwitchboardError) => void;
}

/** Calls are the messages that wait for an answer. They outlive connections. */
export class Calls {
  private readonly _calls = new Map<number, Call>();
  private _waiting: Call[] = []; // to be sent, in order
  private readonly _open = new Map<number, number>(); // size by ref, of those without an answer
  private _openSize = 0;
  private _send: ((text: string) => void) | undefined;
  private _stopped: SwitchboardError | undefined;
  // Replies to a dead process may reach this one under the same client id, so the refs start at
  // random. 2^52 more of them are exact.
  private _ref = Math.floor(Math.random() * 2 ** 52);

  _nextRef(): number {
    return ++this._ref;
  }

  /**
   * Sends a message as soon as possible. The answer is passed on before the next message is read.
   */
  _submit(
    message: Outgoing,
    timeout: number,
    resolve: (answer: Incoming) => void,
    reject: (error: SwitchboardError) => void,
  ): void {
    if (this._stopped) return reject(this._stopped);
    const call: Call = { ref: this._nextRef(), message, sent: false, firstSent: 0, timer: undefined, resolve, reject };
    if (timeout > 0) call.timer = setTimeout(() => this._timedOut(call), timeout);
    this._calls.set(call.ref, call);
    this._waiting.push(call);
    this._pump();
  }

  /** Starts a connection. `first` makes the calls that must be sent before those that wait. */
  _connected(send: (text: string) => void, first: () => void): void {
    const waiting = this._waiting;
    this._waiting = [];
    first();
    this._waiting.push(...waiting);
    this._send = send;
    this._pump();
  }

  /** Ends a connection. What may be repeated waits for the next one. */
  _lost(): void {
    if (!this._send) return;
    this._send = undefined;
    this._open.clear();
    this._openSize = 0;
    this._waiting = [];
    for (const call of this._calls.values()) {
      const { type, key } = call.message;
      const wasSent = call.sent;
      call.sent = false;
      if (type === "unsubscribe") {
        this._finish(call).resolve({ type }); // a connection that is gone has no subscriptions
      } else if (type === "subscribe" || type === "refresh") {
        this._finish(call).reject(new SwitchboardError("lost", "the connection was lost"));
      } else if (wasSent && (type === "request" || (type === "publish" && !key))) {
        this._finish(call).reject(unknownOutcome());
      } else if (key && call.firstSent && Date.now() - call.firstSent > repeatWithin) {
        this._finish(call).reject(unknownOutcome());
      } else {
        this._waiting.push(call);
      }
    }
  }

  /** Passes an answer to its call. */
  _answer(m: Incoming): void {
    this._openSize -= this._open.get(m.ref!) ?? 0;
    this._open.delete(m.ref!);
    const call = this._calls.get(m.ref!);
    if (call && m.type !== "accepted") {
      this._finish(call);
      if (m.type === "error") call.reject(refusal(m));
      else call.resolve(m);
    }
    this._pump();
  }

  /** Rejects all calls, also later ones. */
  _stop(error: SwitchboardError): void {
    this._lost();
    this._stopped = error;
    this._waiting = [];
    for (const call of this._calls.values()) {
      this._finish(call).reject(call.firstSent && call.message.key ? unknownOutcome() : error);
    }
  }

  private _pump(): void {
    while (this._send) {
      const call = this._waiting[0];
      if (!call) return;
      if (!this._calls.has(call.ref)) {
        this._waiting.shift();
        continue;
      }
      const text = JSON.stringify({ ...call.message, ref: call.ref });
      const size = sizeOf(text);
      if (this._open.size >= maxOpen || (this._openSize && this._openSize + size > maxOpenSize)) return;
      this._waiting.shift();
      this._open.set(call.ref, size);
      this._openSize += size;
      call.sent = true;
      call.firstSent ||= Date.now();
      this._send(text);
    }
  }

  private _timedOut(call: Call): void {
    this._finish(call);
    const { type } = call.message;
    if (call.firstSent && (type === "publish" || type === "request")) call.reject(unknownOutcome());
    else if (call.firstSent) call.reject(new SwitchboardError("timeout", `no answer to ${type} in time`));
    else call.reject(new SwitchboardError("not_sent", `there was no connection for ${type} in time`));
  }

  private _finish(call: Call): Call {
    clearTimeout(call.timer);
    this._calls.delete(call.ref);
    return call;
  }
}

/** sizeOf returns at least the number of bytes of a text in UTF-8. */
function sizeOf(text: string): number {
  return /[^ -~]/.test(text) ? 3 * text.length : text.length;
}

function unknownOutcome(): SwitchboardError {
  return new SwitchboardError("unknown_outcome", "it was sent, and the answer did not arrive");
}

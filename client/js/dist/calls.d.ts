import { SwitchboardError } from "./errors.js";
import type { Incoming, Outgoing } from "./wire.js";
/** Calls are the messages that wait for an answer. They outlive connections. */
export declare class Calls {
    private readonly _calls;
    private _waiting;
    private readonly _open;
    private _openSize;
    private _send;
    private _stopped;
    private _ref;
    _nextRef(): number;
    /**
     * Sends a message as soon as possible. The answer is passed on before the next message is read.
     */
    _submit(message: Outgoing, timeout: number, resolve: (answer: Incoming) => void, reject: (error: SwitchboardError) => void): void;
    /** Starts a connection. `first` makes the calls that must be sent before those that wait. */
    _connected(send: (text: string) => void, first: () => void): void;
    /** Ends a connection. What may be repeated waits for the next one. */
    _lost(): void;
    /** Passes an answer to its call. */
    _answer(m: Incoming): void;
    /** Rejects all calls, also later ones. */
    _stop(error: SwitchboardError): void;
    private _pump;
    private _timedOut;
    private _finish;
}

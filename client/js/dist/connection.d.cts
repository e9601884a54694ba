import { type CloseCode, type Incoming, type Outgoing } from "./wire.cjs";
/** The part of a WebSocket that this library uses. */
export interface Socket {
    onopen: ((event: never) => unknown) | null;
    onmessage: ((event: never) => unknown) | null;
    onerror: ((event: never) => unknown) | null;
    onclose: ((event: never) => unknown) | null;
    send(text: string): void;
    close(code?: number): void;
}
/** A class such as the browser's WebSocket, or that of the package `ws`. */
export type SocketClass = new (url: string) => Socket;
/** Why a connection has ended. */
export interface End {
    /** The broker's reason, or `lost` if it gave none. */
    code: CloseCode | "lost";
    message: string;
    /** Whether the client may connect again. */
    reconnect: boolean;
    /** The least time in ms before that; 0 if the broker leaves it to the client. */
    afterMs: number;
}
export interface Times {
    /** The longest wait for a connection, in ms. With several URLs it is shorter at first. */
    connectTimeout: number;
    /** The silence after which a ping is sent, in ms. */
    pingAfter: number;
    /** The longest wait for anything after a ping, in ms. */
    pingTimeout: number;
}
/** Connection is one WebSocket. It notices a server that is silent. */
export declare class Connection {
    /**
     * `_silence` is the longest wait for the opening, and then for the answer to `connect`, in ms.
     */
    constructor(socketClass: SocketClass, url: string, _silence: number, _times: Times, _onOpen: () => void, _onMessage: (m: Incoming, size: number) => void, _onEnd: (end: End) => void);
    /** Sends `connect`. */
    _connect(message: Outgoing): void;
    _sendText(text: string): void;
    /** Verifies at once that the server answers. */
    _check(): void;
    /** Ends the connection. Nothing is called after it. */
    _close(): void;
}

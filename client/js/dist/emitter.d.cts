/** The arguments of an event. */
type Args<Events, K extends keyof Events> = Events[K] extends unknown[] ? Events[K] : never;
/**
 * Typed events. A handler that throws, or whose promise rejects, disturbs neither other handlers
 * nor the caller.
 */
export declare class Emitter<Events extends object> {
    /** Adds a handler. Returns a function that removes it. */
    on<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): () => void;
    /** Adds a handler that is called once. */
    once<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): () => void;
    /** Removes a handler. */
    off<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): void;
}
/** Queue runs tasks one after another. A task that returns a promise delays the next one. */
export declare class Queue {
    /** The number of tasks that wait or run. */
    get _length(): number;
    _push(task: () => Promise<unknown> | void): void;
}
export {};

/** The part of the AppState of React Native that this library uses. */
export interface AppState {
    addEventListener(type: "change", handler: (state: string) => void): {
        remove(): void;
    };
}
/**
 * listen calls `wake` when a page becomes visible, an application becomes active, or the network
 * returns, and `leave` when it may end soon. Returns functions that remove the handlers.
 */
export declare function listen(appState: AppState | undefined, wake: () => void, leave: () => void): (() => void)[];

import { Api, type ApiOptions } from "../api.cjs";
export interface Account {
    /** The user of its tokens. It never changes. */
    id: string;
    /** Absent for a guest. */
    name?: string;
    nickname?: string;
    state: "open" | "locked" | "deleted";
    created: number;
    login?: {
        at: number;
        address?: string;
    };
    /** It changes with the name, the nickname and the state, and not with a login. */
    version: number;
}
/** The answer to a login. Keep `renewal` where only your application can read it. */
export interface LoginAnswer {
    account: Account;
    token: string;
    /** In seconds. */
    expires_in: number;
    renewal: string;
    renewal_expires_in: number;
}
export interface Credentials {
    name: string;
    password: string;
    /** The client's own name: the tokens are for this client only. */
    client?: string;
}
export interface AccountsOptions extends ApiOptions {
    /** Is called with each new renewal token before it is used, and with undefined after a logout. */
    onRenewal?: (renewal: string | undefined) => unknown;
}
/**
 * Accounts: see docs/accounts.md. A refusal is a SwitchboardError.
 *
 *     const session = await new Accounts("https://push.example.com").login({ name, password });
 *     const sb = new Switchboard("wss://push.example.com/ws", { token: () => session.token() });
 */
export declare class Accounts {
    constructor(url: string, options?: AccountsOptions);
    /** Registers a name, and logs in. Without a name and a password it is a guest. */
    register(account?: {
        name?: string;
        password?: string;
        nickname?: string;
        client?: string;
    }): Promise<Session>;
    /**
     * Logs in by SCRAM-SHA-256: the broker verifies the password without receiving it, and proves
     * that it knows the account. It needs WebCrypto, which browsers have on pages with https.
     */
    login(credentials: Credentials): Promise<Session>;
    /** Logs in by sending the password, where there is no WebCrypto. */
    loginWithPassword(credentials: Credentials): Promise<Session>;
    /** Continues the session of a stored renewal token. */
    resume(renewal: string): Promise<Session>;
}
/** A login. */
export declare class Session {
    account: Account;
    constructor(api: Api, options: AccountsOptions);
    /**
     * The token function of a Switchboard. It returns the token of the login once, and then a new one
     * each time: a Switchboard asks when the last one is no longer accepted. It rejects with a
     * SignedOutError if the login has ended; a Switchboard then closes.
     */
    token(): Promise<string>;
    /** Renews the token. One renewal at a time: a renewal token works once. */
    renew(renewal?: string): Promise<void>;
    /** Ends the login, or all logins of the account. */
    logout(everywhere?: boolean): Promise<void>;
    me(): Promise<Account>;
    /**
     * Changes the nickname, or the name with the current password. A guest gets both. If the account
     * has another version than `ifMatch`, the error is `conflict`.
     */
    patch(change: {
        nickname: string;
    } | {
        name: string;
        password: string;
    }, condition?: {
        ifMatch?: number | "*";
    }): Promise<Account>;
    /** Changes the password. All logins and connections end: log in again. */
    changePassword(password: string, newPassword: string): Promise<Account>;
    /** Marks the account as deleted. A guest has no password. */
    delete(password?: string): Promise<Account>;
}

import { Api, headersOf, type ApiOptions } from "../api.js";
import { SignedOutError, type SwitchboardError } from "../errors.js";
import { Scram } from "./scram.js";
import type { Account, LoginAnswer } from "./types.gen.js";

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
export class Accounts {
  private readonly api: Api;

  constructor(
    url: string,
    private readonly options: AccountsOptions = {},
  ) {
    this.api = new Api(url, options);
  }

  /** Registers a name, and logs in. Without a name and a password it is a guest. */
  register(account: { name?: string; password?: string; nickname?: string; client?: string } = {}): Promise<Session> {
    return this.start("/v1/accounts", account);
  }

  /**
   * Logs in by SCRAM-SHA-256: the broker verifies the password without receiving it, and proves
   * that it knows the account. It needs WebCrypto, which browsers have on pages with https.
   */
  async login(credentials: Credentials): Promise<Session> {
    const { name, password, client } = credentials;
    const scram = new Scram(name, password);
    const { challenge, message } = await this.api.post<{ challenge: string; message: string }>(
      "/v1/accounts/challenge",
      { message: scram.first },
    );
    const proof = { challenge, message: await scram.final(message), client };
    const answer = await this.api.post<LoginAnswer & { message: string }>("/v1/accounts/login", proof);
    scram.verify(answer.message);
    const session = new Session(this.api, this.options);
    await session.adopt(answer);
    return session;
  }

  /** Logs in by sending the password, where there is no WebCrypto. */
  loginWithPassword(credentials: Credentials): Promise<Session> {
    return this.start("/v1/accounts/login", credentials);
  }

  /** Continues the session of a stored renewal token. */
  async resume(renewal: string): Promise<Session> {
    const session = new Session(this.api, this.options);
    await session.renew(renewal);
    return session;
  }

  private async start(path: string, body: object): Promise<Session> {
    const session = new Session(this.api, this.options);
    await session.adopt(await this.api.post<LoginAnswer>(path, body));
    return session;
  }
}

/** A login. */
export class Session {
  account!: Account;
  private answer!: LoginAnswer;
  private renewAt = 0;
  private given = false; // `token` has returned the token
  private renewing: Promise<void> | undefined;

  constructor(
    private readonly api: Api,
    private readonly options: AccountsOptions,
  ) {}

  /**
   * The token function of a Switchboard. It returns the token of the login once, and then a new one
   * each time: a Switchboard asks when the last one is no longer accepted. It rejects with a
   * SignedOutError if the login has ended; a Switchboard then closes.
   */
  async token(): Promise<string> {
    try {
      if (this.given) await this.renew();
      else await this.renewIfOld();
    } catch (error) {
      if ((error as SwitchboardError).code === "unauthorized") throw new SignedOutError((error as Error).message);
      throw error;
    }
    this.given = true;
    return this.answer.token;
  }

  /** Renews the token. One renewal at a time: a renewal token works once. */
  renew(renewal = this.answer.renewal): Promise<void> {
    return (this.renewing ??= this.api
      .post<LoginAnswer>("/v1/accounts/renew", { renewal })
      .then((answer) => this.adopt(answer))
      .finally(() => (this.renewing = undefined)));
  }

  /** Ends the login, or all logins of the account. */
  async logout(everywhere = false): Promise<void> {
    await this.api.post("/v1/accounts/logout", { renewal: this.answer.renewal, everywhere });
    await this.options.onRenewal?.(undefined);
  }

  async me(): Promise<Account> {
    return (this.account = await this.call<Account>("GET", ""));
  }

  /**
   * Changes the nickname, or the name with the current password. A guest gets both. If the account
   * has another version than `ifMatch`, the error is `conflict`.
   */
  async patch(
    change: { nickname: string } | { name: string; password: string },
    condition?: { ifMatch?: number | "*" },
  ): Promise<Account> {
    const body = "name" in change ? () => this.proof(change) : () => change;
    return (this.account = await this.call<Account>("PATCH", "", body, headersOf(condition)));
  }

  /** Changes the password. All logins and connections end: log in again. */
  changePassword(password: string, newPassword: string): Promise<Account> {
    return this.call("POST", "/password", () => ({ password, new: newPassword }));
  }

  /** Marks the account as deleted. A guest has no password. */
  delete(password = ""): Promise<Account> {
    return this.call("POST", "/delete", () => this.proof({ password }));
  }

  /** @internal */
  async adopt(answer: LoginAnswer): Promise<void> {
    this.answer = answer;
    this.given = false;
    this.account = answer.account;
    this.renewAt = Date.now() + answer.expires_in * 700;
    await this.options.onRenewal?.(answer.renewal);
  }

  private async renewIfOld(): Promise<void> {
    if (Date.now() >= this.renewAt) await this.renew();
  }

  /** The body of a call that needs the password. A guest has none, and shows its renewal token. */
  private proof(body: object): object {
    return this.account.name === undefined ? { ...body, renewal: this.answer.renewal } : body;
  }

  /** Makes a call with the token. The body is made when the tokens are fresh. */
  private async call<Answer>(
    method: string,
    path: string,
    body?: () => object,
    headers?: Record<string, string>,
  ): Promise<Answer> {
    await this.renewIfOld();
    return this.api.call<Answer>(method, `/v1/accounts/me${path}`, { body: body?.(), headers, key: this.answer.token });
  }
}

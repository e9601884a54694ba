import { useState } from "preact/hooks";
import { get, query } from "../api";
import { count, plural } from "../format";
import { useAction, useLoad } from "../hooks";
import { Ago, At, Badge, Card, Empty, Loading, Page, Problem, Table, type Tone } from "../parts/ui";
import { go, link } from "../router";
import type { Account } from "./types";

const pageSize = 50;
const tones: Record<Account["state"], Tone> = { open: "good", locked: "warn", deleted: "plain" };

export const AccountState = ({ state }: { state: Account["state"] }) => <Badge tone={tones[state]}>{state}</Badge>;

async function loadAccounts(
  state: string,
  most: number,
  signal: AbortSignal,
): Promise<{ accounts: Account[]; total: number; more: boolean }> {
  const accounts: Account[] = [];
  let total = 0;
  let cursor: string | undefined;
  do {
    const page: { accounts: Account[]; cursor?: string; total: number } = await get(
      "/v1/accounts" + query({ state, cursor, limit: pageSize }),
      { signal },
    );
    accounts.push(...page.accounts);
    ({ cursor, total } = page);
  } while (cursor && accounts.length < most);
  return { accounts, total, more: !!cursor };
}

export function Accounts() {
  const [state, setState] = useState("");
  const [most, setMost] = useState(pageSize);
  const [name, setName] = useState("");
  const { data, error, reload } = useLoad((signal) => loadAccounts(state, most, signal), [state, most], 5000);
  const lookup = useAction<Account>();
  const open = async (event: Event) => {
    event.preventDefault();
    const account = await lookup.run(() => get<Account>("/v1/accounts" + query({ name: name.trim() })));
    if (account) go("accounts", account.id);
  };
  return (
    <Page title="Accounts" about={data && plural(data.total, "account")}>
      <form class="toolbar" role="search" onSubmit={open}>
        <input
          type="search"
          aria-label="Name of an account"
          placeholder="Complete name"
          value={name}
          onInput={(e) => setName(e.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={!name.trim() || lookup.busy}>
          Open
        </button>
        <label class="inline">
          State
          <select value={state} onChange={(e) => setState(e.currentTarget.value)}>
            <option value="">any</option>
            {Object.keys(tones).map((s) => (
              <option key={s} value={s}>
                {s}
              </option>
            ))}
          </select>
        </label>
      </form>
      <Problem error={lookup.error ?? error} retry={reload} />
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {data.accounts.length === 0 && (
            <Empty title={state ? "No account is in this state." : "There is no account."}>
              {!state && (
                <>
                  Clients register with <code>POST /v1/accounts</code>.
                </>
              )}
            </Empty>
          )}
          {data.accounts.length > 0 && (
            <Table caption="Accounts" columns={["Account", "State", "Nickname?", "Created?", "Last login"]}>
              {data.accounts.map((a) => (
                <tr key={a.id}>
                  <th scope="row">
                    <a class="name" href={link("accounts", a.id)}>
                      {a.name ?? "guest"}
                    </a>
                    <span class="under mono">{a.id}</span>
                  </th>
                  <td>
                    <AccountState state={a.state} />
                  </td>
                  <td class="wide">{a.nickname ?? "–"}</td>
                  <td class="wide">
                    <At ms={a.created} />
                  </td>
                  <td>{a.login ? <Ago at={a.login.at} /> : "never"}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.more && (
            <div class="card-foot">
              <span>
                {count(data.accounts.length)} of {count(data.total)}
              </span>
              <button type="button" class="button" onClick={() => setMost(most * 4)}>
                Show more
              </button>
            </div>
          )}
        </Card>
      )}
    </Page>
  );
}

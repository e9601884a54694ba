import { get, path, post } from "../api";
import { useAction, useLoad } from "../hooks";
import { At, Card, Confirm, Empty, Facts, Loading, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import { AccountState } from "./accounts";
import type { Account, AccountEvent } from "./types";

type Change = "lock" | "unlock" | "delete" | "restore";

const changes: Record<Change, { label: string; question: string; harmless?: boolean }> = {
  lock: {
    label: "Lock",
    question: "All connections and logins of the account end, and it cannot log in until you unlock it.",
  },
  unlock: { label: "Unlock", question: "The account can log in again.", harmless: true },
  delete: {
    label: "Delete",
    question: "The account is marked as deleted: it cannot log in, and its name stays taken. You can restore it.",
  },
  restore: { label: "Restore", question: "The account can log in again, under its name.", harmless: true },
};
const changesOf: Record<Account["state"], Change[]> = {
  open: ["lock", "delete"],
  locked: ["unlock", "delete"],
  deleted: ["restore"],
};

export function AccountPage({ id }: { id: string }) {
  const account = useLoad((signal) => get<Account>(path("accounts", id), { signal }), [id], 5000);
  const history = useLoad(
    (signal) => get<{ events: AccountEvent[] }>(path("accounts", id, "history"), { signal }),
    [id],
    5000,
  );
  const action = useAction<Account>();
  const apply = async (change: Change) => {
    await action.run(() => post<Account>(path("accounts", id, change)));
    account.reload();
    history.reload();
  };
  const { data, error } = account;
  return (
    <Page
      title={data?.name ?? (data ? "Guest" : id)}
      trail={{ label: "Accounts", href: link("accounts") }}
      about={data && <AccountState state={data.state} />}
      actions={
        data &&
        changesOf[data.state].map((c) => (
          <Confirm key={c} {...changes[c]} busy={action.busy} onConfirm={() => apply(c)} />
        ))
      }
    >
      <Problem error={error ?? history.error ?? action.error} retry={account.reload} />
      {!data && !error && <Loading />}
      {data && (
        <Facts
          items={[
            ["User", <a href={link("users", data.id)}>{data.id}</a>],
            ["Nickname", data.nickname ?? "–"],
            ["Created", <At ms={data.created} />],
            [
              "Last login",
              data.login ? (
                <>
                  <At ms={data.login.at} /> from {data.login.address}
                </>
              ) : (
                "never"
              ),
            ],
          ]}
        />
      )}
      <Card title="History" note="the last 100 events" flush>
        {history.data?.events.length === 0 && <Empty title="No event is noted." />}
        {history.data && history.data.events.length > 0 && (
          <Table caption="History" columns={["Time", "Event", "Address"]}>
            {history.data.events.map((e) => (
              <tr key={e.n}>
                <td>
                  <At ms={e.at} />
                </td>
                <th scope="row">
                  {e.type}
                  {e.name && <span class="under">before: {e.name}</span>}
                </th>
                <td class="mono">{e.address ?? "–"}</td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
    </Page>
  );
}

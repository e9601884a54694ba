import { get, path, post } from "../api";
import { count } from "../format";
import { useAction, useLoad } from "../hooks";
import { PushForm } from "../parts/push";
import { Ago, At, Badge, Card, Confirm, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import { useSession } from "../session";
import type { Budget, User } from "../types";

/** UserPage shows the devices of a user, online or not. */
export function UserPage({ name }: { name: string }) {
  const { may, self } = useSession();
  const { data, error, reload } = useLoad((signal) => get<User>(path("users", name), { signal }), [name], 3000);
  const disconnect = useAction<{ disconnected: number }>();
  const end = async (call: "disconnect" | "revoke") => {
    await disconnect.run(() => post(path("users", name, call)));
    reload();
  };
  return (
    <Page
      title={name}
      trail={{ label: "Users", href: link("users") }}
      about={data && <Online online={data.online} />}
      actions={
        may("admin") && (
          <>
            {self.tokens && (
              <Confirm
                label="Revoke tokens"
                busy={disconnect.busy}
                onConfirm={() => end("revoke")}
                question={`All tokens of ${name} that were issued until now are refused, and the connections with them end. The devices need new tokens.`}
              />
            )}
            {data?.online && (
              <Confirm
                label="Disconnect all devices"
                busy={disconnect.busy}
                onConfirm={() => end("disconnect")}
                question={`All connections of ${name} end now. The devices may connect again, unless your backend refuses them.`}
              />
            )}
          </>
        )
      }
    >
      <Problem error={error ?? disconnect.error} retry={reload} />
      <p role="status" class="soft">
        {disconnect.result && `${count(disconnect.result.disconnected)} disconnected.`}
        {data?.revoked && (
          <>
            {" "}
            Tokens that were issued before <At ms={data.revoked} /> are revoked.
          </>
        )}
      </p>
      <div class="grid split">
        <Card title="Devices" flush>
          {!data && !error && <Loading />}
          {data?.clients.length === 0 && (
            <Empty title="The store knows no device of this user.">
              A device is known from its first connect until its queue and its record expire. A push to the user now
              would be stored for none.
            </Empty>
          )}
          {data && data.clients.length > 0 && (
            <Table caption="Devices" columns={["Device", "State", "On?", "Since?", "+Queue"]}>
              {data.clients.map((c) => (
                <tr key={c.client}>
                  <th scope="row">
                    <a class="name" href={link("clients", c.client)}>
                      {c.client.slice(c.client.lastIndexOf("/") + 1)}
                    </a>
                  </th>
                  <td>
                    <Online online={c.online} />
                  </td>
                  <td class="wide">{c.server || "–"}</td>
                  <td class="wide">{c.since ? <Ago at={c.since} /> : "–"}</td>
                  <td class="num">{count(c.queued)}</td>
                </tr>
              ))}
            </Table>
          )}
        </Card>
        {may("push") && <PushForm target={{ user: name }} />}
        <BudgetCard name={name} />
      </div>
    </Page>
  );
}

/** BudgetCard shows how many objects a user has made and may make, and what it has stored. It is absent if there are no budgets. */
function BudgetCard({ name }: { name: string }) {
  const { data } = useLoad((signal) => get<Budget>(path("users", name, "budget"), { signal }), [name], 10_000);
  const sorted = (budgets: Budget["objects"] = {}) => Object.entries(budgets).sort(([a], [b]) => a.localeCompare(b));
  const stored = sorted(data?.stored).map(([kind, usage]) => [`stored ${kind}`, usage] as const);
  const kinds = [...sorted(data?.objects), ...stored];
  if (kinds.length === 0) return null;
  return (
    <Card title="Budget" flush>
      <Table caption="Objects that the user has made, and what it has stored" columns={["Kind", "+Used", "+Most"]}>
        {kinds.map(([kind, { used, max }]) => (
          <tr key={kind}>
            <th scope="row">{kind}</th>
            <td class="num">{used >= max ? <Badge tone="bad">{count(used)}</Badge> : count(used)}</td>
            <td class="num">{count(max)}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

export const Online = ({ online }: { online: boolean }) =>
  online ? <Badge tone="good">online</Badge> : <Badge>offline</Badge>;

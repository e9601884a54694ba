import { clientPath, get, post, query } from "../api";
import { count, plural } from "../format";
import { useAction, useLoad } from "../hooks";
import { MessageRow } from "../parts/messages";
import { PushForm } from "../parts/push";
import { Ago, At, Card, Confirm, Empty, Facts, Loading, Page, Problem } from "../parts/ui";
import { link } from "../router";
import { useSession } from "../session";
import type { Client, Queue } from "../types";
import { Online } from "./user";

/** ClientPage shows a device: its connection, and the messages that wait for it. */
export function ClientPage({ id }: { id: string }) {
  const { may } = useSession();
  const { data, error, reload } = useLoad((signal) => get<Client>(clientPath(id), { signal }), [id], 3000);
  const disconnect = useAction<{ disconnected: number }>();
  const end = async () => {
    await disconnect.run(() => post(clientPath(id, "disconnect")));
    reload();
  };
  const trail = data?.user
    ? { label: data.user, href: link("users", data.user) }
    : { label: "Users", href: link("users") };
  return (
    <Page
      title={id}
      trail={trail}
      about={data && <Online online={data.online} />}
      actions={
        may("admin") &&
        data?.online && (
          <Confirm
            label="Disconnect"
            busy={disconnect.busy}
            onConfirm={end}
            question={`The connection of ${id} ends now. The client may connect again, unless your backend refuses it.`}
          />
        )
      }
    >
      {error?.status === 404 ? (
        <Card>
          <Empty title="The store does not know this client.">
            It has never connected, or its record has expired. The id is the user, a slash and the device, as in
            alice/phone.
          </Empty>
        </Card>
      ) : (
        <Problem error={error ?? disconnect.error} retry={reload} />
      )}
      <p role="status" class="soft">
        {disconnect.result && (disconnect.result.disconnected ? "Disconnected." : "It was not connected.")}
      </p>
      {!data && !error && <Loading />}
      {data && (
        <>
          <Facts
            items={[
              ["User", data.user ? <a href={link("users", data.user)}>{data.user}</a> : "none"],
              ["Instance", data.server || "–"],
              ["Since", data.since ? <Ago at={data.since} /> : "–"],
              ["Address", data.address ? <span class="id">{data.address}</span> : "–"],
              ["Token ends", data.expires ? <At ms={data.expires * 1000} /> : data.online ? "never" : "–"],
              ["Waiting messages", count(data.queued)],
            ]}
          />
          <div class="grid split">
            <WaitingMessages id={id} />
            <div class="stack">
              {may("push") && <PushForm target={{ client: id }} />}
              <Card title="Channels" note={data.channels && plural(data.channels.length, "subscription")}>
                {data.channels?.length ? (
                  <ul class="tags">
                    {data.channels.map((c) => (
                      <li key={c}>
                        <a href={link("channels", c)}>{c}</a>
                      </li>
                    ))}
                  </ul>
                ) : (
                  <Empty
                    title={
                      data.online ? "It has subscribed to no channel." : "Subscriptions are known while it is online."
                    }
                  />
                )}
              </Card>
            </div>
          </div>
        </>
      )}
    </Page>
  );
}

/** WaitingMessages shows the queue without acknowledging anything. */
function WaitingMessages({ id }: { id: string }) {
  const { data, error } = useLoad(
    (signal) => get<Queue>(clientPath(id, "queue") + query({ limit: 100 }), { signal, exact: true }),
    [id],
    3000,
  );
  return (
    <Card title="Queue" flush note={data && `${plural(data.count, "message")} not acknowledged`}>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && !data.recovered && (
        <p class="gap">Older messages were dropped before the device received them; it gets a gap.</p>
      )}
      {data?.messages.length === 0 && (
        <Empty title="Nothing waits.">The device has acknowledged every message to it and its user.</Empty>
      )}
      <div class="tail">
        {data?.messages.map((m) => (
          <MessageRow key={m.id} message={m} />
        ))}
      </div>
      {data && data.count > data.messages.length && (
        <p class="card-foot">
          The oldest {count(data.messages.length)} of {count(data.count)}
        </p>
      )}
    </Card>
  );
}

import { get, path } from "../api";
import { count, plural } from "../format";
import { useLoad } from "../hooks";
import { PushForm } from "../parts/push";
import { Tail } from "../parts/tail";
import { Facts, Page, Problem } from "../parts/ui";
import { link } from "../router";
import { useSession } from "../session";
import type { Channel } from "../types";
import { Members } from "./members";
import { StateFields } from "./state";

/** ChannelPage shows a channel: its messages as they arrive, its subscribers and its state. */
export function ChannelPage({ name }: { name: string }) {
  const { may } = useSession();
  const { data, error, reload } = useLoad((signal) => get<Channel>(path("channels", name), { signal }), [name], 3000);
  return (
    <Page title={name} trail={{ label: "Channels", href: link("channels") }}>
      <Problem error={error} retry={reload} />
      {data && (
        <Facts
          items={[
            ["Subscribers", count(data.subscribers) + (data.partial ? " or more" : "")],
            ["On", plural(data.servers, "instance")],
            ["Messages stored", count(data.messages)],
            ["Last id", data.id ? <span class="id">{data.id}</span> : "–"],
          ]}
        />
      )}
      <div class="grid split">
        <Tail key={name} channel={name} />
        <div class="stack">
          {may("push") && <PushForm target={{ channel: name }} fields />}
          <Members channel={name} />
        </div>
      </div>
      <StateFields channel={name} />
    </Page>
  );
}

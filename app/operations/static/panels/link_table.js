// The list of linked identities with a button at each.

import { el } from "../base/dom.js";
import { ownTable, rowButton, shortTime } from "./table.js";

export function linkTable(links, { run }) {
  if (!links.length) return null;
  const rows = links.map((link) => row(link, run));
  return ownTable("Identities of this account", ["Provider", "Identity", "Last used"], rows);
}

function row(link, run) {
  const remove = async () => {
    const call = { method: "DELETE", path: `auth/external-auth/links/${link.id}` };
    const answer = await run(call, () => `${link.provider_display_name} can no longer sign in to this account.`);
    if (answer?.ok) node.remove();
  };
  const node = el(
    "tr",
    {},
    el("td", {}, link.provider_display_name),
    el("td", {}, link.email_snapshot || link.subject),
    el("td", {}, link.last_login_at ? shortTime(link.last_login_at) : "never"),
    rowButton("Remove", `Remove ${link.provider_display_name}`, remove),
  );
  return node;
}

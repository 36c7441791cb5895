// The list of passkeys with a button at each.

import { el } from "../base/dom.js";
import { pill } from "../exchange.js";
import { ownTable, rowButton, shortTime } from "./table.js";

export function passkeyTable(passkeys, { run }) {
  if (!passkeys.length) return null;
  const rows = passkeys.map((passkey) => row(passkey, run));
  return ownTable("Passkeys of this account", ["Name", "Created", "Last used"], rows);
}

function row(passkey, run) {
  const remove = async () => {
    const call = { method: "DELETE", path: `auth/passkeys/${passkey.id}` };
    const answer = await run(call, () => `“${passkey.name}” is removed: nobody can sign in with it any more.`);
    if (answer?.ok) node.remove();
  };
  const node = el(
    "tr",
    {},
    el("td", {}, passkey.name, passkey.backed_up && [" ", pill("synced", "plain")]),
    el("td", {}, shortTime(passkey.created_at)),
    el("td", {}, passkey.last_used_at ? shortTime(passkey.last_used_at) : "never"),
    rowButton("Remove", `Remove ${passkey.name}`, remove),
  );
  return node;
}

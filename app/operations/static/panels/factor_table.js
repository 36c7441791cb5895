// The list of second factors with a button at each, and the code that proves who removes one.

import { el } from "../base/dom.js";
import { codeInput, field, PROOF, PROOF_HINT } from "./code_field.js";
import { ownTable, rowButton, shortTime } from "./table.js";

export function factorTable({ factors }, { id, run }) {
  if (!factors.length) return null;
  const code = codeInput(`${id}-code`);
  const rows = factors.map((factor) => row(factor, code, run));
  return el(
    "div",
    {},
    field(code, PROOF, PROOF_HINT),
    ownTable("Second factors of this account", ["Name", "Last used"], rows),
  );
}

function row(factor, code, run) {
  const removed = (data, memory) => {
    memory.hasFactor = false;
    return `“${factor.name}” has been removed, and the recovery codes with it.`;
  };
  const remove = async () => {
    const call = { method: "DELETE", path: `auth/mfa/factors/${factor.id}`, body: { code: code.value } };
    const answer = await run(call, removed);
    if (!answer?.ok) code.select();
    // Without its last row nothing is left to prove.
    else if (node.parentElement.rows.length > 1) node.remove();
    else node.closest(".table-wrap").parentElement.remove();
  };
  const node = el(
    "tr",
    {},
    el("td", {}, factor.name),
    el("td", {}, factor.last_used_at ? shortTime(factor.last_used_at) : "never"),
    rowButton("Remove", `Remove ${factor.name}`, remove),
  );
  return node;
}

// The list of providers with a button at each that leaves for it.

import { el } from "../base/dom.js";
import { setOut } from "./journey.js";
import { ownTable, rowButton } from "./table.js";

const PANEL = "external-sign-in";

export function providerTable(providers, { run }) {
  if (!providers.length) return null;
  return ownTable("Providers", ["Name", "Kind"], providers.map((provider) => row(provider, run)));
}

function row(provider, run) {
  const leave = () => {
    const path = `auth/external-auth/${provider.kind}/${provider.key}/start`;
    const body = { return_path: `${window.location.pathname}#${PANEL}` };
    return run({ method: "POST", path, body }, ({ authorization_url: url }) => {
      setOut(provider.display_name);
      window.location.assign(url);
      return `On the way to ${new URL(url).host}.`;
    });
  };
  return el(
    "tr",
    {},
    el("td", {}, provider.display_name),
    el("td", {}, provider.kind),
    rowButton("Sign in", `Sign in with ${provider.display_name}`, leave),
  );
}

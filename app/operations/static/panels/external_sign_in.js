// External sign-in: go to a provider and come back signed in, see the links and remove one.

import { el } from "../base/dom.js";
import { stepsPanel } from "../steps.js";
import { comeBack } from "./journey.js";
import { linkTable } from "./link_table.js";
import { providerTable } from "./provider_table.js";

const journey = comeBack();

const steps = [
  {
    id: "external-providers",
    title: "Sign in with a provider",
    method: "GET",
    path: "/auth/external-auth/providers",
    route: "/auth/external-auth/providers, then …/start",
    why: "The start of a sign-in answers where to send the browser, and sets a cookie that ties the sign-in to this browser. The provider sends the browser back to the callback, which opens the session and returns here. A refusal leads to the frontend's page /login, whose address says why.",
    action: "List the providers",
    explain: (data) => (data.length ? "Choose one. The browser leaves this page and comes back." : "No provider is set up: see “External sign-in” in the README."),
    extra: providerTable,
    isSettled: () => Boolean(journey?.isDone),
  },
  {
    id: "external-me",
    title: "See who you are",
    method: "GET",
    path: "/auth/me",
    why: "A linked identity signs in to its account. Any other gets an account, or is asked for one, depending on the provider's rules.",
    action: "Show",
    explain: (data) => `Signed in as “${data.username}”.`,
  },
  {
    id: "external-links",
    title: "See and remove links",
    method: "GET",
    path: "/auth/external-auth/links",
    why: "A removed identity can no longer sign in. The last way to sign in to an account cannot be removed.",
    action: "List",
    explain: (data) => `${data.length} ${data.length === 1 ? "link" : "links"}.`,
    extra: linkTable,
  },
];

export const externalSignIn = {
  id: "external-sign-in",
  title: "External sign-in",
  build: () =>
    stepsPanel({
      id: externalSignIn.id,
      title: externalSignIn.title,
      lead: "Signing in with an account at another service (OpenID Connect and OAuth 2).",
      steps,
      notice: journey && el("p", { class: "notice", role: "status" }, journey.text),
    }),
};

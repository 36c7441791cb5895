// The reference page: panels to walk through, and below them every operation.

import { isSignedIn } from "./api.js";
import { el } from "./base/dom.js";
import { panels } from "./panels/index.js";
import { showReferenceWhenNear } from "./reference.js";

const contents = document.getElementById("contents");
const account = document.getElementById("account");

function addContent(id, title) {
  contents.append(el("li", {}, el("a", { href: `#${id}` }, title)));
}

// Access and refresh token are out of a script's sight; the CSRF cookie lives and dies with them.
function showAccount() {
  account.textContent = isSignedIn() ? "Signed in" : "Signed out";
  account.dataset.signedIn = String(isSignedIn());
}

// What an address leads to is not to end up below the bar that stays in view.
function keepRoomForTheBar() {
  const bar = document.querySelector(".bar");
  const measure = () => document.documentElement.style.setProperty("--bar-height", `${bar.offsetHeight}px`);
  new ResizeObserver(measure).observe(bar);
  measure();
}

for (const panel of panels) {
  document.getElementById("panels").append(panel.build());
  addContent(panel.id, panel.title);
}
addContent("all-routes", "All routes");
keepRoomForTheBar();
// The address may name a panel, which was not there yet when the browser looked for it.
document.getElementById(window.location.hash.slice(1))?.scrollIntoView();
document.addEventListener("exchange", showAccount);
showAccount();
showReferenceWhenNear(document.getElementById("swagger-ui"));

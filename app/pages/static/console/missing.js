// @ts-check
// An address below /settings or /admin at which there is nothing.

import { byId } from "../base/dom.js";
import { start } from "../base/page.js";
import { whoIsSignedIn } from "../base/session.js";
import { offerMenus, showWho } from "./open.js";

start(async () => {
  offerMenus();
  const me = await whoIsSignedIn();
  if (me) showWho(me);
  else byId("account-menu").hidden = true;
});

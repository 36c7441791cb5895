// The panels above the list of operations, in their order on the page.
// A panel: { id, title, build() }, where build() returns its <section> with that id.

import { externalSignIn } from "./external_sign_in.js";
import { secondFactors } from "./factors.js";
import { firstSession } from "./first_session.js";
import { liveEvents } from "./live_events.js";
import { passkeys } from "./passkeys.js";

export const panels = [firstSession, secondFactors, passkeys, externalSignIn, liveEvents];

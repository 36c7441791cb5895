// Why something that was tried ended without an answer of the service, in words for a person.

export class Unfinished extends Error {}

// The person ended it, or began something else.
export class Stopped extends Unfinished {}

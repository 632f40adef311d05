/**
 * The longest time, of one request in all, that its caller waits for a person beyond its timeout, in milliseconds: no
 * callee delays a caller for longer.
 */
export const MAX_APPROVAL_WAIT_MS = 3_600_000

/** Memory of an honest node under attack, at most, in MiB. */
export const MAX_MEMORY = 200
/** What an attack may make an honest node keep, unless it says otherwise, in MiB. */
export const MAX_DISK = 64
/** p99 of honest calls under attack: at most so many times the quiet one, */
export const MAX_RATIO = 2
/** and so many milliseconds more: nodes, callers and the member share the processors of one machine. */
export const TOLERANCE_MS = 25

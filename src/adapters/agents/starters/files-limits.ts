/** Unfinished uploads of one granted directory. */
export const MAX_PARTIALS = 16
/** An unfinished upload is removed when nothing came for this time. */
export const PARTIAL_LIFETIME_MS = 24 * 3_600_000
/** Free bytes of the disk that uploads leave: 256 MiB. */
export const UPLOAD_RESERVE_BYTES = 256 * 1024 * 1024
/** Entries of `files.list` at most. */
export const MAX_ENTRIES = 1000

/** Bytes of a file that `files.write` takes and of which `files.stat` gives the hash, at most: 1 GiB. */
export const MAX_FILE_BYTES = 1024 * 1024 * 1024
/** Bytes of one range of `files.read` and `files.append` at most: 3 MiB, 4 MiB as base64. */
export const MAX_RANGE_BYTES = 3 * 1024 * 1024
/** Unfinished uploads of one granted directory. */
export const MAX_PARTIALS = 16
/** An unfinished upload is removed when nothing came for this time. */
export const PARTIAL_LIFETIME_MS = 24 * 3_600_000
/** Free bytes of the disk that uploads leave: 256 MiB. */
export const UPLOAD_RESERVE_BYTES = 256 * 1024 * 1024
/** Entries of `files.list` at most. */
export const MAX_ENTRIES = 1000

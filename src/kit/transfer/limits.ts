/** Bytes of a file that nodes copy, at most: 1 GiB. */
export const MAX_FILE_BYTES = 1024 * 1024 * 1024
/** Bytes of one range of a copied file at most: 3 MiB, 4 MiB as base64. */
export const MAX_RANGE_BYTES = 3 * 1024 * 1024

/** Bounds of a snapshot in bytes: its head with the streams, and the document. */
export const SNAPSHOT_LIMITS = { maxHeadBytes: 8_388_608, maxDocumentBytes: 16_777_216 } as const

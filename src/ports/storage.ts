/** State of a node between starts: small JSON documents, each written whole and atomically. */
export interface NodeStore {
  /** The stored document, or null. Damaged ones are an error. @throws NodeError STORE_DAMAGED */
  read<T>(name: string): Promise<T | null>
  /** Replaces the document (write aside, fsync, rename). @throws NodeError DISK_FULL, NO_PERMISSION */
  write(name: string, value: unknown): Promise<void>
  remove(name: string): Promise<void>
}

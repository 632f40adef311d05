/** File system calls of {@link giveNewName}. */
export interface Renaming {
  link(from: string, to: string): Promise<unknown>
  unlink(file: string): Promise<unknown>
  rename(from: string, to: string): Promise<unknown>
  /** Rejects when nothing has the name. */
  lstat(file: string): Promise<unknown>
}

/** Codes of a file system without hard links. */
const NO_LINKS: ReadonlySet<unknown> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS'])

/**
 * Gives a file a name that no file has. A hard link never replaces a file; without links it looks, then renames.
 * Rejects with EEXIST when the name is in use.
 */
export async function giveNewName(from: string, to: string, calls: Renaming): Promise<void> {
  try {
    await calls.link(from, to)
    await calls.unlink(from)
  } catch (error) {
    const isFree = await calls.lstat(to).then(
      () => false,
      () => true
    )
    if (!NO_LINKS.has((error as { readonly code?: unknown }).code) || !isFree) throw error
    await calls.rename(from, to)
  }
}

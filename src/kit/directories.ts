/** File system calls of {@link makeDirectories}. */
export interface DirectoryMaker {
  /** Makes one directory; rejects when something has that name or the one above is missing. */
  mkdir(dir: string): Promise<unknown>
  /** Is there a directory of that name? Never rejects. */
  isDirectory(dir: string): Promise<boolean>
  /** The directory above; the root gives itself. */
  parent(dir: string): string
}

/**
 * Makes a directory and its missing parents one level at a time. The recursive mkdir of Node 20 never ends where a file
 * system refuses new names with ENOENT, as /proc does. Rejects with the error of the first failing mkdir.
 */
export async function makeDirectories(dir: string, maker: DirectoryMaker): Promise<void> {
  if (await maker.isDirectory(dir)) return
  const parent = maker.parent(dir)
  if (parent !== dir) await makeDirectories(parent, maker)
  try {
    await maker.mkdir(dir)
  } catch (error) {
    // Another process may have been a moment faster.
    if (!(await maker.isDirectory(dir))) throw error
  }
}

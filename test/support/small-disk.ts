import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { tempDir } from './tmp.js'

/** A file system of its own that can be full. */
export interface SmallDisk {
  readonly dir: string
  /** Takes all the room that is left; again where some came free since. */
  fill(): Promise<void>
  /** Gives so many bytes of it back, once it was filled. */
  leave(bytes: number): Promise<void>
  /** Gives that room back. */
  free(): Promise<void>
}

/** A file system in memory of so many MiB, or why there is none: only root may mount one, and only on Linux. */
export async function smallDisk(t: Assert, mebibytes: number): Promise<SmallDisk | string> {
  const dir = path.join(await tempDir(t), 'disk')
  await fs.mkdir(dir)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'none', dir], { encoding: 'utf8' })
  if (mounted.status !== 0)
    return `this machine mounts no file system: ${mounted.error?.message ?? mounted.stderr.trim()}`
  t.teardown(() => void spawnSync('umount', ['--lazy', dir]))
  const pad = path.join(dir, 'pad')
  return {
    dir,
    fill: async () => {
      const handle = await fs.open(pad, 'a')
      try {
        for (;;) await handle.write(new Uint8Array(64 * 1024))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        await handle.close()
      }
    },
    leave: async (bytes) => await fs.truncate(pad, (await fs.stat(pad)).size - bytes),
    free: () => fs.rm(pad)
  }
}

import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Assert } from 'brittle'

/** What gives back, when a test ends, what it made. */
export type Teardown = Pick<Assert, 'teardown'>

/**
 * Makes an empty directory (0700) that is removed when the test ends, after its other teardowns. Short paths: sockets
 * fit.
 */
export async function tempDir(t: Teardown): Promise<string> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'a2a-'))
  t.teardown(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 3 }), { order: Number.POSITIVE_INFINITY })
  return dir
}

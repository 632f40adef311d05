import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The directory of this package: the nearest one above this file with a package.json. */
export function ownRoot(dir: string = path.dirname(fileURLToPath(import.meta.url))): string {
  return existsSync(path.join(dir, 'package.json')) || dir === path.dirname(dir) ? dir : ownRoot(path.dirname(dir))
}

/** The file that starts this program. */
export function ownProgram(): string {
  return path.join(ownRoot(), 'bin', 'a2a-node.js')
}

import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** A user without rights, on every Linux and macOS. */
const NOBODY = 65_534

/**
 * Runs a script as a user to whom file modes apply: the superuser passes them all. The script may import compiled
 * modules by their path below `src/` through the global function `load` and prints its result; returned is what it
 * printed.
 */
export function asNobody(script: string): string {
  const root = pathToFileURL(path.resolve(import.meta.dirname, '../../src')).href
  const isRoot = process.getuid?.() === 0
  const become = isRoot ? `process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY});` : ''
  // Modules are loaded first: the superuser's directories may be closed to others.
  const code = `globalThis.load = (file) => import('${root}/' + file);\n${script.replace('/* become */', become)}`
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8', timeout: 20_000 })
  if (result.status !== 0) throw new Error(result.stderr)
  return result.stdout.trim()
}

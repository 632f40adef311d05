import path from 'node:path'
import { type LocalMesh, type LocalNode, untilAgent } from './nodes.js'

const WORDS = '{"text":"one two"}'

/** Makes a backup of a node in a directory; its file. */
export async function backupOf(node: LocalNode, dir: string, name = 'node.backup'): Promise<string> {
  const file = path.join(dir, name)
  const made = await node.cli(['backup', file])
  if (made.code !== 0) throw new Error(made.stderr)
  return file
}

/** Restores a backup to a home. */
export async function restored(mesh: LocalMesh, file: string, home: string): Promise<void> {
  const { code, stderr } = await mesh.run(['--home', home, 'restore', file])
  if (code !== 0) throw new Error(stderr)
}

/** Calls `text.stats` of an agent; the outcome. */
export async function calls(from: LocalNode, to: string): Promise<string> {
  await untilAgent(from, to)
  return (await from.json<{ outcome: string }>(['call', to, 'text.stats', WORDS])).outcome
}

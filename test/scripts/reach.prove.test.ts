import { execFile } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import test from 'brittle'
import { REPOSITORY } from '../cli/command-line.js'

interface Report {
  readonly figures: readonly { readonly name: string; readonly verdict: string }[]
}

const { internetFault } = (await import(pathToFileURL(path.resolve('scripts/reach/internet.mjs')).href)) as {
  /** Why there are no such networks here; null: there are. */
  internetFault(): string | null
}
const fault = internetFault()

test(`where UDP is blocked a newcomer joins by WebSocket, and moves to UDP when that passes${fault === null ? '' : ` (skipped: ${fault})`}`, {
  skip: fault !== null
}, async (t) => {
  const words = ['scripts/reach.mjs', 'udp', '--json']
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: REPOSITORY })
  const { figures } = JSON.parse(stdout) as Report
  t.alike(
    figures.map(({ name, verdict }) => [name, verdict]),
    [
      ['join with UDP blocked, by WebSocket', 'ok'],
      ['links by another path than WebSocket', 'ok'],
      ['UDP passes again, until the link is direct', '-']
    ]
  )
})

test('a machine without network namespaces skips with its reason, and an unknown part is refused', async (t) => {
  const run = promisify(execFile)
  const env = { ...process.env, PATH: '/nowhere' }
  const { stdout } = await run(process.execPath, ['scripts/reach.mjs'], { cwd: REPOSITORY, env })
  t.ok(stdout.startsWith('skipped: needs '), stdout)
  const refused = await run(process.execPath, ['scripts/reach.mjs', 'moon'], { cwd: REPOSITORY }).catch(
    (error: { code: number; stderr: string }) => error
  )
  t.is((refused as { code?: number }).code, 2, refused.stderr)
})

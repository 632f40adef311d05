import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import test from 'brittle'

const ROOT = path.resolve(import.meta.dirname, '../../../..')
const run = promisify(execFile)

interface Proof {
  readonly ok: boolean
  readonly rounds: number
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly faults: readonly string[]
}

/** The compiled sources of the tests, not the built package. */
async function starters(...args: readonly string[]): Promise<Proof> {
  const script = path.join(ROOT, 'scripts', 'storm', 'starters.mjs')
  const code = path.join(ROOT, 'build', 'src')
  const { stdout } = await run(process.execPath, [script, '--json', '--code', code, ...args]).catch(
    (error: unknown) => error as { stdout: string }
  )
  return JSON.parse(stdout) as Proof
}

test('of many nodes that start at once in one home exactly one gets it, after any earlier holder', async (t) => {
  const { ok, faults, counts } = await starters('--rounds', '10', '--starters', '8', '--load', '0', '--seed', '1')
  t.alike(faults, [])
  t.ok(ok)
  t.alike(
    Object.keys(counts).sort(),
    ['damaged', 'dead', 'killed', 'killed meanwhile', 'none', 'recycled'],
    'every kind of pid file was there'
  )
})

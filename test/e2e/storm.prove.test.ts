import { spawn } from 'node:child_process'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ROOT } from '../support/nodes.js'

/** How many of one load were accepted, and how many ended as what. */
type Counts = Readonly<Record<string, number>> & { readonly accepted: number }

interface LayoutReport {
  readonly layout: string
  readonly kills: number
  readonly faults: number
  readonly requests: Counts
  readonly swarms: Counts
  readonly tasks: Counts
  readonly edits: Counts
}

async function ranStorm(
  t: Assert,
  args: readonly string[]
): Promise<{ seed: number; faults: number; reports: readonly LayoutReport[] }> {
  const script = path.join(ROOT, 'scripts', 'storm.mjs')
  const child = spawn(process.execPath, [script, ...args, '--json'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const text = { out: '', errors: '' }
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text.out += more
  })
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    text.errors += more
  })
  t.is(await exited, 0, text.errors)
  t.comment(text.out.trim())
  return JSON.parse(text.out) as Awaited<ReturnType<typeof ranStorm>>
}

test('nodes of a chain killed at random lose no accepted request, swarm, A2A task, notification or edit, and run nothing twice', {
  timeout: 300_000
}, async (t) => {
  const { faults, reports } = await ranStorm(t, ['first-starts', 'chain-3', '--kills', '10', '--requests', '300'])
  t.is(faults, 0)
  const [firsts, chain] = reports
  t.alike([firsts?.layout, firsts?.kills, chain?.layout], ['first-starts', 1, 'chain-3'])
  t.ok((chain?.kills ?? 0) >= 9 && (chain?.requests.accepted ?? 0) >= 300)
  for (const load of ['requests', 'swarms', 'tasks', 'edits'] as const) {
    const { accepted, ...ends } = chain?.[load] ?? { accepted: 0 }
    t.ok(accepted > 0, `${load} were accepted`)
    t.is(
      Object.values(ends).reduce((sum, count) => sum + count, 0),
      accepted,
      `all ${load} have an end`
    )
  }
})

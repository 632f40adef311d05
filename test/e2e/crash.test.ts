import { spawn } from 'node:child_process'
import path from 'node:path'
import test from 'brittle'
import { ROOT } from '../support/nodes.js'

interface CrashReport {
  readonly kills: number
  readonly firstStarts: number
  readonly acknowledged: number
  readonly ends: Readonly<Record<string, number>>
  readonly effects: number
  readonly faults: number
}

test('nodes killed ten times at random lose nothing acknowledged, and do nothing twice', { timeout: 300_000 }, async (t) => {
  const script = path.join(ROOT, 'scripts', 'crash.mjs')
  const child = spawn(process.execPath, [script, '--kills', '10', '--acks', '200', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] })
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
  const report = JSON.parse(text.out) as CrashReport
  t.comment(text.out.trim())
  t.is(report.faults, 0)
  t.ok(report.kills >= 10 && report.firstStarts >= 1)
  t.ok(report.acknowledged >= 200)
  t.ok((report.ends['completed'] ?? 0) <= report.effects, 'every completed one left its line')
  t.is(
    Object.values(report.ends).reduce((sum, count) => sum + count, 0),
    report.acknowledged,
    'every acknowledged one has an end'
  )
})

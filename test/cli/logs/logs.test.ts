import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { linesSince, logLines } from '../../../src/cli/logs/log-lines.js'
import { followLog, readLogFile } from '../../../src/cli/logs/log-reader.js'
import { tempDir } from '../../support/tmp.js'
import { run, spawned } from '../command-line.js'

const DAY_MS = 86_400_000

/** A line of the form `text` at a time of this machine's zone. */
function lineAt(at: number, message: string): string {
  return `${new Date(at).toTimeString().slice(0, 8)} info  ${message}`
}

/** Noon of a day without a change of clocks. */
const NOON = new Date(2026, 0, 15, 12, 0, 0).getTime()

test('lines with a time of day alone get their days by the time of the last one, also over midnight', (t) => {
  const times = [NOON - 2 * DAY_MS, NOON - 2 * DAY_MS + 3_600_000, NOON - DAY_MS, NOON - 43_300_000, NOON - 1000, NOON]
  const lines = logLines(`banner\n${times.map((at, i) => lineAt(at, `m${i}`)).join('\n')}\n`, NOON + 400)
  t.alike(
    lines.map(({ at }) => at),
    [null, ...times]
  )
  t.alike(
    linesSince(lines, NOON - 1000).map(({ text }) => text.slice(-2)),
    ['m4', 'm5']
  )
  t.alike(linesSince(lines, NOON + 401), [])
  const banner = logLines('banner\n', NOON)
  t.alike(linesSince(banner, NOON - 1), banner, 'a log without any time is as old as its last line')
})

test('lines of the form json have their own time, and the next lines without one go with them', (t) => {
  const text =
    '{"level":"info","at":"2026-01-01T00:00:00.500Z","message":"one"}\n  at stack\n{"level":"info","at":"x"}\n'
  const lines = logLines(text, NOON)
  t.alike(
    lines.map(({ at }) => at),
    [Date.parse('2026-01-01T00:00:00.500Z'), null, null]
  )
  t.is(linesSince(lines, 0).length, 3)
})

test('a line of a time that does not exist has none, and the lines before it keep theirs', (t) => {
  const lines = logLines(`${lineAt(NOON, 'one')}\n{"at":"2026-99-99T99:99:99Z"}\n{"at":"2026-01-01T..Z"}\n`, NOON)
  t.alike(
    lines.map(({ at }) => at),
    [NOON, null, null]
  )
  t.is(linesSince(lines, NOON).length, 3)
})

async function collected(t: Assert, file: string, act: () => Promise<void>, count: number): Promise<string[]> {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const place = (await readLogFile(file))?.end ?? null
  const found: string[] = []
  const acting = act()
  for await (const line of followLog(file, place, stop.signal)) {
    found.push(line)
    if (found.length === count) stop.abort()
  }
  await acting
  return found
}

test('a followed log gives each later line once and whole, over an emptied and over a replaced file', async (t) => {
  const file = path.join(await tempDir(t), 'node.log')
  await fs.writeFile(file, 'before\n')
  const act = async (): Promise<void> => {
    await fs.appendFile(file, 'one\nhalf')
    await fs.appendFile(file, ' and half\n')
  }
  t.alike(await collected(t, file, act, 2), ['one', 'half and half'])
  t.alike(await collected(t, file, () => fs.writeFile(file, 'new\n'), 1), ['new'], 'emptied')
  const replaced = async (): Promise<void> => {
    await fs.rename(file, `${file}.1`)
    await fs.writeFile(file, 'a longer text than before\nlast\n')
  }
  t.alike(await collected(t, file, replaced, 2), ['a longer text than before', 'last'])
  await fs.rm(file)
  t.alike(await collected(t, file, () => fs.writeFile(file, 'again\n'), 1), ['again'], 'it need not be there yet')
})

test('logs prints the last lines of both files, those since a time, without control characters, and refuses a home without a log', async (t) => {
  const home = await tempDir(t)
  const none = await run(['logs'], { home })
  t.is(none.code, 9)
  t.ok(none.stderr.includes(`there is no log ${path.join(home, 'node.log')}`), none.stderr)
  t.ok(none.stderr.includes('a2a-node --home') || none.stderr.includes('start --detach'), none.stderr)
  const now = Date.now()
  const log = path.join(home, 'node.log')
  await fs.writeFile(`${log}.1`, '{"level":"info","at":"2026-01-01T00:00:00.000Z","message":"former"}\n')
  const line = (at: number, message: string): string =>
    JSON.stringify({ level: 'info', at: new Date(at).toISOString(), message })
  await fs.writeFile(log, `${line(now - 7_200_000, 'early')}\n${line(now - 60_000, 'late')}\nred \u001b[31m text\n`)
  const all = await run(['logs'], { home })
  t.alike([all.code, all.stdout.trim().split('\n').length], [0, 4])
  t.absent(all.stdout.includes('\u001b'))
  t.ok(all.stdout.indexOf('former') < all.stdout.indexOf('early'))
  t.is((await run(['logs', '--lines', '1'], { home })).stdout.trim().split('\n').length, 1)
  t.is((await run(['logs', '--lines', '0'], { home })).stdout, '')
  const late = await run(['logs', '--since', '10m', '--json'], { home })
  const objects = late.stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as { schema: string; at: string | null })
  t.alike(
    objects.map(({ schema, at }) => [schema, at]),
    [
      ['a2a-node/log@1', new Date(now - 60_000).toISOString()],
      ['a2a-node/log@1', null]
    ]
  )
  t.is((await run(['logs', '--since', 'yesterday'], { home })).code, 2)
})

test('logs --follow ends with the signal of a person', async (t) => {
  const home = await tempDir(t)
  const log = path.join(home, 'node.log')
  await fs.writeFile(log, 'one\n')
  const ran = await spawned(['logs', '-f', '--lines', 'x'], { home })
  t.is(ran.code, 2)
  const child = await followed(home)
  t.alike(child, { code: 130, stdout: 'one\n' })
})

/** Follows a log until its first line has come, then interrupts. */
async function followed(home: string): Promise<{ code: number | null; stdout: string }> {
  const { spawn } = await import('node:child_process')
  const { REPOSITORY } = await import('../command-line.js')
  const child = spawn(process.execPath, [path.join(REPOSITORY, 'bin', 'a2a-node.js'), '--home', home, 'logs', '-f'])
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    child.kill('SIGINT')
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout }
}

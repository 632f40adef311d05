import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import {
  ApprovalNotifier,
  type ApprovalNotifierDeps,
  desktopArgv,
  MAX_NOTIFIERS,
  MAX_WAITING_NOTICES
} from '../../../src/adapters/system/approval-notifier.js'
import { SETTINGS } from '../../../src/config/settings.js'
import type { ApprovalInfo } from '../../../src/ports/policy-api.js'
import { untilTrue } from '../../support/nodes.js'
import { PENDING_APPROVAL } from '../../support/pending-approval.js'
import { tempDir } from '../../support/tmp.js'

const HOSTILE = '$(touch owned) `touch owned`; touch owned <b>&amp;\u001b[31m\u202e'
const hostile: ApprovalInfo = { ...PENDING_APPROVAL, from: `${HOSTILE}@x`, capability: HOSTILE, description: HOSTILE }

/** A program of Node that stores its arguments, its text and its standard input as one JSON line of a file. */
const WRITER = `
const fs = require('node:fs')
const input = fs.readFileSync(0, 'utf8')
fs.appendFileSync(process.argv[1], JSON.stringify([process.argv.slice(2), process.env.A2A_NODE_APPROVAL, input]) + '\\n')
`

function notifier(t: Assert, how: ApprovalNotifierDeps['how'], more: Partial<ApprovalNotifierDeps> = {}) {
  const one = new ApprovalNotifier({ how, platform: 'linux', telemetry: { log: () => {} }, ...more })
  t.teardown(() => one.close())
  return one
}

const linesOf = async (file: string): Promise<string[]> =>
  (await fs.readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')

test('a program gets each approval as JSON and a short safe text, and no text of a peer reaches a shell', async (t) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'out')
  const one = notifier(t, [process.execPath, '-e', WRITER, file, 'a b', '$HOME'])
  one.notify(hostile)
  await untilTrue(async () => (await linesOf(file)).length === 1, 'the program ran')
  const [args, text, input] = JSON.parse((await linesOf(file))[0] ?? '') as [string[], string, string]
  t.alike(args, ['a b', '$HOME'], 'arguments are passed as they are')
  t.alike(JSON.parse(input), JSON.parse(JSON.stringify(hostile)))
  t.absent(/[\p{Cc}\u202e]/u.test(text), text)
  t.ok(text.includes(`a2a-node approvals show ${PENDING_APPROVAL.id}`), text)
  t.alike(await fs.readdir(dir), ['out'], 'nothing else was run')
  t.alike(one.problems(), [])
})

test('a program that is missing, fails, or runs too long is a problem until a notice succeeds', async (t) => {
  const file = path.join(await tempDir(t), 'flag')
  const cases: readonly (readonly [readonly string[], string, { timeoutMs?: number }])[] = [
    [['/nowhere/notify'], 'cannot be run', {}],
    [[process.execPath, '-e', 'process.exit(3)'], 'failed with 3', {}],
    [[process.execPath, '-e', 'setInterval(() => {}, 1000)'], 'ran for more than 0.3 s', { timeoutMs: 300 }]
  ]
  for (const [argv, words, more] of cases) {
    const one = notifier(t, argv, more)
    one.notify(PENDING_APPROVAL)
    await untilTrue(() => one.problems().length > 0, words)
    const [problem] = one.problems()
    t.is(problem?.code, 'NOTIFY_FAILED')
    t.ok(problem?.message.includes(words), problem?.message)
  }
  const once = `const fs = require('node:fs'); if (fs.existsSync(${JSON.stringify(file)})) process.exit(0); fs.writeFileSync(${JSON.stringify(file)}, ''); process.exit(1)`
  const mended = notifier(t, [process.execPath, '-e', once])
  mended.notify(PENDING_APPROVAL)
  await untilTrue(() => mended.problems().length === 1, 'it failed')
  mended.notify(PENDING_APPROVAL)
  await untilTrue(() => mended.problems().length === 0, 'it works again')
})

test('few programs run at once, and notices beyond the queue are dropped as a problem', async (t) => {
  const file = path.join(await tempDir(t), 'out')
  const slow = `require('node:fs').appendFileSync(process.argv[1], 'x\\n'); setInterval(() => {}, 1000)`
  const one = notifier(t, [process.execPath, '-e', slow, file])
  for (let i = 0; i < MAX_NOTIFIERS + MAX_WAITING_NOTICES; i++) one.notify(PENDING_APPROVAL)
  t.alike(one.problems(), [])
  one.notify(PENDING_APPROVAL)
  t.is(one.problems()[0]?.code, 'NOTIFY_FAILED')
  await untilTrue(async () => (await linesOf(file)).length === MAX_NOTIFIERS, 'the first ones run')
  t.is((await linesOf(file)).length, MAX_NOTIFIERS)
})

test('a desktop notice has the text as one plain argument, also on macOS, and is a problem elsewhere', (t) => {
  for (const platform of ['linux', 'darwin']) {
    const argv = desktopArgv(platform, `-e do shell script "x" ${HOSTILE}${'y'.repeat(1000)}`) ?? []
    const text = argv.at(-1) ?? ''
    t.ok(text.length <= 241 && !/[<>&\p{Cc}\u202e]/u.test(text), text)
    t.is(argv.slice(0, -1).filter((word) => word.includes('touch')).length, 0, 'no script contains it')
  }
  t.is(desktopArgv('win32', 'x'), null)
  const one = notifier(t, 'desktop', { platform: 'win32' })
  one.notify(PENDING_APPROVAL)
  t.is(one.problems().length, 1)
})

test('policy.notify takes desktop or a list of words, and nothing else', (t) => {
  const { schema } = SETTINGS.policy.notify
  for (const value of [null, 'desktop', ['a'], ['a', 'b c']]) t.ok(schema.safeParse(value).success, String(value))
  for (const value of ['notify-send x', [], [''], ['a\0b'], [1], {}, true, Array.from({ length: 33 }, () => 'a')])
    t.absent(schema.safeParse(value).success, JSON.stringify(value))
})

import test, { type Assert } from 'brittle'
import { listPush } from '../../../../src/cli/commands/a2a/push.js'
import type { Action } from '../../../../src/cli/context.js'
import { Output } from '../../../../src/cli/terminal/output.js'
import type { PushList, PushNoticeInfo } from '../../../../src/ports/push-api.js'
import { fakeHome } from '../../command-line.js'

const [TASK, HOOK] = ['task_8kqx7m3n5p1ra4td', 'hook_h3y1x4m177bek7f2']
const notice = (generation: number, event: string, more: Partial<PushNoticeInfo> = {}): PushNoticeInfo => ({
  id: `${HOOK}.${generation}`,
  hook: HOOK,
  task: TASK,
  url: 'https://me.example.com/webhooks/a2a',
  event,
  at: '2026-01-02T03:04:05.000Z',
  tries: 5,
  reason: 'no answer within 10000 ms',
  folded: 0,
  ...more
})
const LIST: PushList = {
  configs: [
    {
      task: TASK,
      id: 'mine',
      hook: HOOK,
      url: 'https://me.example.com/webhooks/a2a',
      version: '1.0',
      waiting: 1000,
      givenUp: 1
    }
  ],
  waiting: [
    {
      ...notice(1204, 'task.input-required', { tries: 0, reason: null, folded: 400 }),
      dueAt: '2026-01-02T03:04:06.000Z'
    }
  ],
  dead: [{ ...notice(5, 'task.working'), deadAt: '2026-01-02T03:04:06.000Z' }],
  pushedOut: 3,
  more: true
}

test('a2a push ls prints the task and URL of each notification, in 80 columns with whole ids', async (t: Assert) => {
  const [out, err]: [string[], string[]] = [[], []]
  const sink = (lines: string[]) => ({
    write: (text: string | Uint8Array) => lines.push(String(text)),
    isTTY: true,
    columns: 80
  })
  const output = new Output({ json: false, color: 'never', out: sink(out), err: sink(err), env: {} })
  t.is(
    await listPush(
      { output, api: () => ({ call: () => Promise.resolve(LIST) }) } as unknown as Parameters<Action>[0],
      [],
      {}
    ),
    0
  )
  const lines = out.join('').split('\n')
  t.ok(
    lines.every((line) => line.length <= 80),
    lines.join('\n')
  )
  const row = lines.findIndex((line) => line.startsWith(`${HOOK}.5 `))
  t.ok(/^hook_\S+\.5 +given up +5 .* ago +no answer/.test(lines[row] ?? ''), lines[row])
  t.ok(
    new RegExp(`^ {2}task\\.working +${TASK} +https://me\\.example\\.com/webho`).test(lines[row + 1] ?? ''),
    lines[row + 1]
  )
  t.ok(lines.some((line) => line.includes(`task.input-required +400  ${TASK}`)))
  t.ok(new RegExp(`^${TASK} +mine +1000 +1 +1\\.0 +https://me`).test(lines[1] ?? ''), lines[1])
  t.ok(
    /\+N: it tells of N events before its own[^]*3 notifications more[^]*more than is shown/.test(err.join('')),
    err.join('')
  )
})

test('a2a push ls and retry speak JSON as the text does', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { calls: { 'push.list': () => LIST } })
  const { schema, ...told } = JSON.parse((await run(['a2a', 'push', 'ls', '--json'])).stdout) as PushList & {
    schema: string
  }
  t.alike([schema, told], ['a2a-node/push@1', LIST])
  const retried = await run(['a2a', 'push', 'retry', '--all', '--json'])
  t.alike(JSON.parse(retried.stdout), { schema: 'a2a-node/push-retry@1', ids: [] })
  t.alike(fake.seen.at(-1)?.params, { all: true })
  const unknown = await run(['a2a', 'push', 'retry', `${HOOK}.9`, '--json'])
  t.is(unknown.code, 4)
  t.is((JSON.parse(unknown.stderr) as { error: { code: string } }).error.code, 'NOTIFICATION_NOT_FOUND')
})

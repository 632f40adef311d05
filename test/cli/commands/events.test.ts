import test, { type Assert } from 'brittle'
import { checkedApi } from '../../../src/adapters/control/contract.js'
import { EVENT_TYPES } from '../../../src/kit/names/event-types.js'
import { failsWith } from '../../support/fails.js'
import { fakeHome } from '../command-line.js'
import { peer } from '../samples.js'

const AT = '2026-01-02T03:04:05.000Z'
const [GPU, LAPTOP, STRANGER] = [peer('gpu-box').id, 'y'.repeat(52), 'k'.repeat(52)]

test('events names nodes as people do, and says nothing twice; JSON has the whole ids', async (t: Assert) => {
  const events = [
    {
      at: AT,
      type: 'membership',
      message: 'tier-changed "gpu-box" L2',
      data: { code: 'tier-changed', peer: GPU, by: LAPTOP }
    },
    { at: AT, type: 'peer', message: 'a peer is online', data: { peer: 'gpu-box', id: GPU } },
    {
      at: AT,
      type: 'notification',
      message: 'a notification came',
      data: { from: `text@${GPU}`, to: `host@${STRANGER}`, payload: { a: 1 } }
    },
    {
      at: AT,
      type: 'delivery-failed',
      message: 'a message was not carried on',
      data: { code: 'X', via: { id: GPU }, rule: null }
    }
  ]
  const { run } = await fakeHome(t, { peers: [peer('gpu-box')], events })
  t.alike(
    (await run(['events'])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(41)),
    [
      'tier-changed "gpu-box" L2  peer=gpu-box  by=laptop',
      'a peer is online  peer=gpu-box',
      'a notification came  from=text@gpu-box  to=host@kkkk...kkkk',
      'a message was not carried on  code=X  via={"id":"gpu-box"}'
    ]
  )
  const json = (await run(['events', '--json'])).stdout.trimEnd().split('\n')
  t.alike(
    json.map((line) => (JSON.parse(line) as { data: unknown }).data),
    events.map((event) => event.data)
  )
})

test('events takes every type that a node has, and refuses others by name, as the control API does', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { events: [] })
  for (const type of EVENT_TYPES) t.is((await run(['events', '--type', type])).code, 0, type)
  t.is((await run(['events', '--type', 'refusal,tool-invocation'])).code, 0)
  for (const [types, unknown] of [
    ['refusals', 'refusals'],
    ['peer,tool_invocation', 'tool_invocation'],
    ['Peer', 'Peer'],
    ['peer,', ''],
    ['gap', 'gap'],
    ['*', '*']
  ] as const) {
    const { code, stderr } = await run(['events', '--type', types])
    t.is(code, 2, types)
    t.ok(stderr.includes(`not ${JSON.stringify(unknown)}`) && stderr.includes('delivery-failed'), stderr)
  }
  const watch = checkedApi(fake).watch('node.events', { types: ['refusals'] as never })
  await failsWith(t, 'USAGE', async () => void (await watch[Symbol.asyncIterator]().next()))
})

test('events prints durations rounded, as other commands do; JSON has them whole', async (t: Assert) => {
  const ms = [0.061_833_000_000_114_7, 3.000_000_1, 12.5, 60_000.25]
  const data = ms.map((durationMs) => ({ toolName: 'a.b', durationMs }))
  const more = { waitedMs: 1.049, count: 1.049 }
  const events = [...data, more].map((one) => ({
    at: AT,
    type: 'tool-invocation',
    message: 'a tool was called',
    data: one
  }))
  const { run } = await fakeHome(t, { events })
  const lines = (await run(['events', '--all'])).stdout.trimEnd().split('\n')
  t.alike(
    lines.map((line) => line.replace(/^.*a tool was called {2}/, '')),
    [
      ...['0.1 ms', '3.0 ms', '13 ms', '60000 ms'].map((text) => `toolName=a.b  durationMs=${text}`),
      'waitedMs=1.0 ms  count=1.049'
    ]
  )
  const json = (await run(['events', '--all', '--json'])).stdout.trimEnd().split('\n')
  t.alike(
    json.map((line) => (JSON.parse(line) as { data: unknown }).data),
    [...data, more]
  )
})

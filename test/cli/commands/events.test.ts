import test, { type Assert } from 'brittle'
import { fakeHome } from '../command-line.js'
import { peer } from '../samples.js'

const AT = '2026-01-02T03:04:05.000Z'
const [GPU, LAPTOP, STRANGER] = [peer('gpu-box').id, 'y'.repeat(52), 'k'.repeat(52)]

test('events names nodes as people do, and says nothing twice; JSON has the whole ids', async (t: Assert) => {
  const events = [
    { at: AT, type: 'membership', message: 'tier-changed "gpu-box" L2', data: { code: 'tier-changed', peer: GPU, by: LAPTOP } },
    { at: AT, type: 'peer', message: 'a peer is online', data: { peer: 'gpu-box', id: GPU } },
    {
      at: AT,
      type: 'notification',
      message: 'a notification came',
      data: { from: `text@${GPU}`, to: `host@${STRANGER}`, payload: { a: 1 } }
    },
    { at: AT, type: 'delivery-failed', message: 'a message was not carried on', data: { code: 'X', via: { id: GPU }, rule: null } }
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

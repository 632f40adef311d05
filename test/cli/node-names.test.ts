import test from 'brittle'
import { idsIn, nodeNames, withNames } from '../../src/cli/node-names.js'
import { NodeError } from '../../src/kit/errors.js'
import { FakeNodeApi } from '../contracts/node-api-fake.js'
import { failsWith } from '../support/fails.js'
import { peer } from './samples.js'

const [GPU, STRANGER] = [peer('gpu-box').id, 'k'.repeat(52)]

test('ids of nodes are found wherever they stand, and nothing that is longer or shorter', (t) => {
  t.alike(idsIn(`text@${GPU} and (${STRANGER})`), [GPU, STRANGER])
  t.alike(idsIn(`${GPU}y y${GPU} ${GPU.slice(1)} ${'l'.repeat(52)}`), [])
  const names = new Map([[GPU, 'gpu-box']])
  t.is(withNames(`text@${GPU} asked ${STRANGER}`, names), 'text@gpu-box asked kkkk...kkkk')
})

test('the names of all nodes are those of a running one, and none without one', async (t) => {
  const fail = (code: 'NODE_NOT_RUNNING' | 'FORBIDDEN') => (): never => {
    throw new NodeError(code, 'no')
  }
  const names = await nodeNames(new FakeNodeApi({ peers: [peer('gpu-box')] }))
  t.alike([names.get(GPU), names.size], ['gpu-box', 2])
  t.is((await nodeNames(new FakeNodeApi({ calls: { 'node.info': fail('NODE_NOT_RUNNING') } }))).size, 0)
  await failsWith(t, 'FORBIDDEN', () => nodeNames(new FakeNodeApi({ calls: { 'node.info': fail('FORBIDDEN') } })))
})

import test, { type Assert } from 'brittle'
import { connect } from '../src/client.js'
import { fakeHome } from './cli/command-line.js'
import { codeOf } from './contracts/node-api.js'
import { tempDir } from './support/tmp.js'

test('a program reaches the node of a home, given or of the environment', async (t: Assert) => {
  const { home } = await fakeHome(t)
  t.is((await connect({ home }).call('node.info', {})).node.name, 'laptop')
  t.is((await connect({ env: { A2A_NODE_HOME: home } }).call('node.status', {})).state, 'running')
})

test('without a node every call is NODE_NOT_RUNNING, until one runs', async (t: Assert) => {
  const api = connect({ home: await tempDir(t) })
  t.is(await codeOf(api.call('peers.list', {})), 'NODE_NOT_RUNNING')
})

import test from 'brittle'
import { loadConfig } from '../../src/config/load.js'
import { nodeRecord, type RecordSources } from '../../src/compose/node-record.js'
import { failsWith } from '../support/fails.js'

type Code = NonNullable<RecordSources['code']>

const LOCAL: Code = { network: 'local', bootstrap: [], localPort: 29_999 }
const PRIVATE: Code = { network: 'private', bootstrap: ['10.0.0.1:4000'], localPort: null }

async function recordOf(
  given: Readonly<Record<string, unknown>>,
  code: Code | null
): Promise<ReturnType<typeof nodeRecord>> {
  const flags = Object.entries(given).map(([path, value]) => ({ path, flag: path, value }))
  const { config } = await loadConfig({ file: '/no/such/config.yaml', env: {}, flags })
  return nodeRecord({ config, name: 'me', code, stored: null })
}

test('the invite names the network; another one, or bootstrap nodes that nobody would ask, are refused', async (t) => {
  t.is((await recordOf({}, LOCAL)).network, 'local')
  t.is((await recordOf({ 'network.kind': 'local' }, LOCAL)).localPort, 29_999)
  const error = await failsWith(t, 'USAGE', () => recordOf({ 'network.kind': 'public' }, LOCAL))
  t.alike(error.next, ['a2a-node start --join - --network local'])
  await failsWith(t, 'USAGE', () => recordOf({ 'network.bootstrap': ['h:1'] }, LOCAL))
  await failsWith(t, 'USAGE', () => recordOf({ 'network.bootstrap': ['h:1'] }, null))
})

test('bootstrap nodes given now replace those of the invite to a private network', async (t) => {
  t.alike((await recordOf({}, PRIVATE)).bootstrap, ['10.0.0.1:4000'])
  t.alike((await recordOf({ 'network.bootstrap': ['h:1'] }, PRIVATE)).bootstrap, ['h:1'])
})

test('a bootstrap node that nobody would ask is refused on every network but a private one, with the command that serves it', async (t) => {
  const serving = { 'network.serveBootstrap': '10.0.0.5:29737' }
  for (const kind of [{}, { 'network.kind': 'public' }, { 'network.kind': 'local' }]) {
    const error = await failsWith(t, 'USAGE', () => recordOf({ ...serving, ...kind }, null))
    t.alike(error.next, [
      'a2a-node start --network private --serve-bootstrap 10.0.0.5:29737',
      'a2a-node start --no-serve-bootstrap'
    ])
  }
  const joining = await failsWith(t, 'USAGE', () => recordOf(serving, LOCAL))
  t.alike(joining.next, ['a2a-node start --join - --no-serve-bootstrap'])
  t.is((await recordOf(serving, PRIVATE)).network, 'private')
  t.is((await recordOf({ ...serving, 'network.kind': 'private' }, null)).network, 'private')
})

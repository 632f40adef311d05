import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { ROOT, type LocalNode, localMesh, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'
import { parsePrometheus } from '../support/prometheus.js'

type Line = Record<string, unknown>

/** `a2a-node <args> --json` of a node that goes on until the test ends: its lines so far. */
function following(t: Assert, node: LocalNode, args: readonly string[]): () => Line[] {
  const bin = path.join(ROOT, 'bin', 'a2a-node.js')
  const child = spawn(process.execPath, [bin, '--home', node.home, ...args, '--json'], {
    stdio: ['ignore', 'pipe', 'ignore']
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await gone
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  return () => jsonLines(text)
}

function jsonLines(text: string): Line[] {
  return text
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line)
}

async function counted(node: LocalNode): Promise<(name: string, label: string) => number> {
  const { stdout } = await node.cli(['metrics', '--prometheus'])
  const { samples } = parsePrometheus(stdout.trimEnd())
  return (name, label) => samples.get(`a2a_node_${name}_total{label="${label}"}`) ?? 0
}

test('metrics count the events, in a text that Prometheus reads; events are reported as they happen', {
  timeout: 180_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await untilAgent(a, 'text@b')
  const events = following(t, a, ['events', '-f'])
  await untilTrue(() => events().some(({ type }) => type === 'peer'), 'the events so far')
  const [aBefore, bBefore] = [await counted(a), await counted(b)]
  for (let i = 0; i < 4; i++) await a.json(['call', 'text@b', 'text.stats', '{"text":"x"}'])
  for (let i = 0; i < 3; i++)
    await b.json(['send', 'operator@a', 'hello', '--type', 'notification', '--justification', 'a test'])
  await untilTrue(() => events().filter(({ type }) => type === 'notification').length === 3, 'the notifications')
  await a.json(['peers', 'rename', 'b', 'bee'])
  await untilTrue(() => events().some(({ data }) => (data as Line)['code'] === 'renamed'), 'the new name')
  const [aNow, bNow] = [await counted(a), await counted(b)]
  const grown = (name: string, label: string): number[] => [
    aNow(name, label) - aBefore(name, label),
    bNow(name, label) - bBefore(name, label)
  ]
  t.alike(grown('messages_sent', 'request'), [4, 0])
  t.alike(grown('messages_received', 'request'), [0, 4])
  t.alike(grown('messages_sent', 'response'), [0, 4])
  t.alike(grown('messages_received', 'response'), [4, 0])
  t.alike(grown('messages_sent', 'notification'), [0, 3])
  t.alike(grown('messages_received', 'notification'), [3, 0])
  t.is((await b.json<{ timings: Line[] }>(['metrics'])).timings.find((one) => one['name'] === 'task_ms')?.['count'], 4)
})

test('changes of one node are on record on all; the log is checked with and without a running node', {
  timeout: 180_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  await untilAgent(a, 'text@b')
  await a.json(['call', 'text@b', 'text.stats', '{"text":"x"}'])
  const lines = async (node: LocalNode, ...args: string[]): Promise<Line[]> =>
    jsonLines((await node.cli(['audit', '--json', ...args])).stdout)
  const codes = (list: readonly Line[], kind: string): unknown[] =>
    // A newcomer accepts its inviter when it likes.
    list.filter((one) => one['kind'] === kind && one['code'] !== 'trust').map((one) => one['code'])
  await a.json(['peers', 'tier', 'b', 'L2'])
  // Changes that arrive together are recorded by member, not by time.
  await untilTrue(async () => codes(await lines(b), 'membership').includes('tier-changed'), 'the change of tier on b')
  await a.json(['peers', 'revoke', 'c', '--reason', 'lost'])
  await c.exited
  await untilTrue(async () => codes(await lines(b), 'membership').includes('revoked'), 'the revocation on b')
  const changes = codes(await lines(b), 'membership')
  t.alike(changes.slice(-2), ['tier-changed', 'revoked'])
  t.is(changes.filter((code) => code === 'admitted').length, 2)
  const ofC = await lines(b, '--peer', c.info.node.id, '--since', '1h')
  t.alike(codes(ofC, 'membership'), ['admitted', 'revoked'])
  t.is((ofC.at(-1)?.['by'] as Line | undefined)?.['name'], 'a')
  const crossed = (await lines(a)).filter((one) => one['kind'] === 'cross-tier')
  t.ok(
    crossed.some(
      (one) =>
        one['code'] === 'sent' &&
        one['sourceTier'] === 'L0' &&
        one['targetTier'] === 'L1' &&
        one['messageType'] === 'request'
    )
  )
  t.is((await b.cli(['audit', '--verify'])).code, 0)
  await b.stop()
  const again = await mesh.start('b', { home: b.home })
  await untilOnline(again, 1)
  t.alike(codes(await lines(again), 'membership'), changes, 'nothing is reported twice')
  await again.stop()
  const whole = await again.cli(['audit', '--verify', '--json'])
  t.is(whole.code, 0)
  t.ok(((JSON.parse(whole.stdout) as Line)['entries'] as number) > changes.length)
  const file = path.join(b.home, 'audit', 'changes.ndjson')
  const text = await fs.readFile(file, 'utf8')
  await fs.writeFile(file, text.replace('"revoked"', '"renamed"'))
  const broken = await again.cli(['audit', '--verify', '--json'])
  const { ok, broken: found } = JSON.parse(broken.stdout) as Line
  const fileLine = text.split('\n').findIndex((line) => line.includes('"revoked"')) + 1
  t.alike(
    [broken.code, ok, found],
    [1, false, [{ chain: 'changes', line: fileLine, fault: 'changed', file, fileLine }]]
  )
  const damaged = await mesh.start('b', { home: b.home })
  await untilTrue(async () => {
    const { problems } = JSON.parse((await damaged.cli(['status', '--json'])).stdout) as Line
    return (problems as Line[]).some(
      (one) => String(one['message']).includes('the chain changes') && String(one['next']).includes('audit --verify')
    )
  }, 'the problem in the status of b')
})

test('an audit log that is gone altogether is missed, before the next start and after it', {
  timeout: 180_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const first = await mesh.start('a')
  await first.stop()
  const verify = async (): Promise<unknown[]> => {
    const { code, stdout } = await first.cli(['audit', '--verify', '--json'])
    return [code, ((JSON.parse(stdout) as Line)['broken'] as Line[]).map((one) => [one['chain'], one['line']])]
  }
  t.alike(await verify(), [0, []])
  await fs.rm(path.join(first.home, 'audit'), { recursive: true })
  const all = ['audit', 'exchanges', 'changes', 'approvals'].map((chain) => [chain, 1])
  t.alike(await verify(), [1, all])
  const again = await mesh.start('a', { home: first.home })
  t.alike(await verify(), [1, all])
  await untilTrue(async () => {
    const { problems } = await again.api.call('node.status', {})
    const [one, ...others] = problems.filter(({ message }) => message.startsWith('the audit log is broken'))
    const end = 'further broken chains: exchanges, changes, approvals'
    return others.length === 0 && (one?.message.endsWith(end) ?? false)
  }, 'the problem in the status')
})

test('structured lines follow a message through both nodes by its correlation id', {
  timeout: 180_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const env = { A2A_NODE_LOG_FORMAT: 'json', A2A_NODE_LOG_LEVEL: 'debug' }
  const [a, b] = (await mesh.meshWith({ env }, 'a', 'b')) as [LocalNode, LocalNode]
  await untilAgent(a, 'text@b')
  const { correlationId } = await a.json<Reply & Line>(['call', 'text@b', 'text.stats', '{"text":"x"}'])
  const of = (node: LocalNode): unknown[] =>
    jsonLines(node.errors())
      .filter((line) => line['correlationId'] === correlationId)
      .map((line) => `${String(line['message'])} ${String((line['fields'] as Line)['type'])}`)
  await untilTrue(() => of(a).length === 2 && of(b).length === 2, 'the lines of the message and its answer')
  t.alike(of(a), ['a message was sent request', 'a message came in response'])
  t.alike(of(b), ['a message came in request', 'a message was sent response'])
})

import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { remoteServer } from '../support/a2a/remote-server.js'
import { localMesh, testMesh, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

const TIMEOUT = { timeout: 180_000 }

test(
  'the justification of a member goes over its link and a gateway to an A2A agent whose entry in the config asks for it',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await localMesh(t)
    const far = await mesh.start('far', { args: ['--http', '0'] })
    const { token } = await far.api.call('token.create', { name: 'near', tier: 3, scopes: ['read', 'send'] })
    const card = `${far.info.http ?? ''}/agents/text/.well-known/agent-card.json`
    const entry = (name: string, more: string): string =>
      `    ${name}: { card: "${card}", auth: { bearer: env:FAR_TOKEN }, sideEffect: read${more} }`
    const home = await mesh.dir()
    fs.writeFileSync(
      path.join(home, 'config.yaml'),
      `a2a:\n  allowPrivate: [127.0.0.1]\n  agents:\n${entry('open', ', passJustification: true')}\n${entry('quiet', '')}\n`
    )
    const near = await mesh.start('near', { home, env: { FAR_TOKEN: token } })
    const { code } = await near.api.call('invite.create', { trust: 'mine', tier: 3 })
    const member = await mesh.start('member', { join: code })
    await untilOnline(member, 1)
    for (const node of [near, member]) for (const name of ['open', 'quiet']) await untilAgent(node, `${name}@near`)
    for (const node of [near, member]) {
      const call = (agent: string): string[] => ['call', agent, 'text.stats', '{"text":"one two"}']
      const why = ['--justification', 'the report is due']
      const passed = await node.json<Reply>([...call('open'), ...why])
      t.is((passed.payload as { words?: number }).words, 2, JSON.stringify(passed))
      for (const words of [[...call('quiet'), ...why], ...(node === near ? [call('open')] : [])]) {
        const refused = await node.cli(words)
        t.ok(refused.code !== 0 && refused.stderr.includes('justification'), refused.stderr)
      }
    }
  }
)

test(
  'a request that its node takes up again after it was killed has its justification still',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await testMesh(t, { commandsHere: true })
    const got: unknown[] = []
    const server = await remoteServer(t, '1.0', async (turn) => {
      got.push((turn.metadata as { justification?: string } | undefined)?.justification)
      if (got.length === 1) await turn.canceled
      turn.chunk('result', 'done')
      turn.end('completed')
    })
    const home = await mesh.dir()
    const entry = `card: "${server.url}", idempotent: [talk], passJustification: true, tier: L0`
    fs.writeFileSync(
      path.join(home, 'config.yaml'),
      `a2a:\n  allowPrivate: ["${server.host}"]\n  agents:\n    words: { ${entry} }\n`
    )
    const near = await mesh.start('near', { home })
    const { code } = await near.api.call('invite.create', { trust: 'mine', tier: 3 })
    const member = await mesh.start('member', { join: code })
    await untilOnline(member, 1)
    await untilAgent(member, 'words@near')
    const reply = member.json<Reply>(['call', 'words', 'talk', '{"text":"x"}', '--justification', 'the report is due'])
    await untilTrue(() => got.length === 1, 'the first run')
    near.kill('SIGKILL')
    await near.exited
    await mesh.start('near', { home })
    t.is((await reply).payload, 'done')
    t.alike(got, ['the report is due', 'the report is due'])
  }
)

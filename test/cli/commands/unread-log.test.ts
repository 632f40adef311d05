import test from 'brittle'
import type { LogProblem } from '../../../src/ports/node-api.js'
import { fakeHome, run } from '../command-line.js'

const PROBLEM: LogProblem = {
  code: 'PEER_OFFLINE',
  message: 'the log of the mesh is not on this disk',
  next: 'a2a-node start'
}

const SETTINGS = { serial: 0, changedAt: null, tiers: [], sandboxes: { enforced: true, allow: [] } }

test('a list from the mesh log warns that entries may be missing while the log is not here, also in its JSON', async (t) => {
  const rows = [
    [['peers'], 'peers.list', { peers: [] }, 'no peers that this node knows of'],
    [['doc', 'ls'], 'documents.list', { documents: [] }, 'no documents that this node knows of'],
    [['invite', 'ls'], 'invite.list', { invites: [] }, 'no invites that this node knows of'],
    [['agents'], 'agents.list', { agents: [] }, 'no agents'],
    [['mesh', 'show'], 'mesh.settings', SETTINGS, 'not known; these are as shipped']
  ] as const
  for (const [words, call, result, text] of rows) {
    const { home } = await fakeHome(t, { calls: { [call]: () => ({ ...result, problems: [PROBLEM] }) } })
    const asText = await run([...words, '--home', home])
    t.ok(asText.stdout.includes(text), `${words.join(' ')}: ${asText.stdout}`)
    t.ok(
      asText.stderr.includes(`problem: ${PROBLEM.message}  [PEER_OFFLINE]\n  try: a2a-node --home ${home} start`),
      asText.stderr
    )
    t.absent(asText.stderr.includes('Invite another machine'))
    const { stdout, stderr } = await run([...words, '--json', '--home', home])
    t.is(stderr, '')
    t.alike((JSON.parse(stdout) as { problems: unknown }).problems, [
      { ...PROBLEM, next: `a2a-node --home ${home} start` }
    ])
  }
})

import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { displayNames, nodesMeant, resolveAgent, resolveNode, splitAddress } from '../../../src/domain/routing/names.js'
import { keyToText, shortId, type NodeId } from '../../../src/kit/ids.js'
import { holds } from '../../support/holds.js'

function id(first: string): NodeId {
  return first.padEnd(52, 'y')
}

const LAPTOP = { id: id('k7f2a'), name: 'laptop' }
const BOX = { id: id('x4m1b'), name: 'gpu-box' }
const LAPTOP2 = { id: id('k7f3c'), name: 'laptop' }
const NODES = [LAPTOP, BOX, LAPTOP2]
const AGENTS = [
  { agentId: 'host', nodeId: LAPTOP.id },
  { agentId: 'text', nodeId: LAPTOP.id },
  { agentId: 'host', nodeId: BOX.id },
  { agentId: 'tester', nodeId: BOX.id }
]

test('a name that an earlier node has already shows with the start of the id', (t) => {
  t.alike([...displayNames(NODES).values()], ['laptop', 'gpu-box', 'laptop-k7f3'])
  const spoofed = [LAPTOP, { id: id('z9z9'), name: 'laptop-k7f3' }, LAPTOP2]
  t.alike([...displayNames(spoofed).values()], ['laptop', 'laptop-k7f3', 'laptop-k7f3c'])
})

test('names are shown without control characters and never empty', (t) => {
  t.alike(
    [
      ...displayNames([
        { id: id('a'), name: '\u001b[31mred\n' },
        { id: id('b'), name: '\u0007' }
      ]).values()
    ],
    ['[31mred', 'node']
  )
})

test('a name that deceives is written out, one that looks like an earlier name shows with the start of the id; both are found as typed', (t) => {
  const hidden = { id: id('k7f2a'), name: 'bo\u3164ss' }
  const alike = { id: id('x4m1b'), name: 'аре' }
  const nodes = [{ id: id('b0ssa'), name: 'boss' }, { id: id('apeaa'), name: 'ape' }, hidden, alike]
  t.alike([...displayNames(nodes).values()], ['boss', 'ape', 'bo\\u{3164}ss', 'аре-x4m1'])
  t.alike(resolveNode('bo\u3164ss', nodes), { kind: 'found', value: hidden.id })
  t.alike(resolveNode('bo\\u{3164}ss', nodes), { kind: 'found', value: hidden.id })
  t.alike(resolveNode('аре-x4m1', nodes), { kind: 'found', value: alike.id })
  // A rule that denies such a node must not end with the way in which its name is shown.
  t.alike(nodesMeant('bo\u3164ss', displayNames(nodes)), [hidden.id])
  t.alike(nodesMeant('аре', displayNames(nodes)), [alike.id])
  t.alike(nodesMeant('ape', displayNames(nodes)), [id('apeaa')])
})

test('every node is found by the name it is shown with, by its id and by the short form of tables', async (t) => {
  const arbNode = fc.record({
    id: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(keyToText),
    name: fc.constantFrom('a', 'laptop', 'laptop-yyyy', '')
  })
  await holds(
    t,
    fc.property(fc.uniqueArray(arbNode, { selector: (node) => node.id, maxLength: 12 }), (nodes) => {
      const names = displayNames(nodes)
      assert.equal(new Set(names.values()).size, nodes.length)
      for (const node of nodes) {
        assert.deepEqual(resolveNode(names.get(node.id) as string, nodes), { kind: 'found', value: node.id })
        assert.deepEqual(resolveNode(node.id, nodes), { kind: 'found', value: node.id })
        assert.notEqual(resolveNode(shortId(node.id), nodes).kind, 'none')
      }
    })
  )
})

test('a prefix of at least four characters of an id finds its node, a shared one lists the candidates', (t) => {
  t.alike(resolveNode('x4m1', NODES), { kind: 'found', value: BOX.id })
  t.is(resolveNode('x4m', NODES).kind, 'none')
  t.alike(resolveNode('k7f2', NODES), { kind: 'found', value: LAPTOP.id })
  const twins = [
    { id: id('abcd1'), name: 'one' },
    { id: id('abcd3'), name: 'two' }
  ]
  t.alike(resolveNode('abcd', twins), { kind: 'ambiguous', candidates: ['one', 'two'] })
})

test('a text of a rule means the node of that name or of that beginning of an id, in any order of admission, else several', (t) => {
  const means = (text: string, nodes: typeof NODES): NodeId[] => nodesMeant(text, displayNames(nodes))
  t.alike(means('gpu-box', NODES), [BOX.id])
  t.alike(means('x4m1', NODES), [BOX.id])
  t.alike(means(shortId(BOX.id), NODES), [BOX.id])
  for (const text of ['x4m', 'nobody', '']) t.alike(means(text, NODES), [], text)
  const twins = [BOX, { id: id('x4m1y'), name: 'other' }]
  t.alike(means('x4m1', twins), [BOX.id, id('x4m1y')])
  const impostor = { id: id('z9z9'), name: 'x4m1' }
  t.alike(means('x4m1', [BOX, impostor]), [BOX.id, impostor.id], 'a later one of that name takes nothing over')
  t.alike(means('x4m1', [impostor, BOX]), [impostor.id], 'nor does a key that is made to fit a name')
})

test('an unknown node gives the nearest names', (t) => {
  t.alike(resolveNode('lapto', NODES), { kind: 'none', nearest: ['laptop', 'laptop-k7f3'] })
  t.alike(resolveNode('gpubox', NODES), { kind: 'none', nearest: ['gpu-box'] })
})

test('a bare agent id is found when one node has it and ambiguous otherwise', (t) => {
  t.alike(resolveAgent('text', AGENTS, NODES), { kind: 'found', value: AGENTS[1] })
  t.alike(resolveAgent('host', AGENTS, NODES), { kind: 'ambiguous', candidates: ['host@laptop', 'host@gpu-box'] })
})

test('an agent is found by id and node, the node by name, prefix or id', (t) => {
  for (const node of ['gpu-box', 'x4m1', BOX.id])
    t.alike(resolveAgent(`host@${node}`, AGENTS, NODES), { kind: 'found', value: AGENTS[2] })
  t.alike(resolveAgent('host@k7f', AGENTS, NODES), { kind: 'none', nearest: [] })
  t.alike(resolveAgent('host@lapto', AGENTS, NODES), { kind: 'none', nearest: ['host@laptop'] })
  t.alike(resolveAgent('hots@laptop', AGENTS, NODES), { kind: 'none', nearest: ['host@laptop'] })
})

test('a prefix of an agent id finds it, and the exact id wins over longer ones', (t) => {
  t.alike(resolveAgent('test', AGENTS, NODES), { kind: 'found', value: AGENTS[3] })
  t.alike(resolveAgent('text', [...AGENTS, { agentId: 'textual', nodeId: BOX.id }], NODES), {
    kind: 'found',
    value: AGENTS[1]
  })
  t.is(resolveAgent('tes', AGENTS, NODES).kind, 'none')
})

test('an unknown agent gives the nearest ones', (t) => {
  t.alike(resolveAgent('tex', AGENTS, NODES), { kind: 'none', nearest: ['text@laptop'] })
})

test('an address is split at its first @ and needs both sides', (t) => {
  t.alike(splitAddress('a@b@c'), { agentId: 'a', node: 'b@c' })
  for (const text of ['a', '@b', 'a@', '']) t.is(splitAddress(text), null)
})

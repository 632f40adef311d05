import test, { type Assert } from 'brittle'
import {
  groupMembers,
  isGroupAlive,
  processIdentity,
  signalGroup
} from '../../../../src/adapters/agents/process/process-table.js'
import { eventually } from '../../../support/agents/eventually.js'
import { sleeper } from '../../../support/agents/sleeper.js'

test('a process keeps its identity, and another has another', async (t: Assert) => {
  const { processGroup } = await sleeper(t)
  t.ok(processIdentity(process.pid))
  t.is(processIdentity(process.pid), processIdentity(process.pid))
  t.not(processIdentity(processGroup), processIdentity(process.pid))
})

test('a pid that nobody has has no identity', (t) => {
  t.is(processIdentity(2 ** 22 + 1), null)
})

test('the members of a group are found, in their session', async (t: Assert) => {
  const { processGroup, second } = await sleeper(t, { family: true })
  const members = groupMembers(processGroup)
  t.alike(new Set(members.map(({ pid }) => pid)), new Set([processGroup, second]))
  t.ok(members.every(({ session, isZombie }) => session === processGroup && !isZombie))
})

test('a group lives until its last process has ended, for any order of ends', async (t: Assert) => {
  const { processGroup, second } = await sleeper(t, { family: true })
  process.kill(processGroup, 'SIGKILL')
  await eventually(() => groupMembers(processGroup).every(({ pid }) => pid === second))
  t.ok(isGroupAlive(processGroup))
  signalGroup(processGroup, 'SIGKILL')
  await eventually(() => !isGroupAlive(processGroup))
  signalGroup(processGroup, 'SIGKILL')
  t.pass('and a signal to a group that is gone is no fault')
})

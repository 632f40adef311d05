import test from 'brittle'
import { rulesInForce, setSettings, showSettings } from '../../../src/node/policy/mesh-rules.js'
import { failsWith } from '../../support/fails.js'
import { SETTINGS, World } from '../../support/fake-node.js'
import { actor, founded, MESH, SETTINGS as OPEN } from '../../support/membership.js'

test('the shipped rules are in force until the owner sets others, and are made anew only then', (t) => {
  const model = founded()
  const inForce = rulesInForce({ view: () => model.view() }, SETTINGS.rules)
  t.is(inForce(), SETTINGS.rules)
  model.write(actor('owner'), { kind: 'settings', mesh: MESH, settings: OPEN, serial: 1, at: 2000 })
  const view = model.view()
  const set = rulesInForce({ view: () => view }, SETTINGS.rules)
  t.alike(set().tierRules, OPEN.tierRules)
  t.is(set().replies, SETTINGS.rules.replies, 'an unset option has its default')
  t.is(set(), set())
})

test('only the owner sets what holds for the mesh, and each change has the next serial', async (t) => {
  const world = new World(t)
  const [owner, member] = [await world.owner(), await world.member('one')]
  const sandboxes = { enforced: true, allow: ['text'] }
  await failsWith(t, 'FORBIDDEN', () => setSettings(member.core, { sandboxes }))
  t.is(showSettings(owner.core).serial, 0)
  const first = await setSettings(owner.core, { sandboxes })
  t.alike([first.serial, first.changed, first.sandboxes.allow], [1, true, ['text']])
  t.is((await setSettings(owner.core, { sandboxes })).changed, false, 'a snapshot in force is not signed again')
  await failsWith(t, 'CONFLICT', () => setSettings(owner.core, { reset: true, serial: 0 }))
  const reset = await setSettings(owner.core, { reset: true, serial: 1 })
  t.alike([reset.serial, reset.sandboxes.allow], [2, []])
})

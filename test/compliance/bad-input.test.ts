import test from 'brittle'
import * as cards from '../support/bad-input/cards.js'
import * as conduct from '../support/bad-input/conduct.js'
import { badMesh } from '../support/bad-input/mesh-scene.js'
import * as requests from '../support/bad-input/requests.js'
import { badScene } from '../support/bad-input/scene.js'
import * as tasks from '../support/bad-input/tasks.js'
import type { BadWire, Cell, Places, Row } from '../support/bad-input/table.js'
import { type HttpWire, IN_WIRES, OUT_WIRES } from '../support/bad-input/wires.js'

const SERVER =
  'nobody asks the node there: what a server answers the node with is in test/adapters/a2a/remote/remote-hostile.test.ts'
const inward = (row: Row): Readonly<Record<BadWire, Cell>> => ({
  ...row,
  'imported card': SERVER,
  'call <card URL>': SERVER
})

/** All that the issue names as bad input. */
const TABLE: Readonly<Record<string, Readonly<Record<BadWire, Cell>>>> = {
  'a body that is too large': inward(requests.oversize),
  'malformed JSON': inward(requests.malformed),
  'a batch of JSON-RPC': inward(requests.batches),
  'a wrong content type': inward(requests.contentTypes),
  'an unknown method, path or verb': inward(requests.methods),
  'an unknown task, and one of another caller': inward(tasks.strangers),
  'a task below the URL of another agent': inward(tasks.elsewhere),
  'a bad cursor, and a place in a log that there is not': inward(tasks.cursors),
  'a wrong version, and one in the words of the other': inward(tasks.versions),
  'an extension that is required and not spoken': inward(tasks.extensions),
  'a message that comes again': inward(tasks.replays),
  'a webhook at a private address': inward(tasks.webhooks),
  'a body that does not come': inward(conduct.slowBodies),
  'a body that breaks off': inward(conduct.halfBodies),
  'a reader of a stream that takes nothing': inward(conduct.deafReaders),
  'a client that vanishes in the middle of a stream': inward(conduct.dropped),
  'a card that cannot be used': {
    ...Object.fromEntries(IN_WIRES.map((wire) => [wire, 'nobody gives the node a card there'])),
    'imported card': cards.imported,
    'call <card URL>': cards.called
  } as Readonly<Record<BadWire, Cell>>
}

let cells = 0
for (const [item, row] of Object.entries(TABLE))
  test(`${item}: each wire answers in its own words or closes, leaks nothing, and serves on`, {
    timeout: 60_000
  }, async (t) => {
    const [http, mesh] = [badScene(t), badMesh(t)]
    const places: Places = { http: () => http, mesh: () => mesh }
    for (const wire of [...IN_WIRES, ...OUT_WIRES]) {
      const cell = row[wire]
      cells++
      if (typeof cell === 'string') {
        t.comment(`${wire}: ${cell}`)
        continue
      }
      await cell(t, places)
      if (wire === 'mesh') t.ok(await (await mesh).isServing(), 'the mesh serves on')
      else if (wire in row && (IN_WIRES as readonly string[]).includes(wire))
        t.ok(await (await http).isServing(wire as HttpWire), `${wire} serves on`)
    }
  })

test('every item of bad input was tried on every wire, or says why it cannot be', (t) => {
  t.is(cells, Object.keys(TABLE).length * (IN_WIRES.length + OUT_WIRES.length))
})
